"""A hub beside nginx and rclone: small saves, a large document up and down, a change told to a thousand machines, and
memory (see mount-scripts/benchmark --hub)."""

import argparse
import asyncio
import base64
import hashlib
import http.client
import json
import os
import pwd
import shutil
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import time
import uuid

import machine

PARTS = ("saves", "transfer", "streams", "memory")
ROOT_FOLDER = "00000000-0000-0000-0000-000000000000"


def unchecked():
    """TLS with a server of this machine, whose certificate nobody signed."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, process, name):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"{name} ended with status {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"{name} does not answer")


class Process:
    """A server that ends with the benchmark."""

    def __init__(self, name, arguments, port, log, user=None, **options):
        # With its directory entry, for the figures of what children it has.
        if user is not None:
            options.update(user=user.pw_uid, group=user.pw_gid, extra_groups=[])
        self.output = open(log, "ab")
        self.process = subprocess.Popen(arguments, stdout=self.output, stderr=self.output, **options)
        self.port = port
        wait_for(port, self.process, f"{name} ({log})")

    def memory(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in status if line.startswith("Vm")}

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.output.close()


# What is measured

class Device:
    """A machine of an account: its key is made by openssl, as examples/hub.bash does it."""

    def __init__(self, folder, name, port):
        self.file, self.name, self.port = os.path.join(folder, f"{name}.pem"), name, port
        subprocess.run(
            ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.file], check=True)
        public = subprocess.run(
            ["openssl", "ec", "-in", self.file, "-pubout", "-outform", "DER"], check=True, capture_output=True).stdout
        self.key = public[-65:]
        self.serial = 0

    def sign(self, purpose, text):
        parts = ["sheaf", purpose, f"localhost:{self.port}", text]
        message = b"".join(part.encode() + b"\0" for part in parts) + self.key
        made = subprocess.run(
            ["openssl", "dgst", "-sha256", "-sign", self.file], input=message, check=True, capture_output=True)
        return base64.b64encode(made.stdout).decode()

    def enroll(self, hub, code):
        made = hub.ask("POST", "/v1/enrollments", {
            "code": code, "name": self.name, "address": f"localhost:{self.port}",
            "key": base64.b64encode(self.key).decode(), "signature": self.sign("enroll", code)})
        self.device, self.zone = made["device"], made["zone"]
        nonce = hub.ask("POST", "/v1/challenges")["nonce"]
        self.token = hub.ask("POST", "/v1/sessions", {
            "zone": self.zone, "device": self.device, "nonce": nonce, "address": f"localhost:{self.port}",
            "signature": self.sign("session", nonce)})["token"]
        return self


class Hub:
    """A hub with its processes, of which each has a port of its own."""

    def __init__(self, program, folder, store="sqlite", processes=1):
        self.program, self.folder, self.keys = program, os.path.join(folder, "hub"), os.path.join(folder, "keys")
        os.makedirs(self.keys)
        self.ports = [free_port() for _ in range(processes)]
        addresses = [word for port in self.ports for word in ("--address", f"localhost:{port}")]
        self.run("init", "--store", store, *addresses)
        self.processes = [
            Process(
                "sheaf-hub", [program, "serve", "--hub", self.folder, "--listen", f"127.0.0.1:{port}"], port,
                os.path.join(folder, "log"))
            for port in self.ports]

    def run(self, *arguments):
        return subprocess.run(
            [self.program, *arguments, "--hub", self.folder], check=True, capture_output=True, text=True).stdout

    def ask(self, method, path, body=None, token=None, port=None):
        connection = http.client.HTTPSConnection("localhost", port or self.ports[0], context=unchecked(), timeout=120)
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {text.decode()}")
        return json.loads(text) if text else None

    @staticmethod
    def code(link):
        return link.strip().rsplit("/", 1)[1].split("#")[0]

    def account(self, name, devices=1):
        """Makes an account with so many devices, spread over the processes."""
        link, made = self.run("account", "add", f"{name}@hub.example"), []
        for number in range(devices):
            port = self.ports[len(made) % len(self.ports)]
            device = Device(self.keys, f"{name}-{number}", port).enroll(self, self.code(link))
            made.append(device)
            if number + 1 < devices:
                link = self.ask("POST", "/v1/links", token=device.token)["link"]
        return made

    def end(self):
        for process in self.processes:
            process.end()


class Postgres:
    """A server of its own with all its durability, in a folder of its own."""

    def __init__(self, folder):
        versions = sorted(os.listdir("/usr/lib/postgresql"), key=int)
        programs = f"/usr/lib/postgresql/{versions[-1]}/bin"
        # PostgreSQL refuses root.
        user = pwd.getpwnam("postgres") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
        self.data = os.path.join(folder, "data")
        os.makedirs(self.data, mode=0o700)
        os.chmod(folder, 0o755)
        os.chown(self.data, user.pw_uid, user.pw_gid)
        identity = {} if os.geteuid() else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        subprocess.run(
            [f"{programs}/initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"],
            check=True, capture_output=True, cwd="/", **identity)
        port = free_port()
        self.server = Process(
            "PostgreSQL",
            [f"{programs}/postgres", "-D", self.data, "-k", "", "-c", "listen_addresses=127.0.0.1", "-p", str(port),
             "-c", "shared_buffers=256MB", "-c", "max_connections=100"],
            port, os.path.join(folder, "log"), user=None if os.geteuid() else user, cwd="/")
        self.place = f"postgresql://postgres@127.0.0.1:{port}/postgres"

    def end(self):
        self.server.end(signal.SIGINT)


def certificate(folder):
    files = os.path.join(folder, "certificate.pem"), os.path.join(folder, "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


def nginx(program, folder, root):
    """nginx with WebDAV's PUT over TLS."""
    port, (cert, key) = free_port(), certificate(folder)
    config = os.path.join(folder, "nginx.conf")
    user = pwd.getpwuid(os.geteuid()).pw_name
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"""
            daemon off; pid {folder}/pid; error_log {folder}/log; worker_processes 2; user {user};
            events {{ worker_connections 1024; }}
            http {{
              access_log off; client_max_body_size 0; client_body_temp_path {root}/.temp; keepalive_requests 1000000;
              proxy_temp_path {folder}/t1; fastcgi_temp_path {folder}/t2; uwsgi_temp_path {folder}/t3;
              scgi_temp_path {folder}/t4; sendfile on; ssl_protocols TLSv1.2 TLSv1.3;
              server {{
                listen 127.0.0.1:{port} ssl; ssl_certificate {cert}; ssl_certificate_key {key};
                location / {{ root {root}; dav_methods PUT; }}
              }}
            }}""")
    return Process("nginx", [program, "-c", config, "-p", folder], port, os.path.join(folder, "output"))


def rclone(program, folder, root):
    port, (cert, key) = free_port(), certificate(folder)
    return Process(
        "rclone",
        [program, "serve", "webdav", root, "--addr", f"127.0.0.1:{port}", "--cert", cert, "--key", key, "--config", ""],
        port, os.path.join(folder, "log"), env=dict(os.environ, HOME=folder))


def load(tools, kind, seconds, connections):
    """Sends from many connections at once."""
    lines = "".join(f"{port} {token} {serial}\n" for port, token, serial in connections)
    ran = subprocess.run(
        [tools["load"], kind, str(seconds)], input=lines, capture_output=True, text=True, check=False)
    if ran.returncode or ran.stderr:
        raise SystemExit(f"hub_load: {ran.stderr}")
    result = json.loads(ran.stdout)
    if result["failed"]:
        raise SystemExit(f"hub_load: {result['failed']} requests failed")
    return result


def send_from(tools, seconds, devices):
    result = load(tools, "hub", seconds, [(each.port, each.token, each.serial) for each in devices])
    for device, serial in zip(devices, result["serials"]):
        device.serial = serial
    return result


class Folders:
    """What nginx and rclone put files into: a folder for each connection, new for each run."""

    def __init__(self, folder, connections, synchronous):
        self.folder, self.connections, self.synchronous = folder, connections, synchronous
        os.makedirs(os.path.join(folder, ".temp"))
        self.renew()

    def renew(self):
        for number in range(self.connections):
            path = os.path.join(self.folder, str(number))
            if os.path.exists(path):
                os.rename(path, f"{path}-{uuid.uuid4()}")
            os.mkdir(path)
            if self.synchronous:
                subprocess.run(["chattr", "+S", "+D", path], check=True)


class Saves:
    """Small saves: one request after the other on each of many connections."""

    def __init__(self, work, tools, connections):
        self.work, self.tools, self.connections, self.ends = work, tools, connections, []

    def folder(self, name):
        path = os.path.join(self.work, name)
        os.makedirs(path)
        return path

    def prepare(self):
        """Everything that takes part, as functions that send for so many seconds."""
        zones = self.hub("sqlite", "sqlite").account
        parts = {"hub, SQLite, a zone for each device": self.many(zones)}
        parts["hub, SQLite, one zone"] = self.one(self.hub("sqlite-hot", "sqlite").account)
        server = Postgres(self.folder("postgres-1"))
        self.ends.append(server.end)
        parts["hub, PostgreSQL, a zone for each device"] = self.many(self.hub("postgresql", server.place).account)
        second = Postgres(self.folder("postgres-2"))
        self.ends.append(second.end)
        parts["hub, PostgreSQL, two processes"] = self.many(self.hub("postgresql-two", second.place, 2).account)
        for name, make, synchronous in (("nginx", nginx, True), ("rclone", rclone, False)):
            root = Folders(self.folder(f"{name}-files"), self.connections, synchronous)
            process = make(self.tools[name], self.folder(name), root.folder)
            self.ends.append(process.end)
            parts[f"{name}, {'synchronous folders' if synchronous else 'no sync'}"] = self.put(process, root)
        return parts

    def hub(self, name, store, processes=1):
        hub = Hub(self.tools["sheaf-hub"], self.folder(name), store, processes)
        self.ends.append(hub.end)
        return hub

    def many(self, account):
        hub = account.__self__
        devices = []
        for number in range(self.connections):
            # Each zone at the process that its device dials.
            device = account(f"p{number}")[0]
            port = hub.ports[number % len(hub.ports)]
            if device.port != port:
                device.port = port
            devices.append(device)
        return lambda seconds: send_from(self.tools, seconds, devices)

    def one(self, account):
        devices = account("hot", self.connections)
        return lambda seconds: send_from(self.tools, seconds, devices)

    def put(self, process, root):
        def run(seconds):
            root.renew()
            return load(self.tools, "put", seconds, [(process.port, "-", 0)] * self.connections)
        return run

    def measure(self, runs, seconds):
        try:
            parts = self.prepare()
            rates = {name: [] for name in parts}
            waits = {name: [] for name in parts}
            names = list(parts)
            for run in range(runs):
                # Each run begins with another one.
                for name in names[run % len(names):] + names[:run % len(names)]:
                    result = parts[name](seconds)
                    rates[name].append(result["done"] / result["seconds"])
                    waits[name].append((result["median"], result["p99"]))
                print(f"saves: run {run + 1} of {runs} done", file=sys.stderr)
        finally:
            for end in reversed(self.ends):
                end()
        return rates, waits


def table_of_saves(rates, waits, connections):
    def ratio(name, other):
        return statistics.median(mine / theirs for mine, theirs in zip(rates[name], rates[other]))
    names = list(rates)
    sqlite, hot, postgres, two, synchronous, plain = names
    goals = {
        sqlite: "2,000; 0.6 of nginx; 0.3 of rclone", hot: "1,000", postgres: "1,000",
        two: "0.9 of one process"}
    print(f"Small saves of 4 KiB over TLS, {connections} connections:\n")
    print("| what | saves a second | median, 99 of 100 | ratio | at least |\n|---|---:|---:|---|---|")
    for name in names:
        middle = statistics.median(rates[name])
        spread = (max(rates[name]) - min(rates[name])) / 2 / middle * 100
        wait, late = (statistics.median(each[index] for each in waits[name]) * 1e3 for index in (0, 1))
        told = {
            sqlite: f"{ratio(sqlite, synchronous):.2f} of nginx, {ratio(sqlite, plain):.2f} of rclone",
            two: f"{ratio(two, postgres):.2f} of one process"}.get(name, "")
        print(f"| {name} | {middle:,.0f} ±{spread:.0f} % | {wait:.1f} ms, {late:.1f} ms | {told} | {goals.get(name, '')} |")
    print(flush=True)


# One large document

def timed(arguments, **options):
    start = time.monotonic()
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, **options)
    return time.monotonic() - start


def transfer(work, tools, runs, mebibytes):
    """A document goes up in chunks and comes down as a whole, by curl, as the same file does with nginx."""
    folder = os.path.join(work, "transfer")
    os.makedirs(folder)
    file, size, chunk = os.path.join(folder, "file"), mebibytes << 20, 4 << 20
    up, down = {"hub": [], "nginx": []}, {"hub": [], "nginx": []}
    for name in ("hub-store", "nginx", "nginx-files/.temp"):
        os.makedirs(os.path.join(folder, name))
    hub = Hub(tools["sheaf-hub"], os.path.join(folder, "hub-store"))
    server = nginx(tools["nginx"], os.path.join(folder, "nginx"), os.path.join(folder, "nginx-files"))
    try:
        device = hub.account("alice")[0]
        base, plain = f"https://localhost:{hub.ports[0]}", f"https://localhost:{server.port}"
        for run in range(runs):
            # Other bytes each time, since a hub that has a chunk has it.
            with open(file, "wb") as out:
                for _ in range(size // chunk):
                    out.write(os.urandom(chunk))
            extents, config = [], os.path.join(folder, "config")
            with open(file, "rb") as source, open(config, "w", encoding="ascii") as out:
                for number in range(size // chunk):
                    data = source.read(chunk)
                    piece = os.path.join(folder, f"chunk-{number}")
                    with open(piece, "wb") as part:
                        part.write(data)
                    extents.append({"hash": hashlib.sha256(data).hexdigest(), "length": len(data)})
                    out.write(f'url = "{base}/v1/chunks/{extents[-1]["hash"]}"\nupload-file = "{piece}"\n')
                    if number + 1 < size // chunk:
                        # Options stand for one transfer each.
                        out.write(
                            f'header = "Authorization: Bearer {device.token}"\ninsecure\nsilent\nfail\nnext\n')
                out.write(f'header = "Authorization: Bearer {device.token}"\ninsecure\nsilent\nfail\n')
            start = time.monotonic()
            # Several at a time, as a machine does it.
            subprocess.run(
                ["curl", "--parallel", "--parallel-max", "3", "--config", config], check=True,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            item, version = str(uuid.uuid4()), str(uuid.uuid4())
            device.serial += 1
            answer = hub.ask("POST", "/v1/sends", {"groups": [[{
                "serial": device.serial, "item": item, "kind": "document", "mode": 420, "mtime": 0,
                "places": [{"parent": ROOT_FOLDER, "name": f"large-{run}"}],
                "version": {"id": version, "cause": "save", "time": 0, "extents": extents}}]]}, device.token)
            up["hub"].append(time.monotonic() - start)
            if [verdict["outcome"] for verdict in answer["verdicts"]] != ["done"]:
                raise SystemExit(f"the large document: {answer}")
            up["nginx"].append(timed(["curl", "-ksf", "-T", file, f"{plain}/large-{run}"]))
            down["hub"].append(timed([
                "curl", "-ksf", "-H", f"Authorization: Bearer {device.token}", "-o", os.path.join(folder, "back"),
                f"{base}/v1/items/{item}/versions/{version}/content"]))
            if run == 0:
                subprocess.run(["cmp", file, os.path.join(folder, "back")], check=True)
            down["nginx"].append(timed(["curl", "-ksf", "-o", os.path.join(folder, "back"), f"{plain}/large-{run}"]))
            print(f"transfer: run {run + 1} of {runs} done", file=sys.stderr)
        memory = hub.processes[0].memory()["VmHWM"]
    finally:
        hub.end()
        server.end()
    print(f"A document of {mebibytes} MiB over TLS, by curl:\n")
    print("| direction | hub | nginx | ratio | at least |\n|---|---:|---:|---:|---:|")
    for name, times, goal in (("up", up, 0.25), ("down", down, 0.4)):
        ratio = statistics.median(theirs / mine for mine, theirs in zip(times["hub"], times["nginx"]))
        cells = [f"{mebibytes / statistics.median(times[who]):,.0f} MiB/s" for who in ("hub", "nginx")]
        print(f"| {name} | {cells[0]} | {cells[1]} | {ratio:.2f} | {goal} |")
    print(f"\nThe most memory that the hub had: {memory / 2**20:.0f} MiB.\n", flush=True)


# A change told to many

class Streams:
    """Streams of one account, and when each of them told a number."""

    def __init__(self, port):
        self.port, self.told, self.writers, self.tasks = port, {}, [], []
        self.changed = asyncio.Event()

    async def open(self, token):
        reader, writer = await asyncio.open_connection("localhost", self.port, ssl=unchecked())
        writer.write(
            f"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        line = await reader.readline()
        if b" 200 " not in line:
            raise SystemExit(f"a stream: {line.decode()}")
        self.writers.append(writer)
        started = asyncio.Event()
        self.tasks.append(asyncio.create_task(self.follow(reader, started)))
        await started.wait()

    async def follow(self, reader, started):
        while line := await reader.readline():
            if line.startswith(b"data:"):
                now = time.monotonic()
                self.told.setdefault(json.loads(line[5:])["number"], []).append(now)
                started.set()
                self.changed.set()

    async def all_told(self, number, count):
        while len(self.told.get(number, [])) < count:
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), 60)
        return self.told[number]

    def close(self):
        for task in self.tasks:
            task.cancel()
        for writer in self.writers:
            writer.transport.abort()


async def tell(hub, devices, count, changes):
    streams = Streams(hub.ports[0])
    for number in range(count):
        await streams.open(devices[number % len(devices)].token)
    sender, delays = devices[0], []
    for _ in range(changes):
        sender.serial += 1
        send = {"groups": [[{
            "serial": sender.serial, "item": str(uuid.uuid4()), "kind": "folder", "mode": 493, "mtime": 0,
            "places": [{"parent": ROOT_FOLDER, "name": f"told-{sender.serial}"}]}]]}
        start = time.monotonic()
        answer = await asyncio.to_thread(hub.ask, "POST", "/v1/sends", send, sender.token)
        times = await streams.all_told(answer["number"], count)
        delays += [each - start for each in times]
    memory = hub.processes[0].memory()
    streams.close()
    return sorted(delays), memory


def fill(hub, device, items):
    """Makes so many folders, as many in a request as it may have."""
    while items > 0:
        group = []
        for _ in range(min(256, items)):
            device.serial += 1
            group.append({
                "serial": device.serial, "item": str(uuid.uuid4()), "kind": "folder", "mode": 493, "mtime": 0,
                "places": [{"parent": ROOT_FOLDER, "name": f"f-{device.serial}"}]})
        hub.ask("POST", "/v1/sends", {"groups": [group], "confirmed": device.serial - len(group)}, device.token)
        items -= len(group)


def streams(work, tools, count, changes, items):
    """A change told to many streams of one zone; with items, the hub's memory as well."""
    hub_folder = os.path.join(work, f"streams-{items}")
    os.makedirs(hub_folder)
    hub = Hub(tools["sheaf-hub"], hub_folder)
    try:
        # A device has sixteen streams at most.
        devices = hub.account("alice", max(1, -(-count // 16)))
        fill(hub, devices[0], items)
        delays, memory = asyncio.run(tell(hub, devices, count, changes))
    finally:
        hub.end()
    late = delays[min(len(delays) - 1, len(delays) * 99 // 100)]
    print(
        f"A change told to {count} streams, from before it is sent ({changes} changes): median "
        f"{statistics.median(delays) * 1e3:.0f} ms, 99 of 100 within {late * 1e3:.0f} ms (at most 250).")
    print(
        f"Memory of the hub with {items:,} items and {count} streams: {memory['VmRSS'] / 2**20:.0f} MiB, at most "
        f"{memory['VmHWM'] / 2**20:.0f} MiB (at most 300 with 1,000,000 items).\n", flush=True)


def arguments():
    parser = argparse.ArgumentParser(prog="mount-scripts/benchmark --hub", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers: a glance, and whether it works")
    parser.add_argument("--runs", type=int, help="runs of which the median is told (default 5)")
    parser.add_argument("--part", action="append", choices=PARTS, help="only these parts")
    parser.add_argument("--items", type=int, help="items for the memory (default 1000000)")
    parser.add_argument("--work", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--sheaf-hub", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--nginx", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--rclone", required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = arguments()
    tools = {
        "sheaf-hub": options.sheaf_hub, "nginx": options.nginx, "rclone": options.rclone,
        "load": os.path.join(options.work, "hub_load")}
    runs = options.runs or (1 if options.quick else 5)
    parts = options.part or list(PARTS)
    print(f"{machine.about()}. Medians of {runs} runs.\n", flush=True)
    if "saves" in parts:
        connections = 6 if options.quick else 50
        rates, waits = Saves(options.work, tools, connections).measure(runs, 1 if options.quick else 10)
        table_of_saves(rates, waits, connections)
    if "transfer" in parts:
        transfer(options.work, tools, runs, 32 if options.quick else 1024)
    if "streams" in parts:
        streams(options.work, tools, 32 if options.quick else 1000, 3 if options.quick else 20, 0)
    if "memory" in parts:
        items = options.items or (2_000 if options.quick else 1_000_000)
        streams(options.work, tools, 32 if options.quick else 1000, 3, items)


if __name__ == "__main__":
    main()
