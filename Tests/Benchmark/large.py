"""What a large document costs, and what others wait for while it is stored."""

import json
import os
import statistics
import subprocess
import time

from daemon import Daemon, header, megabytes, row, timed


def write_large(path, mebibytes):
    """Seconds that writing so many MiB of random bytes and closing takes, without the making of them."""
    seconds = 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for _ in range(mebibytes):
        data = os.urandom(1 << 20)
        seconds += timed(lambda: os.write(descriptor, data))
    return seconds + timed(lambda: os.close(descriptor))


def large(work, tools, quick):
    mebibytes = 1024 if quick else 10_240
    daemon = Daemon(work, tools, "large").mount()
    path = os.path.join(daemon.folder, "large")

    def stored():
        """Bytes of all chunks, once everything that was closed is stored."""
        output = subprocess.run(
            [tools["sheaf"], "status", "--json", "--library", daemon.library], check=True, stdout=subprocess.PIPE,
            env=daemon.system.environment())
        return json.loads(output.stdout)["storedBytes"]

    writing = write_large(path, mebibytes)
    storing = timed(stored)
    closing, added = [], []
    for number in range(5):
        before = stored()
        descriptor = os.open(path, os.O_WRONLY)
        os.pwrite(descriptor, os.urandom(4096), (mebibytes << 20) // 2 + number * 1_234_567)
        closing.append(timed(lambda: os.close(descriptor)))
        added.append(stored() - before)
    before, length = stored(), min(mebibytes, 1024) << 20
    source = os.open(path, os.O_RDONLY)
    target = os.open(path + " copy", os.O_WRONLY | os.O_CREAT, 0o644)
    os.posix_fadvise(source, 0, 0, os.POSIX_FADV_RANDOM)

    def copy():
        rest = length
        while rest > 0:
            rest -= os.copy_file_range(source, target, rest)

    copying = timed(copy) + timed(lambda: os.close(target))
    os.close(source)
    copied = stored() - before
    peak, _ = daemon.resident()
    print(f"A document of {mebibytes >> 10} GiB of random bytes, written 1 MiB at a time and edited; medians of 5 edits.\n")
    header("what", "measured", "wanted")
    row("writing and closing it", f"{writing:.0f} s, {mebibytes / writing:.0f} MiB/s", "")
    row("until it is stored after that", f"{storing:.1f} s", "")
    row("closing after an edit of 4 KiB in the middle", f"{statistics.median(closing) * 1000:.1f} ms", "100 ms")
    row("chunks added by one edit", f"{statistics.median(added):,} bytes", "1 MB")
    row(f"copying {length >> 30} GiB with `copy_file_range`", f"{copying:.3f} s, {copied:,} bytes of chunks", "no data")
    row("resident memory, peak of all that", megabytes(peak), "150 MB")
    beside(daemon, 5 if not quick else 1)
    daemon.unmount()


def beside(daemon, rounds):
    """What others wait for while a save of 256 MiB is stored behind its writer's back."""
    waits = []
    for number in range(rounds):
        write_large(os.path.join(daemon.folder, f"stored {number}"), 256)
        end = time.perf_counter() + 2
        while time.perf_counter() < end:
            def create():
                path = os.path.join(daemon.folder, f"beside {number} {len(waits)}")
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
                os.write(descriptor, b"x" * 4096)
                os.close(descriptor)

            waits.append(timed(create))
    waits.sort()
    print(f"\nFiles of 4 KiB made in the 2 s after closing a document of 256 MiB, {rounds} times: {len(waits):,}; "
          f"{statistics.median(waits) * 1000:.2f} ms for half of them, {waits[len(waits) * 99 // 100] * 1000:.1f} ms for "
          f"99 of 100, the longest {waits[-1] * 1000:.0f} ms.")
