"""A mounted library with the figures of its process, and tables."""

import os
import subprocess
import time

import file_systems


class Daemon:
    """A mounted library with the figures of its process."""

    def __init__(self, work, tools, name="sheaf"):
        self.tools = tools
        self.system = file_systems.Sheaf(name, work, tools)
        self.library = self.system.library
        self.folder = self.system.folder

    def mount(self):
        self.system.mount()
        return self

    def unmount(self):
        self.system.unmount()

    def run(self, *command, **options):
        return subprocess.run(
            [self.tools["sheaf"], *command, "--library", self.library], check=True, stdout=subprocess.DEVNULL,
            env=self.system.environment(), **options)

    def make(self, *what):
        if not os.path.exists(self.library):
            # The account is that of mounts.
            self.mount()
            self.unmount()
        subprocess.run([self.tools["large-library"], self.library, *map(str, what)], check=True, env=self.system.environment())

    @property
    def process(self):
        return self.system.process.pid

    def resident(self):
        """Peak and present resident bytes."""
        return self.system.memory()

    def written(self):
        """Bytes that the process had sent to the disk, once it does nothing more: what is cached is synced within seconds."""
        last = -1
        while True:
            with open(f"/proc/{self.process}/io") as file:
                figures = dict(line.split(": ") for line in file)
            now = int(figures["write_bytes"])
            if now == last:
                return now
            last = now
            time.sleep(3)

    def wakeups(self):
        """How often threads of the process waited and went on."""
        total = 0
        for task in os.listdir(f"/proc/{self.process}/task"):
            with open(f"/proc/{self.process}/task/{task}/status") as file:
                total += sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
        return total


def timed(body):
    begin = time.perf_counter()
    body()
    return time.perf_counter() - begin


def megabytes(count):
    return f"{count / 1e6:,.0f} MB"


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def header(*cells):
    row(*cells)
    print("|---" + "|---:" * (len(cells) - 1) + "|")
