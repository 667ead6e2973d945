"""Two machines of one account beside Syncthing, and beside rclone mounts of a WebDAV server: how soon a change is on the
other machine, many small files, a large document, a first connect, and what a connected library costs (see
mount-scripts/benchmark --replica)."""

import argparse
import base64
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
import uuid

import hub
import machine
import pairs
import phases
from daemon import header, row
from watcher import Watcher

#: What one machine talks to the other through, each way, in the phase with a slow line.
MILLISECONDS = 50
#: Local operations, of those in phases.py.
LOCAL = ("create", "stat-first", "read", "setxattr", "safe-save", "append-fsync", "rename", "unlink", "mkdir")


def progress(text):
    print(text, file=sys.stderr, flush=True)


def rotated(values, turn):
    """Each round begins with another one, so that none always comes after the same neighbour."""
    return values[turn % len(values):] + values[:turn % len(values)]


def ratio(mine, theirs):
    """The median of the rounds' own ratios: neighbours in time, whatever else the machine did."""
    return statistics.median(one / other for one, other in zip(mine, theirs))


def middle(values, unit="ms"):
    if not values:
        return ""
    value = statistics.median(values)
    return f"{value * 1e3:,.0f} ms" if unit == "ms" else f"{value:,.2f} s"


def late(values):
    return f"{sorted(values)[min(len(values) - 1, len(values) * 99 // 100)] * 1e3:,.0f} ms"


def spread(values):
    """Half the distance of the extremes, in percent of the median."""
    return f"±{(max(values) - min(values)) / 2 / statistics.median(values) * 100:.0f} %"


def contents(path, offset=0, length=4096):
    """None where they cannot be read, as while the document is replaced."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, length, offset)
        finally:
            os.close(descriptor)
    except OSError:
        return None


def save(path, data, offset=0):
    """Writes in place, and makes the document where it is missing.

    - Returns: when close(2) was called."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    os.pwrite(descriptor, data, offset)
    begin = time.monotonic()
    os.close(descriptor)
    return begin


def wait_until(is_there, what, patience=120):
    end = time.monotonic() + patience
    while not is_there():
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not there after {patience} s")
        time.sleep(0.02)


# How soon a change is on the other machine

class Subject:
    """A folder of a pair in which changes are timed."""

    def __init__(self, stack, pair, label, changes):
        self.pair, self.label, self.changes = pair, label, changes
        self.times = {kind: [] for kind in ("known", "new", "renamed", "deleted")}
        self.untold = self.early = 0
        self.serial = 0
        os.mkdir(os.path.join(pair.a, "watched"))
        self.at_a, self.at_b = (os.path.join(folder, "watched", "") for folder in (pair.a, pair.b))
        save(self.at_a + "known", os.urandom(4096))
        wait_until(lambda: contents(self.at_b + "known"), f"{label}: the known document")
        pair.settle(1)
        self.watcher = Watcher(self.at_b)
        stack.callback(self.watcher.close)

    def time(self, kind, name, change, is_there):
        self.watcher.names()
        begin = change()
        seen, told, early = self.watcher.wait(name, is_there, self.pair.tick, 120, 0.5 if self.pair.tells else 0)
        if seen is None:
            raise SystemExit(f"{self.label}: {kind}, {name}: not there after 120 s")
        self.untold += told is None
        self.early += early
        self.times[kind].append(max(seen, told or seen) - begin)

    def save(self, kind, name):
        data = os.urandom(4096)
        self.time(kind, name, lambda: save(self.at_a + name, data), lambda: contents(self.at_b + name) == data)
        return data

    def round(self, gap):
        for _ in range(self.changes["known"]):
            self.save("known", "known")
            # What follows is no burst.
            time.sleep(gap)
        for _ in range(self.changes["others"]):
            self.serial += 1
            old, new = f"new {self.serial}", f"renamed {self.serial}"
            data = self.save("new", old)

            def rename():
                begin = time.monotonic()
                os.rename(self.at_a + old, self.at_a + new)
                return begin

            def unlink():
                begin = time.monotonic()
                os.unlink(self.at_a + new)
                return begin

            self.time(
                "renamed", new, rename,
                lambda: contents(self.at_b + new) == data and not os.path.lexists(self.at_b + old))
            self.time("deleted", new, unlink, lambda: not os.path.lexists(self.at_b + new))


def changes(work, tools, options):
    ours = {"known": options.saves, "others": options.changes}
    theirs = {"known": options.peer_saves, "others": options.peer_changes}
    with contextlib.ExitStack() as stack:
        subjects = [Subject(stack, pairs.Sheaf(stack, os.path.join(work, "sheaf"), tools), "Sheaf", ours)]
        slow = Subject(
            stack, pairs.Sheaf(stack, os.path.join(work, "slow"), tools, MILLISECONDS), "Sheaf, slow line",
            {"known": options.saves, "others": 0})
        subjects.append(slow)
        for name in ("Syncthing", "rclone"):
            pair = pairs.KINDS[name](stack, os.path.join(work, name), tools)
            subjects.append(Subject(stack, pair, name, theirs))
        for turn in range(options.rounds):
            for subject in rotated(subjects, turn):
                subject.round(options.gap)
            progress(f"changes: round {turn + 1} of {options.rounds} done")
    sheaf, _, syncthing, rclone = subjects
    print(
        f"From close(2), rename(2) or unlink(2) on one machine until the other's mount has it and inotify(7) told of it "
        f"(rclone: has it), documents of 4 KiB; {len(sheaf.times['known'])} saves by Sheaf, "
        f"{len(syncthing.times['known'])} by each other:\n")
    header("change", "Sheaf", "99 of 100", "Syncthing", "rclone", "wanted")
    wanted = {"known": "60 ms; 150 ms for 99 of 100"}
    for kind, words in (
            ("known", "a known document is saved"), ("new", "a new one"), ("renamed", "one is renamed"),
            ("deleted", "one is deleted")):
        times = [middle(subject.times[kind]) for subject in (sheaf, syncthing, rclone)]
        row(words, times[0], late(sheaf.times[kind]), times[1], times[2], wanted.get(kind, "1.5 s"))
    trips = (
        (statistics.median(slow.times["known"]) - statistics.median(sheaf.times["known"])) / (2 * MILLISECONDS / 1e3))
    row(
        f"a known one, {MILLISECONDS} ms each way to the hub", middle(slow.times["known"]), late(slow.times["known"]), "",
        "", f"3 round trips more ({trips:.1f} measured)")
    for count, words in (("untold", "told nothing"), ("early", "told only before they could be read")):
        found = ", ".join(
            f"{subject.label} {getattr(subject, count)} of {sum(map(len, subject.times.values()))}"
            for subject in subjects if subject.pair.tells and getattr(subject, count))
        print(f"\nChanges of which inotify(7) {words}: {found or 'none'}.", flush=True)
    print()


# Many small files

def fill(folder, data, files, folders):
    for number in range(folders):
        os.makedirs(os.path.join(folder, f"{number:03}"))
        for index in range(number, files, folders):
            with open(os.path.join(folder, f"{number:03}", f"{index:05}"), "wb", buffering=0) as out:
                out.write(data[index])


def is_here(path):
    """Whether all contents of a document are on its machine."""
    try:
        return os.getxattr(path, "user.sheaf.local") in (b"here", b"kept")
    except OSError:
        # All contents are here where nothing tells of them.
        return True


def compare(label, *paths):
    """Ends the benchmark where what is measured did not happen: the same contents on both machines, without a fetch."""
    sample = next((os.path.join(top, names[0]) for top, _, names in os.walk(paths[-1]) if names), paths[-1])
    if not is_here(sample):
        raise SystemExit(f"{label}: the contents of {sample} are not there")
    if subprocess.run(["diff", "-rq", *paths], check=False).returncode:
        raise SystemExit(f"{label}: the machines differ")


def has_files(folder, files, folders):
    """Whether all of them are there; asked again and again, it looks only at folders that were not complete."""
    left = {os.path.join(folder, f"{number:03}"): len(range(number, files, folders)) for number in range(folders)}

    def look():
        for path in list(left):
            try:
                with os.scandir(path) as entries:
                    found = sum(len(each.name) == 5 and each.stat().st_size == 4096 for each in entries)
            except FileNotFoundError:
                return False
            if found < left[path]:
                return False
            del left[path]
        return True

    return look


def has_size(path, size):
    def look():
        try:
            return os.stat(path).st_size == size and is_here(path)
        except FileNotFoundError:
            return False

    return look


def until_there(body, is_there, what):
    """Seconds from the beginning of `body` until the other machine has what it did."""
    begin = time.monotonic()
    body()
    wait_until(is_there, what, 1800)
    return time.monotonic() - begin


def both(stack, work, tools):
    return [pairs.KINDS[name](stack, os.path.join(work, name), tools) for name in ("Sheaf", "Syncthing")]


def folder(work, tools, options):
    times = {"Sheaf": [], "Syncthing": []}
    with contextlib.ExitStack() as stack:
        subjects = both(stack, work, tools)
        for turn in range(options.rounds):
            for pair in rotated(subjects, turn):
                data = [os.urandom(4096) for _ in range(options.files)]
                at_a, at_b = (os.path.join(each, f"round {turn}") for each in (pair.a, pair.b))
                times[pair.name].append(until_there(
                    lambda: fill(at_a, data, options.files, options.folders),
                    has_files(at_b, options.files, options.folders), f"{pair.name}: the files"))
                compare(pair.name, at_a, at_b)
                pair.settle(options.files * (turn + 1))
            progress(f"folder: round {turn + 1} of {options.rounds} done")
    print(f"{options.files:,} files of 4 KiB in {options.folders} folders, until all are on the other machine:\n")
    header("", "Sheaf", "Syncthing", "times as fast", "wanted")
    row(
        "seconds", *(f"{statistics.median(each):.1f} s {spread(each)}" for each in times.values()),
        f"{ratio(times['Syncthing'], times['Sheaf']):.2f}", "1.5; goal 3")
    print(flush=True)


# One large document

def large(work, tools, options):
    size = options.mebibytes << 20
    names = ("Sheaf", "Syncthing")
    whole, edits, sent, sent_whole = ({name: [] for name in names} for _ in range(4))
    with contextlib.ExitStack() as stack:
        subjects = both(stack, work, tools)
        source = os.path.join(work, "source")
        for turn in range(options.rounds):
            with open(source, "wb") as out:
                for _ in range(options.mebibytes):
                    out.write(os.urandom(1 << 20))
            for pair in rotated(subjects, turn):
                at_a, at_b = (os.path.join(each, f"large {turn}") for each in (pair.a, pair.b))
                before = pair.sent()
                whole[pair.name].append(until_there(
                    lambda: shutil.copyfile(source, at_a), has_size(at_b, size), f"{pair.name}: the large document"))
                compare(pair.name, source, at_b)
                pair.settle(1)
                sent_whole[pair.name].append(pair.sent() - before)
                before, data = pair.sent(), os.urandom(4096)
                begin = save(at_a, data, size // 2)
                wait_until(lambda: contents(at_b, size // 2) == data, f"{pair.name}: the edit", 600)
                edits[pair.name].append(time.monotonic() - begin)
                pair.settle(1)
                sent[pair.name].append(pair.sent() - before)
                compare(pair.name, at_a, at_b)
                os.unlink(at_a)
                pair.settle(0)
            progress(f"large: round {turn + 1} of {options.rounds} done")
    print(f"A document of {options.mebibytes} MiB, on both machines, and then 4 KiB in its middle:\n")
    header("what", *names, "ratio", "wanted")
    row(
        "until the other machine has it",
        *(f"{options.mebibytes / statistics.median(whole[name]):,.0f} MiB/s {spread(whole[name])}" for name in names),
        f"{ratio(whole['Syncthing'], whole['Sheaf']):.2f}", "0.35")
    row("bytes that the first machine sent", *(f"{statistics.median(sent_whole[name]):,.0f}" for name in names), "", "")
    row(
        "4 KiB changed, until the other machine has it", *(middle(edits[name], "s") for name in names),
        f"{ratio(edits['Sheaf'], edits['Syncthing']):.3f}", "0.1")
    row(
        "bytes that the first machine sent", *(f"{statistics.median(sent[name]):,.0f}" for name in names), "", "300,000")
    print(flush=True)


# A first connect

def many(server, device, documents):
    """Makes so many small documents at a hub, a thousand in a folder."""
    def place(parent, name):
        device.serial += 1
        return {"serial": device.serial, "item": str(uuid.uuid4()), "places": [{"parent": parent, "name": name}],
                "mtime": time.time_ns()}

    made = 0
    while made < documents:
        group = [{**place(hub.ROOT_FOLDER, f"folder {made // 1000:04}"), "kind": "folder", "mode": 0o755}]
        parent, end = group[0]["item"], min(documents, made + 1000)
        while made < end:
            while made < end and len(group) < 256:
                version = {
                    "id": str(uuid.uuid4()), "cause": "save", "time": time.time_ns(),
                    "contents": base64.b64encode(f"This is document {made}.\n".encode()).decode()}
                group.append({
                    **place(parent, f"document {made:07}"), "kind": "document", "mode": 0o644, "version": version})
                made += 1
            answer = server.ask(
                "POST", "/v1/sends", {"groups": [group], "confirmed": group[0]["serial"] - 1}, device.token)
            if refused := [each for each in answer["verdicts"] if each["outcome"] != "done"]:
                raise SystemExit(f"the hub refused what shall be there: {refused[0]}")
            group = []
        if made % 100_000 == 0:
            progress(f"first: {made:,} documents are at the hub")


class Lister:
    """Lists a folder again and again, and remembers the longest that it took."""

    def __init__(self, path):
        self.path, self.longest, self.ended = path, 0, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended.wait(0.5):
            begin = time.monotonic()
            os.listdir(self.path)
            self.longest = max(self.longest, time.monotonic() - begin)

    def end(self):
        self.ended.set()
        self.thread.join()


def first(work, tools, options):
    with contextlib.ExitStack() as stack:
        place = os.path.join(work, "hub")
        os.makedirs(place)
        server = hub.Hub(tools["sheaf-hub"], place)
        stack.callback(server.end)
        many(server, server.account("alice")[0], options.documents)
        link = pairs.enrolment(server.run("account", "link", pairs.HANDLE))
        begin = time.monotonic()
        # It connects and mounts.
        laptop = pairs.Machine(stack, work, tools, "laptop", link)
        os.listdir(laptop.folder)
        answers = time.monotonic() - begin
        lister = Lister(laptop.folder)
        stack.callback(lister.end)
        while json.loads(laptop.run("status", "--json"))["documents"] < options.documents:
            if time.monotonic() - begin > 3600:
                raise SystemExit("the first connect takes more than an hour")
            # Counting them takes a while of its own.
            time.sleep(1 if options.documents < 100_000 else 5)
        known = time.monotonic() - begin
        laptop.settle(3600)
        complete = time.monotonic() - begin
        lister.end()
        found = json.loads(laptop.run("status", "--json"))["documents"]
        if found != options.documents:
            raise SystemExit(f"{found} documents came of {options.documents}")
        memory = laptop.system.memory()
    print(f"A first connect to an account with {options.documents:,} documents in folders of 1,000:\n")
    header("what", "measured", "wanted")
    row("`sheaf connect`, mount and the first `ls`", f"{answers:.2f} s", "1 s")
    row("all documents are known", f"{known:,.0f} s", "300 s")
    row("nothing is left to be fetched", f"{complete:,.0f} s", "")
    row("the longest `ls` of `Documents` meanwhile", f"{lister.longest:.2f} s", "")
    row("resident memory of the mount, peak", f"{memory[0] / 2**20:.0f} MiB", "150 MB")
    print(flush=True)


# What being connected costs

class Local:
    """Loops of the driver on a library that is connected and on one that is not."""

    def __init__(self, tools, machines, operations):
        self.tools, self.machines, self.scale = tools, machines, operations / 1000
        self.phases = [phase for phase in phases.PHASES if phase.name in LOCAL]

    def run(self, phase, which, place, times):
        where = os.path.join(self.machines[which].folder, place)
        phase.prepare(self.machines[which].system, where)
        times.setdefault(phase.name, {}).setdefault(which, []).append(phase.run(self.tools, where, self.scale))

    def alternating(self, turn, place, times):
        for phase in self.phases:
            for which in rotated(["connected", "plain"], turn):
                self.run(phase, which, place, times)

    def alone(self, which, place, times):
        for phase in self.phases:
            self.run(phase, which, place, times)


def local(work, tools, options):
    disconnected, sending, busy = {}, {}, 0
    with contextlib.ExitStack() as stack:
        pair = pairs.Sheaf(stack, os.path.join(work, "pair"), tools)
        laptop, proxy = pair.machines[0], pair.proxies[0]
        subject = Local(
            tools, {"connected": laptop, "plain": pairs.Machine(stack, work, tools, "plain")}, options.operations)
        for turn in range(options.rounds):
            proxy.stop()
            wait_until(lambda: laptop.status()["state"] != "connected", "the end of the connection")
            subject.alternating(turn, f"disconnected {turn}", disconnected)
            proxy.go()
            pair.settle(0)

            def send():
                nonlocal busy
                at_a = os.path.join(laptop.folder, "large")
                with open(at_a, "wb") as out:
                    for _ in range(options.sending):
                        out.write(os.urandom(1 << 20))
                subject.alone("connected", f"sending {turn}", sending)
                busy += laptop.status()["unsent"] > 0
                pair.settle(0)
                os.unlink(at_a)
                pair.settle(0)

            # Not at once: sending takes a processor from whatever else runs on this machine.
            for step in rotated([send, lambda: subject.alone("plain", f"sending {turn}", sending)], turn):
                step()
            progress(f"local: round {turn + 1} of {options.rounds} done")
    print("Operations in the mount of a connected library, by those in one that is not connected:\n")
    header("operation", "not connected", "disconnected", "sending")
    totals = {"disconnected": [], "sending": []}
    for phase in subject.phases:
        cells = []
        for name, times in (("disconnected", disconnected), ("sending", sending)):
            cells.append(ratio(times[phase.name]["connected"], times[phase.name]["plain"]))
            totals[name].append(cells[-1])
        plain = disconnected[phase.name]["plain"] + sending[phase.name]["plain"]
        row(
            f"{phase.name}: {phase.does}", f"{statistics.median(plain) * 1e6:.1f} µs", *(f"{cell:.2f}" for cell in cells))
    row("geometric mean", "", *(f"{statistics.geometric_mean(values):.2f}" for values in totals.values()))
    row("wanted, at most", "", "1.1", "1.3")
    print(
        f"\nDisconnected: its hub cannot be reached. Sending: it sends a document of {options.sending} MiB, and what the "
        f"operations make. It was still sending at the end in {busy} of {options.rounds} rounds.\n", flush=True)


# Idle

def idle(work, tools, options):
    with contextlib.ExitStack() as stack:
        subjects = both(stack, work, tools)
        for pair in subjects:
            save(os.path.join(pair.a, "document"), os.urandom(4096))
            wait_until(lambda: contents(os.path.join(pair.b, "document")), f"{pair.name}: the document")
            pair.settle(1)
        # What follows a change is no idling.
        time.sleep(30)
        before = [pair.proxies[0].count() for pair in subjects]
        time.sleep(60 * options.minutes)
        after = [pair.proxies[0].count() for pair in subjects]
    print(f"What an idle machine sends and gets, in {options.minutes} minutes:\n")
    header("", "to it, a minute", "from it, a minute", "times that it got something", "wanted")
    for pair, begin, end in zip(subjects, before, after):
        up, down, parts = (late - early for early, late in zip(begin, end))
        row(
            pair.name, f"{down / options.minutes:,.0f} bytes", f"{up / options.minutes:,.0f} bytes", parts,
            "one heartbeat a minute, 500 bytes" if pair.name == "Sheaf" else "")
    print(flush=True)


PHASES = {
    "changes": changes, "folder": folder, "large": large, "first": first, "local": local, "idle": idle}

#: Each option's number, the one of --quick, and what it is.
NUMBERS = {
    "rounds": (5, 2, "rounds of which the median is told"),
    "saves": (40, 25, "saves of a known document by Sheaf, each round"),
    "changes": (5, 3, "new, renamed and deleted documents by Sheaf, each round"),
    "peer_saves": (4, 2, "saves by each other, each round"),
    "peer_changes": (1, 1, "new, renamed and deleted documents by each other, each round"),
    "files": (10_000, 1_000, "small files"),
    "folders": (100, 10, "folders with them"),
    "mebibytes": (1024, 128, "the large document"),
    "documents": (1_000_000, 2_000, "documents of the first connect"),
    "operations": (1000, 300, "local operations of each kind, each round"),
    "sending": (512, 128, "MiB that are sent during local operations"),
    "minutes": (5, 1, "minutes of idling"),
}


def arguments():
    parser = argparse.ArgumentParser(prog="mount-scripts/benchmark --replica", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers: a glance, and whether it works")
    parser.add_argument("--only", action="append", choices=list(PHASES), metavar="PHASE",
                        help=f"only these phases: {', '.join(PHASES)}")
    parser.add_argument("--without", action="append", default=[], choices=list(PHASES), metavar="PHASE",
                        help="all phases but these")
    for name, (normal, quick, what) in NUMBERS.items():
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=int, metavar="N", help=f"{what} (default {normal:,}; --quick: {quick:,})")
    parser.add_argument(
        "--gap", type=float, default=0.1, metavar="SECONDS", help="between two saves of the known document (default 0.1)")
    for name in ("work", "sheaf", "sheaf-hub", "syncthing", "rclone"):
        parser.add_argument(f"--{name}", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    for name, (normal, quick, _) in NUMBERS.items():
        if getattr(options, name) is None:
            setattr(options, name, quick if options.quick else normal)
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} is 1 at least")
    return options


def main():
    options = arguments()
    # So that mounts and servers end with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # A device's key lies below its machine's home.
    os.environ.pop("XDG_STATE_HOME", None)
    tools = {name: getattr(options, name.replace("-", "_")) for name in ("sheaf", "sheaf-hub", "syncthing", "rclone")}
    tools["driver"] = os.path.join(options.work, "driver")
    print(f"{machine.about()}. Medians of {options.rounds} rounds.\n", flush=True)
    for name in options.only or PHASES:
        if name in options.without:
            continue
        begin = time.monotonic()
        work = os.path.join(options.work, name)
        os.makedirs(work)
        PHASES[name](work, tools, options)
        # All of it would fill a disk.
        shutil.rmtree(work)
        progress(f"{name}: {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
