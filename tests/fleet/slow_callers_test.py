#!/usr/bin/env python3
"""Callers that send slowly, without end or nothing at all, on the ports of gRPC and of HTTP, with and without TLS. Meanwhile /healthz
answers within a second, and a job is served. Takes seconds; `slow_callers_test.py 300` takes five minutes."""

import os
import select
import socket
import ssl
import sys
import threading
import time

import graphs
from harness import Scratch, expect, shown

ON_EACH = 80  # number of connections that each kind of slow caller keeps open to each port
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
HELLO = b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03"  # beginning of a TLS handshake of 16 kB
# Name of a kind of slow caller -> bytes that such a caller sends at once, and bytes that it then sends again and again.
KINDS = {
    "silent": (b"", b""),
    "a byte now and then": (b"GET /healthz HTTP/1.1\r\nX: ", b"x"),
    "headers without end": (b"GET / HTTP/1.1\r\n", b"X: y\r\n" * 200),
    "a body without end": (b"POST / HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n", b"x" * 1000),
    "many questions, no answer read": (b"GET /metrics HTTP/1.1\r\n\r\n" * 50, b"GET /metrics HTTP/1.1\r\n\r\n" * 50),
    "a preface and nothing": (PREFACE, b""),
    "settings and pieces of a frame": (PREFACE + SETTINGS, b"\x00"),
    "a handshake in pieces": (HELLO, b"\x00"),
}


class Callers(threading.Thread):
    """Keeps ON_EACH connections of every kind open to each port, and replaces connections that the other side closes."""

    def __init__(self, ports, seconds):
        super().__init__()
        self.ports, self.end, self.made = ports, time.monotonic() + seconds, 0

    def open(self, port, kind):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(("127.0.0.1", port))
        self.made += 1
        return client, port, kind, [False, time.monotonic()]

    def run(self):
        alive = [self.open(port, kind) for port in self.ports for kind in KINDS for _ in range(ON_EACH)]
        while time.monotonic() < self.end:
            alive = [self.again(one) for one in alive]
            time.sleep(0.05)
        for client, *_ in alive:
            client.close()

    def again(self, one):
        client, port, kind, state = one
        first, more = KINDS[kind]
        try:
            ready, writable, _ = select.select([client], [client], [], 0) if client.fileno() < 1024 else ([], [], [])
            if ready and "no answer" not in kind and client.recv(1 << 16) == b"":
                raise ConnectionResetError
            if writable and not state[0]:
                client.send(first)
                state[:] = [True, time.monotonic()]
            elif writable and more and time.monotonic() > state[1] + (0.2 if len(more) > 100 else 3):
                client.send(more)
                state[1] = time.monotonic()
        except BlockingIOError:
            pass
        except OSError:
            client.close()
            return self.open(port, kind)
        return one


def ask(port, context):
    """Returns how many seconds an answer of /healthz takes, including the connection."""
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
        client = context.wrap_socket(plain, server_hostname="localhost") if context else plain
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        said = b""
        while chunk := client.recv(4096):
            said += chunk
        if context:
            client.close()
    expect(said.startswith(b"HTTP/1.1 200") and said.endswith(b"alive\n"), said)
    return time.monotonic() - begun


def port_of(address):
    return int(address.rsplit(":", 1)[1])


def under_attack(scratch, name, seconds, tls):
    options, certificate, context = [], [], None
    if tls:
        options, certificate = ["--trust-domain", "warploom", *shown("coordinator")], shown("alice")
        context = ssl.create_default_context(cafile=scratch.path("tls/ca.pem"))
    daemon = scratch.start(
        "warploomd", "--store", f"{name}.db", "--listen", f"localhost:0,unix:{name}.s", "--http", "127.0.0.1:0", *options, name=name
    )
    server = scratch.logged(name, r"listening on ([^,]+),", "it listens")
    http = scratch.logged(name, r"metrics on (\S+)", "it serves HTTP")
    scratch.start("warploom-worker", "--server", f"unix:{name}.s", "--devices", "fake", name=f"{name}.worker")
    callers = Callers([port_of(server), port_of(http)], seconds)
    callers.start()
    took, jobs = [], 0
    while callers.is_alive():
        took.append(ask(port_of(http), context))
        if jobs < len(took) // 200 + 1:
            jobs += 1
            scratch.run("warploom", "tune", "g.graph", "--server", server, *certificate, "--trials", 2, "--retune")
        time.sleep(0.02)
    callers.join()
    took.sort()
    print(f"{name}: {len(took)} times /healthz, at most {took[-1]:.3f} s, half below {took[len(took) // 2]:.4f} s; {jobs} jobs; {callers.made} connections")
    expect(took[-1] < 1, f"/healthz took {took[-1]:.2f} s")
    expect(daemon.process.poll() is None, "the coordinator has ended")
    daemon.kill()


def main(seconds):
    with Scratch() as scratch:
        (scratch.root / "g.graph").write_text(graphs.EXP)
        scratch.certificates(["coordinator", "localhost", "127.0.0.1"], ["client", "alice"])
        under_attack(scratch, "plain", seconds, tls=False)
        under_attack(scratch, "tls", seconds, tls=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 4 * float(os.environ.get("WARPLOOM_TEST_SCALE", 1)))
