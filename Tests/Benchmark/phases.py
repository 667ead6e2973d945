"""The phases: what each does, how often, and what a ratio to passthrough_ll may be at most."""

import os
import subprocess


class JobFailed(Exception):
    """A program that a file system did not let finish."""


class Phase:
    """A loop of the driver, in a folder of its own run."""

    def __init__(self, name, does, count, target=None, group="files", against="passthrough_ll"):
        self.name = name
        self.does = does
        self.count = count
        self.target = target
        self.group = group
        self.against = against
        self.deletes = name in ("safe-save", "rename", "unlink")
        #: What one operation is; large files are told in MiB.
        self.unit = "MiB" if name in ("write-large", "read-cold", "read-hot") else "operation"

    def prepare(self, file_system, folder):
        if self.name == "read-cold":
            file_system.drop_caches(folder)
        os.makedirs(folder, exist_ok=True)

    def run(self, tools, folder, scale):
        """Seconds of each operation."""
        count = max(10, int(self.count * scale))
        output = subprocess.run(
            [tools["driver"], self.name, str(count)], cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout
        seconds, operations = output.split()
        return float(seconds) / int(operations)


class Job(Phase):
    """A program, timed from its start to its end."""

    def __init__(self, name, does, command, before=None):
        super().__init__(name, does, 1, target=1.2, group="jobs")
        self.command = command
        self.before = before
        self.unit = "run"

    def prepare(self, file_system, folder):
        os.makedirs(folder, exist_ok=True)
        if self.before:
            self.shell(self.before, folder, self.tools)

    def run(self, tools, folder, scale):
        return self.shell("TIMEFORMAT='real %3R'; time { " + self.command + "; }", folder, tools)

    @staticmethod
    def shell(command, folder, tools):
        environment = {**os.environ, "TREE": tools["tree"], "LC_ALL": "C", "GIT_CONFIG_GLOBAL": "/dev/null"}
        result = subprocess.run(
            ["bash", "-euc", command], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True)
        if result.returncode != 0:
            raise JobFailed(f"{command} failed in {folder}: {result.stderr}")
        times = [line.split()[1] for line in result.stderr.splitlines() if line.startswith("real ")]
        return float(times[-1]) if times else 0.0


GIT = "git -c user.name=A -c user.email=a@example.com -c core.fsync=none"

PHASES = [
    Phase("create", "make a file, write 4 KiB, close it", 1000, 1.0),
    Phase("stat-first", "stat(2) of each file, the first since it was written", 1000, 1.0),
    Phase("stat-again", "stat(2) of each again; the kernel answers", 1000, 1.2, against="ext4"),
    Phase("stat-missing", "stat(2) of a hundred absent names, ten times each", 1000, 0.3),
    Phase("read", "open each file, read 4 KiB, close it", 1000, 1.0),
    Phase("list", "list the folder with stat(2) of each entry", 1000),
    Phase("list-again", "list it again; the kernel answers", 1000, 1.2, against="ext4"),
    Phase("setxattr", "set a 5-byte attribute of each file", 1000, 1.2),
    Phase("getxattr", "read it", 1000, 1.0),
    Phase("safe-save", "write 4 KiB to a temporary file and rename it over each file", 1000, 1.0),
    Phase("append-fsync", "append 512 bytes to one file and fsync(2), each time", 200, 1.2),
    Phase("rename", "rename each file within the folder", 1000, 1.2),
    Phase("unlink", "unlink each file", 1000, 1.2),
    Phase("mkdir", "make a folder", 1000, 1.0),
    Phase("write-large", "write a 256 MiB file, 1 MiB at a time, and close it", 256, 1.0, group="large"),
    Phase("read-cold", "read it with empty caches, 1 MiB at a time", 256, group="large"),
    Phase("read-hot", "read it again", 256, 1.0, group="large"),
    Phase("random-write", "write 4 KiB at random places of it, closing it at the end", 4096, 1.0, group="large"),
    Phase("random-write-fsync", "the same with fsync(2) after each", 100, 1.0, group="large"),
    Job("untar", "unpack the tree", 'tar -xf "$TREE.tar"'),
    Job("git-status", "git status of it, committed", "git status --short",
        f"{GIT} init -q && {GIT} add -A && {GIT} commit -qm tree && {GIT} status --short"),
    Job("grep", "grep -r for a word", "grep -r ChannelHandler . | wc -l"),
    Job("rsync", "rsync -a of the tree into the file system", 'rsync -a "$TREE/" copy/'),
    Job("compile", "compile its C with gcc -O1 and make a library of it",
        "cd nio && for f in Sources/CNIOLLHTTP/*.c Sources/CNIOSHA1/*.c Sources/CNIOLinux/*.c; do "
        "gcc -w -D_GNU_SOURCE -O1 -ISources/CNIOLLHTTP/include -ISources/CNIOSHA1/include -ISources/CNIOLinux/include "
        "-c $f -o $(basename $f).o; done; ar rcs libnio.a ./*.o"),
]