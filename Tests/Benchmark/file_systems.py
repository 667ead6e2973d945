"""The file systems that are compared: how each is mounted, where it keeps its data, and which process serves it."""

import os
import stat
import subprocess
import time


class FileSystem:
    """One file system of a run. `folder` is where programs work, `backing` where the bytes end."""

    def __init__(self, name, work, tools):
        self.name = name
        self.work = os.path.join(work, "mounts", name)
        self.tools = tools
        self.backing = os.path.join(self.work, "backing")
        self.mountpoint = os.path.join(self.work, "mount")
        self.folder = self.mountpoint
        self.process = None
        #: Peak and last resident bytes of each run.
        self.memories = []
        for path in (self.backing, self.mountpoint):
            os.makedirs(path)

    def mount(self):
        self.prepare()
        command = self.command()
        if command is None:
            self.folder = self.backing
            return
        device = os.stat(self.mountpoint).st_dev
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment())
        deadline = time.monotonic() + 60
        while os.stat(self.mountpoint).st_dev == device:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{self.name} could not be mounted: {' '.join(command)}")
            time.sleep(0.02)
        os.stat(self.folder)

    def unmount(self):
        if self.process is None:
            return
        subprocess.run(["fusermount3", "-u", self.mountpoint], check=True)
        self.process.wait()
        self.process = None

    def prepare(self):
        pass

    def environment(self):
        return None

    def processor_seconds(self):
        """User and system time of the process so far; 0 where the kernel does the work for the caller."""
        if self.process is None:
            return 0.0
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self):
        """Peak and present resident bytes of the process."""
        if self.process is None:
            return 0, 0
        with open(f"/proc/{self.process.pid}/status") as file:
            lines = dict(line.split(":", 1) for line in file)
        return tuple(int(lines[key].split()[0]) * 1024 for key in ("VmHWM", "VmRSS"))

    def drop_caches(self, folder):
        """Takes what lies below this file system, and its own pages of `folder`, out of the page cache."""
        for top in {folder, self.backing}:
            for parent, _, names in os.walk(top):
                for path in (os.path.join(parent, name) for name in names):
                    if not stat.S_ISREG(os.lstat(path).st_mode):
                        continue
                    descriptor = os.open(path, os.O_RDONLY)
                    os.fdatasync(descriptor)
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                    os.close(descriptor)


class Ext4(FileSystem):
    def command(self):
        return None


class Passthrough(FileSystem):
    def command(self):
        options = f"source={self.backing},cache=always,xattr,timeout=3600"
        return [self.tools["passthrough_ll"], "-f", "-o", options, self.mountpoint]


class Bindfs(FileSystem):
    def command(self):
        return ["bindfs", "-f", "--multithreaded", self.backing, self.mountpoint]


class Gocryptfs(FileSystem):
    password = ["-q", "-extpass", "echo", "-extpass", "benchmark"]

    def prepare(self):
        if not os.path.exists(os.path.join(self.backing, "gocryptfs.conf")):
            subprocess.run(["gocryptfs", "-init", "-scryptn", "10", *self.password, self.backing], check=True)

    def command(self):
        return ["gocryptfs", "-fg", *self.password, self.backing, self.mountpoint]


class Sheaf(FileSystem):
    def __init__(self, name, work, tools):
        super().__init__(name, work, tools)
        self.library = os.path.join(self.backing, "library.sqlite")
        self.folder = os.path.join(self.mountpoint, "Documents")

    def command(self):
        return [self.tools["sheaf"], "mount", "--library", self.library, "--foreground", self.mountpoint]

    def environment(self):
        # Under its own home, so that nothing of the person's is touched.
        return {**os.environ, "HOME": self.work, "XDG_DATA_HOME": self.work}

    def unmount(self):
        if self.process is None:
            return
        subprocess.run(
            [self.tools["sheaf"], "unmount", self.mountpoint], check=True, stdout=subprocess.DEVNULL,
            env=self.environment())
        self.process.wait()
        self.process = None


ALL = {"ext4": Ext4, "passthrough_ll": Passthrough, "sheaf": Sheaf, "gocryptfs": Gocryptfs, "bindfs": Bindfs}
