#!/usr/bin/env python3
"""Viewers of norma serve: opens streams of events on loopback, reads them for a time and counts.

    bench/serve_load.py http://127.0.0.1:7317/ RUN [--viewers 200] [--seconds 60]

Prints one line of JSON: viewers, those that were dropped or refused, the least and the most events of a viewer. Bounded: at most
1000 viewers and 600 seconds, and only 127.0.0.1. Standard library only; it runs at the lowest priority, for it is not what is
measured.
"""
import argparse
import json
import os
import select
import socket
import time
import urllib.parse


class Viewer:
    def __init__(self, port, path):
        self.events, self.bytes, self.tail, self.good = 0, 0, b"", False
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n\r\n".encode())
        self.socket.setblocking(False)

    def read(self):
        """False when the server has closed it."""
        try:
            data = self.socket.recv(65536)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not self.bytes:
            self.good = data.startswith(b"HTTP/1.1 200")
        self.bytes += len(data)
        text = self.tail + data
        self.events += text.count(b"\nevent: ") - self.tail.count(b"\nevent: ")
        self.tail = text[-16:]
        return bool(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("run", help="name of the run, as the list of the server has it")
    parser.add_argument("--viewers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    args = parser.parse_args()
    url = urllib.parse.urlparse(args.url)
    if url.hostname not in ("127.0.0.1", "localhost") or not 1 <= args.viewers <= 1000 or not 0 < args.seconds <= 600:
        parser.error("only 127.0.0.1, 1 to 1000 viewers, at most 600 seconds")
    os.nice(19)
    path = "/events/" + urllib.parse.quote(args.run)
    begun, poll, viewers, open_ = time.monotonic(), select.epoll(), {}, 0
    refused = 0
    for _ in range(args.viewers):
        try:
            viewer = Viewer(url.port, path)
        except OSError:
            refused += 1
            continue
        viewers[viewer.socket.fileno()] = viewer
        poll.register(viewer.socket.fileno(), select.EPOLLIN)
    joined = time.monotonic() - begun
    dropped, end = 0, time.monotonic() + args.seconds
    while (left := end - time.monotonic()) > 0:
        for fd, _ in poll.poll(left):
            if not viewers[fd].read():
                dropped += 1
                poll.unregister(fd)
    events = [v.events for v in viewers.values()] or [0]
    refused += sum(not v.good for v in viewers.values())
    print(json.dumps({"viewers": len(viewers), "dropped": dropped, "refused": refused, "events_least": min(events),
                      "events_most": max(events), "bytes": sum(v.bytes for v in viewers.values()), "seconds": args.seconds,
                      "joined_seconds": round(joined, 2), "cpu_seconds": round(time.process_time(), 2)}))
    return 1 if dropped or refused else 0


if __name__ == "__main__":
    raise SystemExit(main())
