#!/usr/bin/env python3
"""A coordinator survives floods: more connections than it has descriptors for, connections that send nothing, and random bytes. Afterwards
it answers calls, and its memory and its number of descriptors are what they were before."""

import os
import pathlib
import random
import resource
import select
import socket
import time

from harness import PATIENCE, Scratch, expect, until

LIMIT = 300  # number of file descriptors that the coordinator may have open
SURPLUS = 1100
LONG = float(os.environ.get("WARPLOOM_TEST_SCALE", "1")) >= 10
JUNK_S = 20 if LONG else 1  # seconds for which random bytes are sent after each flood of connections
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def limited():
    # The soft limit may be lower than LIMIT: at its start, the coordinator raises it to the hard limit.
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT // 2, LIMIT))


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def memory_mb(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def connect(path):
    """Returns a new connection. Connecting may raise an exception, since the coordinator may refuse a connection at any time."""
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    client.setblocking(False)
    return client


def refused(clients):
    """Returns how many of the connections the other side has closed."""
    poll = select.poll()
    for client in clients:
        poll.register(client, select.POLLIN)
    count = 0
    for _, events in poll.poll(0):
        count += bool(events & select.POLLHUP)
    return count


def flood(path):
    clients = []
    try:
        for _ in range(LIMIT + SURPLUS):
            clients.append(connect(path))
        until(lambda: refused(clients) >= SURPLUS, 30, f"{SURPLUS} connections are refused")
        expect(refused(clients) < LIMIT + SURPLUS, "every connection is refused")
    finally:
        for client in clients:
            client.close()


def junk(path, seed):
    """Sends random bytes, or a preface of HTTP/2 with a random frame, on new connections for JUNK_S. Returns the number of connections."""
    draw = random.Random(seed)
    end, count = time.monotonic() + JUNK_S, 0
    while time.monotonic() < end:
        client = connect(path)
        text = draw.randbytes(draw.choice((1, 100, 10_000)))
        if draw.random() < 0.5:
            frame = len(text).to_bytes(3, "big") + bytes([draw.randrange(12), draw.randrange(256)]) + draw.randbytes(4)
            text = PREFACE + b"\0\0\0\4\0\0\0\0\0" + frame + text
        try:
            client.send(text)
        except OSError:
            pass
        client.close()
        count += 1
    return count


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with Scratch() as scratch:
        path = scratch.path("s")
        daemon = scratch.serve(path, store=scratch.path("a.db"), preexec_fn=limited)

        def serves():
            # The call is repeated: a slow build of the coordinator may still be reading the random bytes when the client gives up.
            call = ("warploom", "jobs", "--server", f"unix:{path}", "--json", "-")
            until(lambda: scratch.run(*call, expect=None, deadline=30).code == 0, 20, "it serves")

        serves()
        pid = daemon.process.pid
        before = descriptors(pid)
        if LONG:
            silent = [connect(path) for _ in range(20)]
            until(lambda: refused(silent) == len(silent), 60, "connections that say nothing are closed")
        kept, sent = [], 0
        for turn in range(3):
            flood(path)
            until(lambda: descriptors(pid) <= before + 2, 20, "the connections of the flood are closed")
            serves()
            sent += junk(path, turn)
            until(lambda: descriptors(pid) <= before + 2, 20, "the connections with junk are closed")
            serves()
            kept.append(memory_mb(pid))
        # The growth is not checked in a build with a sanitizer, since sanitizers keep freed memory.
        expect(kept[2] - kept[0] < 8 or PATIENCE > 1, f"memory after each flood, MB: {kept}")
        said = (scratch.root / "coordinator.log").read_text()
        expect("refused" in said and "max-connections" in said, f"nothing in the log:\n{said}")
        lines = said.count("refused")
        expect(lines < 200, f"{lines} lines about refused connections")
        print(f"{3 * SURPLUS} connections refused, {sent} with junk; memory after each flood, MB: {kept}")


if __name__ == "__main__":
    main()
