#!/usr/bin/env python3
"""A coordinator under steady work: jobs that search, attach, are cancelled and answered from the store, listings,
fetches, workers that are killed, connections that are dropped, a store at its bounds. Memory, descriptors, threads and
the write-ahead log do not grow. Half an hour in `make test-long`; elsewhere seconds, in which memory says nothing."""

import itertools
import os
import pathlib
import socket
import threading
import time

import graphs
from harness import SCALE, Scratch, expect, fail, listening, until

SECONDS = float(os.environ.get("WARPLOOM_SOAK_SECONDS", "1800" if SCALE >= 10 else "10"))
WORKERS = 2
MOST_WAL = 64 << 20
MOST_SLOPE_MB = 1.0  # an hour


class Sample:
    """What a process holds now."""

    def __init__(self, pid, store, began):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        self.at = time.monotonic() - began
        self.memory = int(fields["RssAnon"].split()[0]) / 1024  # MB
        self.threads = int(fields["Threads"])
        self.descriptors = len(os.listdir(f"/proc/{pid}/fd"))
        wal = pathlib.Path(store + "-wal")
        self.wal = wal.stat().st_size if wal.exists() else 0


def slope(samples):
    """MB an hour, by least squares."""
    n = len(samples)
    at = sum(s.at for s in samples) / n
    memory = sum(s.memory for s in samples) / n
    return 3600 * sum((s.at - at) * (s.memory - memory) for s in samples) / sum((s.at - at) ** 2 for s in samples)


class Load:
    """Threads that call the programs until the end, one call after the other."""

    def __init__(self, scratch, address):
        self.scratch, self.address = scratch, address
        self.ended = threading.Event()
        self.counts, self.wrong = {}, []
        self.threads = []

    def repeat(self, name, turn):
        def serve():
            for number in itertools.count():
                if self.ended.is_set() or self.wrong:
                    return
                try:
                    turn(number)
                except Exception as error:  # told to the main thread, which ends the test
                    self.wrong.append(f"{name}: {error}")
                    return
                self.counts[name] = number + 1

        self.threads.append(threading.Thread(target=serve, name=name))
        self.threads[-1].start()

    def call(self, *command, codes=(0,)):
        done = self.scratch.run("warploom", *command, "--server", self.address, expect=None, deadline=120)
        expect(done.code in codes, f"{command}: exit code {done.code}\n{done.out}\n{done.err}")
        return done

    def finish(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(timeout=200)


def main():
    with Scratch() as scratch:
        (scratch.root / "work").mkdir()
        for name, graph in (("softmax", graphs.SOFTMAX), ("matmul", graphs.SOFTMAX_MATMUL)):
            (scratch.root / f"{name}.graph").write_text(graph)
        store, path = scratch.path("a.db"), scratch.path("s")
        address = f"unix:{path}"
        bounds = ("--database-gb", "0.004", "--objects-gb", "0.002", "--cache-mb", "1")
        daemon = scratch.start(
            "warploomd", "--store", store, "--listen", address, "--lease-seconds", 2, *bounds, name="coordinator"
        )
        until(lambda: listening(path), 30, "the coordinator listens")

        def start_worker(number):
            command = ("--server", address, "--name", f"w{number}", "--devices", "fake", "--work-dir", scratch.path("work"))
            return scratch.start("warploom-worker", *command, "--quiet", name=f"w{number}")

        workers = [start_worker(number) for number in range(WORKERS)]
        load = Load(scratch, address)

        def search(number):
            # 6: the job was cancelled, by listings().
            load.call("tune", "softmax.graph", "--trials", 12, "--retune", "--seed", number % 50, codes=(0, 6))

        def cached(number):
            load.call("tune", "softmax.graph", "--trials", 4, codes=(0, 6))
            load.call("get", "softmax.graph", "--out", scratch.path("bundle"))

        def listings(number):
            load.call("records")
            load.call("workers")
            job = load.call("jobs", "--limit", 20, "--json", "-").json()["jobs"][0]["name"]
            load.call("cancel", job)

        def connections(number):
            held = []
            for _ in range(20):
                one = socket.socket(socket.AF_UNIX)
                one.connect(path)
                one.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" if number % 2 else b"GET / HTTP/1.1\r\n\r\n")
                held.append(one)
            for one in held:
                one.close()
            load.ended.wait(0.5)

        def preemptions(number):
            if load.ended.wait(7):
                return
            workers[number % WORKERS].kill()
            scratch.children.remove(workers[number % WORKERS])
            workers[number % WORKERS] = start_worker(number % WORKERS)

        def interrupted(number):
            """A job that its client cancels: the client leaves, the job ends."""
            child = scratch.start(
                "warploom", "tune", "matmul.graph", "--server", address, "--trials", 40, "--retune", "--seed", number,
                name="interrupted",
            )
            load.ended.wait(1)
            child.process.send_signal(2)
            child.wait(60)
            child.kill()
            scratch.children.remove(child)

        load.call("tune", "softmax.graph", "--trials", 4)
        began = time.monotonic()
        for name, turn in {
            "searches": search, "answers": cached, "listings": listings, "connections": connections,
            "preemptions": preemptions, "interrupted": interrupted,
        }.items():
            load.repeat(name, turn)
        samples = []
        while time.monotonic() - began < SECONDS and not load.wrong:
            if daemon.process.poll() is not None:
                load.wrong.append(f"the coordinator ended with {daemon.process.returncode}")
                break
            samples.append(Sample(daemon.process.pid, store, began))
            time.sleep(min(1, SECONDS / 20))  # the distance of samples
        load.finish()
        if load.wrong:
            fail("; ".join(load.wrong))
        calm = until_calm(daemon, store, began)
        report(samples, calm, load)


def until_calm(daemon, store, began):
    """Waits until connections of dead clients are gone; returns what is held then."""
    last = [Sample(daemon.process.pid, store, began)]

    def settled():
        last.append(Sample(daemon.process.pid, store, began))
        return last[-1].descriptors <= last[0].descriptors

    until(settled, 60, "connections of ended clients are closed")
    return last[-1]


def report(samples, calm, load):
    late = samples[len(samples) // 3 :]
    early = samples[len(samples) // 3 : len(samples) // 2]
    grows = slope(late)
    print(
        f"{SECONDS:.0f} s: {load.counts}; memory {late[0].memory:.1f} to {late[-1].memory:.1f} MB, {grows:+.2f} MB an hour; "
        f"descriptors {min(s.descriptors for s in late)} to {max(s.descriptors for s in late)}, {calm.descriptors} afterwards; "
        f"threads at most {max(s.threads for s in samples)}; write-ahead log at most {max(s.wal for s in samples) / 1e6:.1f} MB",
        flush=True,
    )
    for name, count in load.counts.items():
        expect(count > 0, f"nothing was done: {name}")
    expect(max(s.wal for s in samples) <= MOST_WAL, "the write-ahead log grew")
    most = max(s.descriptors for s in early)
    expect(max(s.descriptors for s in late) <= most + 60, "descriptors grow")
    expect(calm.descriptors <= most, f"{calm.descriptors} descriptors are open when all is over")
    if SECONDS >= 600:
        expect(grows < MOST_SLOPE_MB, f"memory grows by {grows:.2f} MB an hour")


if __name__ == "__main__":
    main()
