"""What it costs to have much: many documents, long histories, large folders and documents; and what is written, idle, and
done at once."""

import os
import random
import shutil
import statistics
import subprocess
import time

from daemon import Daemon, header, megabytes, row, timed
from large import large


# -- Many documents


def documents(work, tools, quick):
    count = 20_000 if quick else 1_000_000
    daemon = Daemon(work, tools, "documents")
    making = timed(lambda: daemon.make("documents", count))
    firsts = []
    for _ in range(5):
        begin = time.perf_counter()
        # The command, as a person gives it: it returns once the mount answers.
        subprocess.run(
            [tools["sheaf"], "mount", "--library", daemon.library, daemon.system.mountpoint], check=True,
            stdout=subprocess.DEVNULL, env=daemon.system.environment())
        os.listdir(daemon.folder)
        firsts.append(time.perf_counter() - begin)
        subprocess.run(
            [tools["sheaf"], "unmount", daemon.system.mountpoint], check=True, stdout=subprocess.DEVNULL,
            env=daemon.system.environment())
    daemon.mount()
    begin = time.perf_counter()
    found = subprocess.run(
        f"find '{daemon.folder}' -type f -size +0 | wc -l", shell=True, check=True, stdout=subprocess.PIPE, text=True)
    finding = time.perf_counter() - begin
    peak, after = daemon.resident()
    daemon.unmount()
    if int(found.stdout) != count:
        raise SystemExit(f"find found {found.stdout.strip()} documents of {count}")
    checking = timed(lambda: daemon.run("check"))
    status = timed(lambda: daemon.run("status"))
    print(f"A library of {count:,} documents ({megabytes(os.stat(daemon.library).st_size)}, made in {making:.0f} s).\n")
    header("what", "measured", "wanted")
    row("`sheaf mount` and the first `ls`, median of 5", f"{statistics.median(firsts):.2f} s", "0.3 s")
    row("`find -type f -size +0` of all", f"{finding:.1f} s", "")
    row("resident memory, peak of it", megabytes(peak), "100 MB")
    row("resident memory afterwards", megabytes(after), "100 MB")
    row("`sheaf check`", f"{checking:.1f} s", "")
    row("`sheaf status`", f"{status:.2f} s", "")


# -- Long histories and large folders


def alternating(subjects, operations, rounds):
    """Median microseconds of each operation on each subject, which take turns so that all meet the same machine."""
    times = {name: {subject: [] for subject in subjects} for name in operations}
    order = list(subjects)
    for turn in range(rounds):
        random.shuffle(order)
        for subject in order:
            for name, operation in operations.items():
                times[name][subject].append(operation(subject, turn))
    return {name: {subject: statistics.median(values) for subject, values in of.items()} for name, of in times.items()}


def compared(title, subjects, medians):
    header(title, *(f"{subject:,}" for subject in subjects), "most to least")
    for name, of in medians.items():
        row(name, *(f"{of[subject] * 1e6:.0f} µs" for subject in subjects), f"{of[subjects[-1]] / of[subjects[0]]:.2f}")


def histories(work, tools, quick):
    counts = [10, 1000, 5000] if quick else [10, 1000, 100_000]
    daemon = Daemon(work, tools, "histories")
    for count in counts:
        daemon.make("versions", f"text {count}", count)
    daemon.mount()

    def path(count):
        return os.path.join(daemon.folder, f"text {count}")

    def save(count, turn):
        data = os.urandom(4096)

        def body():
            descriptor = os.open(path(count), os.O_WRONLY | os.O_TRUNC)
            os.write(descriptor, data)
            os.close(descriptor)

        return timed(body)

    def safe_save(count, turn):
        data = os.urandom(4096)

        def body():
            descriptor = os.open(path(count) + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            os.write(descriptor, data)
            os.close(descriptor)
            os.rename(path(count) + ".tmp", path(count))

        return timed(body)

    def read(count, turn):
        def body():
            descriptor = os.open(path(count), os.O_RDONLY)
            os.read(descriptor, 4096)
            os.close(descriptor)

        return timed(body)

    operations = {
        "save in place": save, "stat after it": lambda count, turn: timed(lambda: os.stat(path(count))),
        "open, read, close": read, "safe save": safe_save,
        "stat after a safe save": lambda count, turn: timed(lambda: os.stat(path(count))),
    }
    medians = alternating(counts, operations, 60 if quick else 300)
    daemon.unmount()
    print("Versions behind the document, 4 KiB each; medians, all three documents in turn.\n")
    compared("versions", counts, medians)


def folders(work, tools, quick):
    counts = [100, 1000, 5000] if quick else [100, 10_000, 100_000]
    daemon = Daemon(work, tools, "folders")
    for count in counts:
        daemon.make("entries", f"folder {count}", count)
    daemon.mount()

    def entry(count, turn):
        # Of the small folder all are known soon: what was read before is read again in the large ones, too.
        return os.path.join(daemon.folder, f"folder {count}", f"entry {turn * 37 % 100}")

    def new(count, turn):
        return os.path.join(daemon.folder, f"folder {count}", f"new {turn}")

    def create(count, turn):
        def body():
            descriptor = os.open(new(count, turn), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            os.write(descriptor, b"x" * 4096)
            os.close(descriptor)

        return timed(body)

    def save(count, turn):
        def body():
            descriptor = os.open(entry(count, turn), os.O_WRONLY | os.O_TRUNC)
            os.write(descriptor, b"%d" % turn)
            os.close(descriptor)

        return timed(body)

    def read(count, turn):
        def body():
            descriptor = os.open(entry(count, turn), os.O_RDONLY)
            os.read(descriptor, 4096)
            os.close(descriptor)

        return timed(body)

    operations = {
        "create": create, "stat after it": lambda count, turn: timed(lambda: os.stat(new(count, turn))),
        "save in place": save, "open, read, close": read,
        "rename": lambda count, turn: timed(lambda: os.rename(new(count, turn), new(count, turn) + " renamed")),
        "unlink": lambda count, turn: timed(lambda: os.unlink(new(count, turn) + " renamed")),
    }
    medians = alternating(counts, operations, 60 if quick else 300)
    daemon.unmount()
    print("Entries of the folder; medians, all three folders in turn.\n")
    compared("entries", counts, medians)


# -- What is written


def amplification(work, tools, quick):
    daemon = Daemon(work, tools, "amplification").mount()
    scale = 0.2 if quick else 1
    rows = []

    def measured(name, saved, body):
        before = daemon.written()
        body()
        rows.append((name, saved, daemon.written() - before))

    def whole(name, data):
        with open(os.path.join(daemon.folder, name), "wb") as file:
            file.write(data)

    count = int(1000 * scale)
    measured("4 KiB, a new document each", count * 4096, lambda: [whole(f"new {n}", os.urandom(4096)) for n in range(count)])
    measured("4 KiB, one document again and again", count * 4096, lambda: [whole("same", os.urandom(4096)) for _ in range(count)])
    base = bytearray(os.urandom(1 << 20))

    def edit():
        for _ in range(count // 10):
            place = random.randrange(len(base) - 100)
            base[place:place + 100] = os.urandom(100)
            whole("text", base)

    whole("text", base)
    measured("1 MiB with 100 bytes changed, written anew", (count // 10) << 20, edit)
    large = int(256 * scale)

    def write_large():
        with open(os.path.join(daemon.folder, "large"), "wb", buffering=0) as file:
            for _ in range(large):
                file.write(os.urandom(1 << 20))

    measured(f"a document of {large} MiB", large << 20, write_large)

    def pages():
        for _ in range(count // 10):
            descriptor = os.open(os.path.join(daemon.folder, "large"), os.O_WRONLY)
            os.pwrite(descriptor, os.urandom(4096), random.randrange((large << 20) - 4096))
            os.close(descriptor)

    measured("4 KiB of it at random, closed each time", count // 10 * 4096, pages)

    def synced():
        descriptor = os.open(os.path.join(daemon.folder, "log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for _ in range(count // 10):
            os.write(descriptor, os.urandom(512))
            os.fsync(descriptor)
        os.close(descriptor)

    measured("512 bytes appended, fsync(2) each time", count // 10 * 512, synced)
    daemon.unmount()
    print("Bytes that the process had sent to the disk (`write_bytes` of /proc/PID/io), everything synced and copied.\n")
    header("saved", "bytes saved", "bytes written", "ratio")
    for name, saved, written in rows:
        row(name, f"{saved:,}", f"{written:,}", f"{written / saved:.1f}")


# -- Doing nothing, and two at once


def idle(work, tools, quick):
    daemon = Daemon(work, tools, "idle").mount()
    with open(os.path.join(daemon.folder, "text"), "w") as file:
        file.write("some text")
    seconds = 10 if quick else 60
    # What a save leaves to be done is done within seconds; who made a name may yet take it back for 15 s.
    time.sleep(20)
    processor, wakeups = daemon.system.processor_seconds(), daemon.wakeups()
    time.sleep(seconds)
    processor, wakeups = daemon.system.processor_seconds() - processor, daemon.wakeups() - wakeups
    daemon.unmount()
    print(f"An idle mount over {seconds} s: {processor * 1000:.0f} ms of processor time, {wakeups} times that a thread went on.")


def together(work, tools, quick):
    daemon = Daemon(work, tools, "together").mount()
    daemon.run("account", "add", "bob@example.com")
    other = os.path.join(daemon.system.work, "bob")
    os.makedirs(other)
    subprocess.run(
        [tools["sheaf"], "mount", "--library", daemon.library, "--as", "bob@example.com", other], check=True,
        stdout=subprocess.DEVNULL, env=daemon.system.environment())
    count = 200 if quick else 1000
    places = {"first": daemon.folder, "second": os.path.join(other, "Documents")}

    def start(phase, place, turn):
        folder = os.path.join(places[place], f"{phase}-{turn}")
        os.makedirs(folder, exist_ok=True)
        if phase != "create":
            subprocess.run([tools["driver"], "create", str(count)], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return lambda: subprocess.Popen(
            [tools["driver"], phase, str(count)], cwd=folder, stdout=subprocess.PIPE, text=True)

    def seconds(process):
        output, _ = process.communicate()
        total, operations = output.split()
        return float(total) / int(operations)

    print("Two mounts of two accounts of one library; an operation's time, median of 5.\n")
    header("phase", "one alone", "each of two at once", "both together, of one alone")
    for phase in ("create", "safe-save", "read"):
        alone, both = [], []
        for turn in range(5):
            alone.append(seconds(start(phase, "first", f"alone-{turn}")()))
            starters = [start(phase, place, f"both-{turn}") for place in places]
            both.append(statistics.mean(seconds(process) for process in [starter() for starter in starters]))
        one, two = statistics.median(alone), statistics.median(both)
        row(phase, f"{one * 1e6:.0f} µs", f"{two * 1e6:.0f} µs", f"{2 * one / two:.2f}")
    subprocess.run(
        [tools["sheaf"], "unmount", other], check=True, stdout=subprocess.DEVNULL, env=daemon.system.environment())
    daemon.unmount()


PARTS = {
    "documents": documents, "histories": histories, "folders": folders, "large": large, "amplification": amplification,
    "idle": idle, "together": together,
}


def main(work, tools, parts, quick):
    for name in parts or PARTS:
        folder = os.path.join(work, "scale")
        print(f"### {name}\n")
        PARTS[name](folder, tools, quick)
        print(flush=True)
        shutil.rmtree(folder)
