#!/usr/bin/env python3
"""Receives Sheaf's events as webhooks: checks signatures (Standard Webhooks) and tells what happened.

    receiver.py --port 9000 --secret whsec_...

Nothing but Python's standard library is needed. A receiver must be ready to get an event twice, as after a crash of
either side: `webhook-id` is the same then, and this one passes the second over.
"""

import argparse
import base64
import hashlib
import hmac
import http.server
import json
import time

TOLERANCE = 5 * 60  # seconds that a request may be old: a recorded one cannot be played back later
MAXIMUM = 1 << 20  # bytes of a request


def signature(secret, identifier, timestamp, body):
    """The signature of a request; `secret` is whsec_ and base64."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    message = f"{identifier}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, message, hashlib.sha256).digest()).decode()


def is_valid(secret, headers, body, now):
    """Whether the request comes from who knows the secret, and is new."""
    identifier, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isascii() or not timestamp.isdigit() or abs(now - int(timestamp)) > TOLERANCE:
        return False
    expected = signature(secret, identifier, timestamp, body)
    # Several signatures come while the secret is being changed: one of them must be ours.
    given = headers.get("webhook-signature", "").split()
    return any([hmac.compare_digest(expected, each) for each in given])


# The test vector of the specification.
assert signature(
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}'
) == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def printable(text):
    """Names can have any characters in them, also such as move a terminal's cursor."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def describe(event):
    """One line for an event."""
    data = event["data"]
    words = [event["type"].removeprefix("sheaf."), data["item"]["path"]]
    if "previousPath" in data:
        words.append("was " + data["previousPath"])
    if "version" in data:
        words.append(f"version {data['version']['number']}")
    if "comment" in data:
        words.append(repr(data["comment"]))
    return printable(f"{data['actor']['name']}: " + ", ".join(words))


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        if length > MAXIMUM:
            self.close_connection = True
            return self.answer(413)
        body = self.rfile.read(length)
        if not is_valid(self.server.secret, self.headers, body, time.time()):
            return self.answer(401)
        if self.headers["webhook-id"] not in self.server.seen:
            events = json.loads(body)
            for event in events if isinstance(events, list) else [events]:
                print(describe(event), flush=True)
            # Not before: what is not done then comes again.
            self.server.seen.add(self.headers["webhook-id"])
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        if status != 204:
            self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description="Receive Sheaf's webhooks.")
    parser.add_argument("--port", type=int, default=9000, help="0 for any that is free")
    parser.add_argument("--secret", required=True, help="whsec_…, as the sidecar has it")
    arguments = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", arguments.port), Receiver)
    server.secret = arguments.secret
    server.seen = set()
    print(f"listening on http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
