"""What a program leaves that rewrites one document again and again: `mount-scripts/benchmark --rewrites`."""

import argparse
import os
import subprocess
import sys
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--sheaf", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--rate", type=int, default=100, help="saves a second")
    parser.add_argument("--bytes", type=int, default=1_000_000, help="of each save, random ones")
    return parser.parse_args()


def main():
    options = arguments()
    folder, mountpoint = os.path.join(options.work, "library"), os.path.join(options.work, "mount")
    os.mkdir(folder)
    os.mkdir(mountpoint)
    library = os.path.join(folder, "library.sqlite")

    def sheaf(*words):
        return subprocess.run([options.sheaf, *words], check=True, capture_output=True, text=True, timeout=120).stdout

    def size():
        """Megabytes of the library and of the files beside it."""
        files = [os.path.join(folder, name) for name in os.listdir(folder)]
        return sum(os.lstat(file).st_blocks * 512 for file in files) / 1e6

    sheaf("mount", mountpoint, "--library", library, "--as", "alice@example.com")
    try:
        document = os.path.join(mountpoint, "Documents", "document")
        begin, saves, told = time.monotonic(), 0, 0

        def tell(when):
            versions = len(os.listdir(os.path.join(os.path.dirname(document), ".versions", "document")))
            print(f"{when}: {saves} saves, {versions} versions, {size():.0f} MB", flush=True)

        while (passed := time.monotonic() - begin) < options.seconds:
            if passed - told >= 300:
                told = passed
                tell(f"after {passed:.0f} s")
            if (ahead := saves / options.rate - passed) > 0:
                time.sleep(ahead)
            with open(document, "wb") as file:
                file.write(os.urandom(options.bytes))
            saves += 1
        tell(f"at the end, after {time.monotonic() - begin:.0f} s")
        for minute in (1, 2, 5, 10):
            time.sleep(max(0, begin + options.seconds + minute * 60 - time.monotonic()))
            tell(f"{minute} min later")
        print(sheaf("check", "--library", library).strip())
    finally:
        subprocess.run([options.sheaf, "unmount", mountpoint], timeout=120)


if __name__ == "__main__":
    sys.exit(main())
