"""When a folder has what another machine did, and when inotify(7) told of it."""

import ctypes
import os
import select
import struct
import time

MODIFY, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x2, 0x8, 0x40, 0x80, 0x100, 0x200
HEADER = struct.Struct("iIII")

libc = ctypes.CDLL(None, use_errno=True)


class Watcher:
    def __init__(self, folder):
        self.descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        mask = MODIFY | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE
        if self.descriptor < 0 or libc.inotify_add_watch(self.descriptor, os.fsencode(folder), mask) < 0:
            raise OSError(ctypes.get_errno(), "inotify", folder)
        self.poll = select.poll()
        self.poll.register(self.descriptor, select.POLLIN)

    def names(self):
        """The names in the events that are there."""
        found = set()
        while True:
            try:
                data = os.read(self.descriptor, 65536)
            except BlockingIOError:
                return found
            offset = 0
            while offset < len(data):
                length = HEADER.unpack_from(data, offset)[3]
                offset += HEADER.size
                found.add(os.fsdecode(data[offset:offset + length].rstrip(b"\0")))
                offset += length

    def wait(self, name, is_there, tick, patience, grace):
        """When `is_there` was true first, when an event about `name` came first, and whether each of these came before
        the former, so that who reads when told reads what was before. A time is None if that did not happen: the first
        within `patience` seconds, the second within `grace` seconds after the first."""
        end, seen, told, early = time.monotonic() + patience, None, None, False
        while (now := time.monotonic()) < end:
            # Soon again, where only the event has come.
            pause = end - now if seen is not None else tick if told is None else min(tick, 0.001)
            self.poll.poll(pause * 1000)
            if name in self.names():
                if told is None or early:
                    told = time.monotonic()
                early = seen is None and not is_there()
            if seen is None and is_there():
                seen = time.monotonic()
                end = seen + grace
            if seen is not None and told is not None and not early:
                break
        return seen, told, early

    def close(self):
        os.close(self.descriptor)
