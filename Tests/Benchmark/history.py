"""What the history of a document takes: the same saves in a library, in git and in a repository of borg."""

import os
import random
import subprocess
import time

import file_systems

SIZE = 1_000_000
WORDS = 5


def vocabulary(generator, count=5000):
    """Words of one to four syllables."""
    found = set()
    while len(found) < count:
        syllables = (
            generator.choice("bcdfghklmnprstvw") + generator.choice("aeiou")
            + (generator.choice("nrstl") if generator.random() < 0.3 else "")
            for _ in range(generator.randint(1, 4)))
        found.add("".join(syllables))
    return sorted(found)


def texts(saves, size=SIZE, words=WORDS, seed=1):
    """The document at each save: prose by Zipf's law, in which `words` words at random places become others each time."""
    generator = random.Random(seed)
    known = vocabulary(generator)
    weights = [1 / (rank + 2) for rank in range(len(known))]
    text = bytearray()
    while len(text) < size:
        text += " ".join(generator.choices(known, weights, k=12)).encode() + b"\n"
    for save in range(saves):
        for _ in range(words if save else 0):
            place = generator.randrange(len(text))
            start = max(text.rfind(b" ", 0, place), text.rfind(b"\n", 0, place)) + 1
            ends = [end for end in (text.find(b" ", start), text.find(b"\n", start)) if end >= 0]
            text[start:min(ends, default=len(text))] = generator.choice(known).encode()
        yield bytes(text)


def size(folder):
    """Bytes of a folder's files."""
    return sum(os.lstat(os.path.join(parent, name)).st_size for parent, _, names in os.walk(folder) for name in names)


def in_git(work, saves):
    """Bytes of the packed objects with their index after `git gc --aggressive`, and seconds that it took."""
    folder = os.path.join(work, "git")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    git = ["git", "-C", folder]
    os.makedirs(folder)
    subprocess.run([*git, "init", "-q"], check=True, env=environment, stderr=subprocess.DEVNULL)
    # The objects are those of as many `git commit`, made by one process.
    process = subprocess.Popen([*git, "fast-import", "--quiet"], stdin=subprocess.PIPE, env=environment)
    for number, text in enumerate(texts(saves), 1):
        process.stdin.write(
            b"commit refs/heads/main\ncommitter Alice <alice@example.com> %d +0000\ndata <<.\nsave %d\n.\n"
            b"M 100644 inline text\ndata %d\n%b\n" % (1_800_000_000 + number, number, len(text), text))
    process.stdin.close()
    if process.wait() != 0:
        raise SystemExit("git fast-import failed")
    begin = time.monotonic()
    subprocess.run([*git, "gc", "--aggressive", "--prune=now", "--quiet"], check=True, env=environment)
    return size(os.path.join(folder, ".git/objects")), time.monotonic() - begin


def in_borg(work, saves):
    """Bytes of the repository after a `borg create` for each save, and seconds of all of them."""
    folder, source = os.path.join(work, "borg"), os.path.join(work, "borg-source")
    environment = {**os.environ, "BORG_BASE_DIR": work, "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes"}
    subprocess.run(["borg", "init", "--encryption=none", folder], check=True, env=environment)
    os.makedirs(source)
    begin = time.monotonic()
    for number, text in enumerate(texts(saves), 1):
        with open(os.path.join(source, "text"), "wb") as file:
            file.write(text)
        subprocess.run(["borg", "create", f"{folder}::{number}", "."], check=True, cwd=source, env=environment)
    return size(os.path.join(folder, "data")), time.monotonic() - begin


class History:
    """A library with the saves in it, mounted while they are made."""

    def __init__(self, work, tools, saves):
        self.sheaf = tools["sheaf"]
        self.library = file_systems.Sheaf("sheaf", work, tools)
        self.library.mount()
        # They follow each other faster than a person saves, and each is to stay.
        self.run("library", "set", "--rapid-saves", "keep")
        begin = time.monotonic()
        for text in texts(saves):
            with open(os.path.join(self.library.folder, "text"), "wb") as file:
                file.write(text)
        self.seconds = (time.monotonic() - begin) / saves
        self.library.unmount()
        self.before = os.stat(self.library.library).st_size
        begin = time.monotonic()
        self.run("compact")
        self.compacting = time.monotonic() - begin
        self.after = os.stat(self.library.library).st_size
        # Every version is there, and is what was written.
        self.run("check")
        begin = time.monotonic()
        first = self.run("show", "Documents/text", "--version", "1")
        self.reading = time.monotonic() - begin
        if first != next(iter(texts(1))):
            raise SystemExit("version 1 is not what was written first")

    def run(self, *command):
        return subprocess.run(
            [self.sheaf, *command, "--library", self.library.library], check=True, stdout=subprocess.PIPE,
            env=self.library.environment()).stdout


def main(work, tools, saves):
    history = History(work, tools, saves)
    rows = [
        ("sheaf, as saved", history.before, f"{history.seconds * 1000:.1f} ms a save"),
        ("sheaf, after `sheaf compact`", history.after, f"{history.compacting:.1f} s to compact"),
    ]
    packed, seconds = in_git(work, saves)
    rows.append(("git, after `git gc --aggressive`", packed, f"{seconds:.1f} s to pack"))
    stored, seconds = in_borg(work, saves)
    rows.append(("borg", stored, f"{seconds / saves * 1000:.0f} ms a save"))
    print(f"{saves} saves of a text of {SIZE / 1e6:.0f} MB, {WORDS} words at random places changed each time.\n")
    print("| what | bytes | a save | time |\n|---|---:|---:|---|")
    for name, count, note in rows:
        print(f"| {name} | {count:,} | {count / saves:,.0f} | {note} |")
    print(f"\nThe oldest version was read in {history.reading * 1000:.0f} ms, the command's start included.")
