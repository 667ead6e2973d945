"""Two machines that have one folder: by Sheaf and a hub, by Syncthing, and by rclone mounts of one WebDAV server.

All run on this machine, each with a home of its own, and talk through a proxy that counts their bytes."""

import http.client
import json
import os
import re
import subprocess
import sys
import time
import urllib.parse

import file_systems
import hub

HANDLE = "alice@hub.example"


class Proxy:
    def __init__(self, stack, port, target, milliseconds=0):
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(os.path.dirname(__file__), "proxy.py"), str(port), str(target), str(milliseconds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        stack.callback(self.end)
        self.port = port
        self.answer("ready")

    def answer(self, expected=None):
        line = self.process.stdout.readline().strip()
        if not line or expected not in (None, line):
            raise SystemExit(f"the proxy at {self.port} ended")
        return line

    def ask(self, command, expected=None):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.answer(expected)

    def stop(self):
        self.ask("stop", "done")

    def go(self):
        self.ask("go", "done")

    def count(self):
        """Bytes from the machine, bytes to it, and in how many parts those came."""
        return tuple(int(word) for word in self.ask("count").split())

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def leave(process, mountpoint, unmount, environment=None):
    """Takes a mount away, whatever state its process is in."""
    try:
        subprocess.run(unmount, check=True, stdout=subprocess.DEVNULL, env=environment, timeout=60)
        process.wait(60)
    except (OSError, subprocess.SubprocessError):
        subprocess.run(["fusermount3", "-u", "-z", "-q", mountpoint], check=False)
        process.kill()
        process.wait()


class Machine:
    """A library with a home of its own; mounted, and connected where a link is given."""

    def __init__(self, stack, work, tools, name, link=None):
        self.name, self.tools = name, tools
        self.system = file_systems.Sheaf(name, work, tools)
        self.folder = self.system.folder
        if link is not None:
            self.run("connect", link, "--name", name)
        stack.callback(self.end)
        self.system.mount()

    def run(self, *command):
        ran = subprocess.run(
            [self.tools["sheaf"], *command, "--library", self.system.library], capture_output=True, text=True,
            env=self.system.environment(), check=False)
        if ran.returncode:
            raise SystemExit(f"{self.name}: sheaf {command[0]}: {ran.stderr.strip() or ran.stdout.strip()}")
        return ran.stdout

    def status(self):
        return json.loads(self.run("sync", "--json"))

    def settle(self, patience):
        self.run("sync", "--wait", str(patience))

    def end(self):
        if self.system.process is not None:
            leave(
                self.system.process, self.system.mountpoint,
                [self.tools["sheaf"], "unmount", self.system.mountpoint], self.system.environment())
            self.system.process = None


def serve_hub(stack, tools, folder, proxies):
    """A hub whose machines dial it at the ports of proxies."""
    os.makedirs(folder)
    place = os.path.join(folder, "hub")
    addresses = [word for port in proxies for word in ("--address", f"127.0.0.1:{port}")]

    def run(*arguments):
        return subprocess.run(
            [tools["sheaf-hub"], *arguments, "--hub", place], check=True, capture_output=True, text=True).stdout

    run("init", "--self-signed", *addresses)
    port = hub.free_port()
    process = hub.Process(
        "sheaf-hub", [tools["sheaf-hub"], "serve", "--hub", place, "--listen", f"127.0.0.1:{port}"], port,
        os.path.join(folder, "log"))
    stack.callback(process.end)
    return run, port


def enrolment(text, port=None):
    """The link in what a command printed, with the address of one of the hub's proxies."""
    link = re.search(r"https://\S+", text).group()
    return link if port is None else re.sub(r"//[^/]+/", f"//127.0.0.1:{port}/", link)


class Pair:
    """Two folders, `a` and `b`; what is done in `a` comes to `b`."""

    name = ""
    #: Whether inotify(7) is expected to tell of what another machine did.
    tells = True
    #: Seconds between two looks at whether it is there.
    tick = 0.005

    def settle(self, files, patience=1800):
        """Returns once `b` has so many files and everything else that `a` has."""
        raise NotImplementedError

    def sent(self):
        """Bytes that the first machine has sent so far."""
        return self.proxies[0].count()[0]


class Sheaf(Pair):
    name = "Sheaf"

    def __init__(self, stack, work, tools, milliseconds=0):
        ports = [hub.free_port(), hub.free_port()]
        run, port = serve_hub(stack, tools, os.path.join(work, "hub"), ports)
        self.proxies = [Proxy(stack, each, port, milliseconds) for each in ports]
        links = [run("account", "add", HANDLE), run("account", "link", HANDLE)]
        self.machines = [
            Machine(stack, work, tools, name, enrolment(link, each))
            for name, link, each in zip(("laptop", "desktop"), links, ports)]
        self.a, self.b = (machine.folder for machine in self.machines)
        self.settle(0)

    def settle(self, files, patience=1800):
        for machine in self.machines:
            machine.settle(patience)


class Syncthing(Pair):
    name = "Syncthing"

    def __init__(self, stack, work, tools):
        homes = [os.path.join(work, name) for name in ("laptop", "desktop")]
        self.a, self.b = (os.path.join(home, "folder") for home in homes)
        # GUI and listening ports, and the ports of the proxies before the latter.
        self.ports = [hub.free_port() for _ in homes]
        listening, dialled = [hub.free_port() for _ in homes], [hub.free_port() for _ in homes]
        self.program, identities = tools["syncthing"], []
        for home in homes:
            os.makedirs(os.path.join(home, "folder", ".stfolder"))
            self.run(home, "generate", "--no-default-folder")
            identities.append(self.run(home, "--device-id").strip())
        for index, home in enumerate(homes):
            # Only the first dials, so that what it sends passes one proxy.
            addresses = [f"tcp://127.0.0.1:{dialled[1]}" if index == 0 else "", ""]
            self.configure(home, index, identities, listening[index], addresses[0])
        self.processes = []
        for index, home in enumerate(homes):
            process = hub.Process(
                "Syncthing", [self.program, "serve", "--home", home, "--no-browser", "--no-restart"], self.ports[index],
                os.path.join(home, "log"), env=self.environment(home))
            stack.callback(process.end)
            self.processes.append(process)
        self.proxies = [Proxy(stack, dialled[1], listening[1])]
        self.settle(0)

    @staticmethod
    def environment(home):
        return {**os.environ, "HOME": home, "STNOUPGRADE": "1", "STNODEFAULTFOLDER": "1"}

    def run(self, home, *arguments):
        return subprocess.run(
            [self.program, *arguments, "--home", home], check=True, capture_output=True, text=True,
            env=self.environment(home)).stdout

    def configure(self, home, index, identities, port, address):
        # What it does not name has Syncthing's defaults. A second is the shortest that its watcher waits.
        devices = "".join(
            f'<device id="{identity}" name="{number}"><address>{address if number != index and address else "dynamic"}'
            "</address></device>" for number, identity in enumerate(identities))
        members = "".join(f'<device id="{identity}"/>' for identity in identities)
        off = "".join(f"<{name}>false</{name}>" for name in (
            "globalAnnounceEnabled", "localAnnounceEnabled", "relaysEnabled", "natEnabled", "startBrowser",
            "crashReportingEnabled", "setLowPriority"))
        with open(os.path.join(home, "config.xml"), "w", encoding="utf-8") as file:
            file.write(f"""<configuration version="36">
  <folder id="folder" path="{home}/folder" type="sendreceive" rescanIntervalS="3600" fsWatcherEnabled="true"
    fsWatcherDelayS="1">{members}</folder>
  {devices}
  <gui enabled="true" tls="false"><address>127.0.0.1:{self.ports[index]}</address><apikey>benchmark</apikey></gui>
  <options><listenAddress>tcp://127.0.0.1:{port}</listenAddress>{off}<urAccepted>-1</urAccepted>
    <autoUpgradeIntervalH>0</autoUpgradeIntervalH><reconnectionIntervalS>2</reconnectionIntervalS></options>
</configuration>
""")

    def ask(self, index, path, **query):
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[index], timeout=60)
        connection.request("GET", f"/rest/{path}?{urllib.parse.urlencode(query)}", headers={"X-API-Key": "benchmark"})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return json.loads(text) if answer.status == 200 else None

    def settle(self, files, patience=1800):
        end = time.monotonic() + patience
        while time.monotonic() < end:
            both = [self.ask(index, "db/status", folder="folder") for index in range(2)]
            connections = (self.ask(0, "system/connections") or {}).get("connections", {})
            if (
                    all(each and each["state"] == "idle" and each["localFiles"] == files and not each["needTotalItems"]
                        for each in both)
                    and any(each["connected"] for each in connections.values())):
                return
            time.sleep(0.1)
        raise SystemExit(f"Syncthing has not settled with {files} files: {both}, {connections}")


class Rclone(Pair):
    name = "rclone"
    tells = False
    # Each look asks the server.
    tick = 0.02

    def __init__(self, stack, work, tools):
        root = os.path.join(work, "root")
        os.makedirs(root)
        server = hub.rclone(tools["rclone"], work, root)
        stack.callback(server.end)
        self.proxies = [Proxy(stack, hub.free_port(), server.port) for _ in range(2)]
        self.a, self.b = (
            self.mount(stack, os.path.join(work, name), tools["rclone"], proxy)
            for name, proxy in zip(("laptop", "desktop"), self.proxies))

    @staticmethod
    def mount(stack, home, program, proxy):
        folder = os.path.join(home, "mount")
        os.makedirs(folder)
        device = os.stat(folder).st_dev
        with open(os.path.join(home, "log"), "wb") as log:
            process = subprocess.Popen(
                [program, "mount", ":webdav:", folder, "--webdav-url", f"https://127.0.0.1:{proxy.port}",
                 "--webdav-vendor", "other", "--no-check-certificate", "--config", "", "--cache-dir",
                 os.path.join(home, "cache"), "--vfs-cache-mode", "writes", "--vfs-write-back", "0s", "--dir-cache-time",
                 "100ms", "--poll-interval", "0", "--attr-timeout", "0s"],
                stdout=log, stderr=log, env={**os.environ, "HOME": home})
        stack.callback(leave, process, folder, ["fusermount3", "-u", folder])
        end = time.monotonic() + 60
        while os.stat(folder).st_dev == device:
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"rclone could not mount ({home}/log)")
            time.sleep(0.02)
        return folder

    def settle(self, files, patience=1800):
        """Nothing: a save is measured until it is there."""


KINDS = {kind.name: kind for kind in (Sheaf, Syncthing, Rclone)}
