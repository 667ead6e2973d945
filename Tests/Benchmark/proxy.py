"""Stands between a machine and what it talks to: counts bytes, adds latency, takes the connection away.

proxy.py PORT TARGET-PORT MILLISECONDS: listens at 127.0.0.1:PORT for 127.0.0.1:TARGET-PORT, and hands on what it is given
so many milliseconds later, as a long line does: what follows is on its way meanwhile. A line on standard input asks, and
gets a line back: `count` (bytes to the target, bytes from it, parts from it), `stop` (every connection is reset and none
is taken), `go`. It ends with its standard input.
"""

import fcntl
import os
import queue
import socket
import struct
import sys
import threading
import time

PIPE = 1 << 20


class Direction:
    """One way of one connection, with threads of its own."""

    def __init__(self, source, sink, delay):
        self.source, self.sink, self.delay = source, sink, delay
        self.bytes = self.parts = 0
        if delay:
            self.sent = queue.Queue(4096)
            threading.Thread(target=self.read, daemon=True).start()
            threading.Thread(target=self.write, daemon=True).start()
        else:
            threading.Thread(target=self.splice, daemon=True).start()

    def ended(self):
        try:
            self.sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def splice(self):
        """Without a copy, so that the proxy takes little of the time that is measured."""
        out, into = os.pipe()
        fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, PIPE)
        try:
            while size := os.splice(self.source.fileno(), into, PIPE):
                self.bytes += size
                self.parts += 1
                while size:
                    size -= os.splice(out, self.sink.fileno(), size)
        except (OSError, ValueError):
            pass
        os.close(out)
        os.close(into)
        self.ended()

    def read(self):
        data = True
        while data:
            try:
                data = self.source.recv(1 << 18)
            except OSError:
                data = b""
            self.bytes += len(data)
            self.parts += bool(data)
            self.sent.put((time.monotonic() + self.delay, data))

    def write(self):
        while True:
            due, data = self.sent.get()
            time.sleep(max(0, due - time.monotonic()))
            if not data:
                return self.ended()
            try:
                self.sink.sendall(data)
            except OSError:
                # What is still read goes nowhere.
                pass


class Proxy:
    def __init__(self, port, target, delay):
        self.port, self.target, self.delay = port, target, delay
        self.lock = threading.Lock()
        self.sockets, self.directions = [], []
        self.listener = None
        self.go()

    def go(self):
        if self.listener is None:
            self.listener = socket.create_server(("127.0.0.1", self.port), backlog=128)
            threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            with self.lock:
                if listener is not self.listener:
                    client.close()
                    server.close()
                    return
                for each in (client, server):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.sockets += [client, server]
                self.directions.append((Direction(client, server, self.delay), Direction(server, client, self.delay)))

    def stop(self):
        with self.lock:
            if self.listener is not None:
                # A thread that accepts holds the socket until it is woken.
                self.listener.shutdown(socket.SHUT_RDWR)
                self.listener.close()
                self.listener = None
            for each in self.sockets:
                try:
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self.sockets = []

    def count(self):
        with self.lock:
            pairs = list(self.directions)
        return (
            f"{sum(up.bytes for up, _ in pairs)} {sum(down.bytes for _, down in pairs)} "
            f"{sum(down.parts for _, down in pairs)}")


def main():
    proxy = Proxy(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) / 1000)
    print("ready", flush=True)
    for line in sys.stdin:
        command = line.strip()
        if command == "count":
            print(proxy.count(), flush=True)
        else:
            {"stop": proxy.stop, "go": proxy.go}[command]()
            print("done", flush=True)


if __name__ == "__main__":
    main()
