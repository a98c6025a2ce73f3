#!/usr/bin/env python3
"""A coordinator under steady load: jobs that search, attach, are cancelled and answered from the store, listings, fetches, workers that
are killed, connections that are dropped, a store at its bounds. Memory, descriptors, threads and the write-ahead log do not grow. Takes
half an hour in `make test-long`; elsewhere seconds, which are too short to judge memory.

Memory is judged by the bytes that the heap holds at rest. The load pauses at intervals, since calls and jobs under way hold a varying
number of MB. Resident memory also includes free memory of the heap. It rises and falls, and half an hour does not determine its slope to
1 MB per hour, so it only has to stay within its range."""

import contextlib
import itertools
import os
import pathlib
import socket
import statistics
import threading
import time

import graphs
from harness import PATIENCE, SCALE, Scratch, expect, fail, until

SECONDS = float(os.environ.get("WARPLOOM_SOAK_SECONDS", "1800" if SCALE >= 10 else "10"))
WORKERS = 2
MOST_WAL = 64 << 20
MOST_SLOPE_MB = 1.0  # largest allowed growth, in MB per hour, of the memory that the coordinator's heap holds
MOST_RESIDENT = 1.25  # largest allowed ratio of the coordinator's resident memory in the last quarter of the test to that in the second quarter
LONG_S = 1200  # seconds: a test must run at least this long for its memory to be judged
REST_S = 60  # seconds from one rest to the next; during a rest, all load pauses
LOOKS = 8  # number of samples of the heap in one rest


class Sample:
    """The resources that a process holds now."""

    def __init__(self, pid, store, began):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        self.at = time.monotonic() - began
        self.memory = int(fields["RssAnon"].split()[0]) / 1024  # MB
        self.threads = int(fields["Threads"])
        self.descriptors = len(os.listdir(f"/proc/{pid}/fd"))
        wal = pathlib.Path(store + "-wal")
        self.wal = wal.stat().st_size if wal.exists() else 0


def slope(heaps):
    """Returns MB per hour: the median of the slopes between any two samples, which a few outliers do not change (Theil and Sen)."""
    return 3600 * statistics.median((b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.combinations(heaps, 2))


def resident_slope(samples):
    """Returns the slope of the samples in MB per hour, by least squares."""
    at = statistics.mean(s.at for s in samples)
    memory = statistics.mean(s.memory for s in samples)
    return 3600 * sum((s.at - at) * (s.memory - memory) for s in samples) / sum((s.at - at) ** 2 for s in samples)


class Load:
    """Threads that each call the programs, one call after the other, until the end of the test."""

    def __init__(self, scratch, address):
        self.scratch, self.address = scratch, address
        self.ended = threading.Event()
        self.counts, self.wrong = {}, []
        self.threads = []
        self.changed = threading.Condition()  # guards `resting` and `turns`
        self.resting, self.turns = False, 0

    def repeat(self, name, turn, every=0):
        """Starts a thread that calls `turn` with 0, 1, .. until the end. `every`: seconds from the end of one turn to the next."""

        def serve():
            for number in itertools.count():
                self.ended.wait(every)
                with self.changed:
                    self.changed.wait_for(lambda: not self.resting)
                    if self.ended.is_set() or self.wrong:
                        return
                    self.turns += 1
                try:
                    turn(number)
                    self.counts[name] = number + 1
                except Exception as error:  # the main thread sees this error in `wrong` and ends the test
                    self.wrong.append(f"{name}: {error}")
                with self.changed:
                    self.turns -= 1
                    self.changed.notify_all()

        self.threads.append(threading.Thread(target=serve, name=name))
        self.threads[-1].start()

    @contextlib.contextmanager
    def rest(self):
        """A context in which no turn is under way."""
        with self.changed:
            self.resting = True
            ended = self.changed.wait_for(lambda: self.turns == 0, timeout=200 * PATIENCE)
        try:
            expect(ended, "the load does not come to rest")
            yield
        finally:
            with self.changed:
                self.resting = False
                self.changed.notify_all()

    def heap_at_rest(self):
        """Returns the MB that the heap holds at rest: the least of several samples, since leases and connections of killed processes take
        seconds to end."""
        held = []
        with self.rest():
            for _ in range(LOOKS):
                status = self.call("status", "--json", "-").json()
                expect(status["resident_bytes"] > 0, f"the coordinator does not say what it holds: {status}")
                held.append(status["heap_bytes"] / 1e6)
                time.sleep(min(0.5, SECONDS / 100))  # pause between two samples of the heap
        return min(held)

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
        # glibc's per-thread caches of freed memory would count as held and take hours to fill, so they are turned off.
        scratch.environment["GLIBC_TUNABLES"] = "glibc.malloc.tcache_count=0"
        daemon = scratch.serve(path, "--lease-seconds", 2, *bounds, store=store)
        del scratch.environment["GLIBC_TUNABLES"]

        def start_worker(number):
            command = ("--server", address, "--name", f"w{number}", "--devices", "fake", "--work-dir", scratch.path("work"))
            return scratch.start("warploom-worker", *command, "--quiet", name=f"w{number}")

        workers = [start_worker(number) for number in range(WORKERS)]
        load = Load(scratch, address)

        def search(number):
            # The exit code 6 is accepted, because listings() may have cancelled the job.
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

        def preemptions(number):
            workers[number % WORKERS].kill()
            scratch.children.remove(workers[number % WORKERS])
            workers[number % WORKERS] = start_worker(number % WORKERS)

        def interrupted(number):
            """Tunes with a client that is interrupted by SIGINT, which cancels its job."""
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
        for name, turn, every in (
            ("searches", search, 0), ("answers", cached, 0), ("listings", listings, 0), ("connections", connections, 0.5),
            ("preemptions", preemptions, min(7, SECONDS / 4)), ("interrupted", interrupted, 0),
        ):
            load.repeat(name, turn, every)
        samples, heaps = [], []  # heaps: pairs of the seconds since the start and the MB that the heap holds
        while time.monotonic() - began < SECONDS and not load.wrong:
            if daemon.process.poll() is not None:
                load.wrong.append(f"the coordinator ended with {daemon.process.returncode}")
                break
            samples.append(Sample(daemon.process.pid, store, began))
            if samples[-1].at >= (len(heaps) + 1) * REST_S:
                heaps.append((samples[-1].at, load.heap_at_rest()))
            time.sleep(min(1, SECONDS / 20))  # pause between two samples of the process
        if not load.wrong:
            heaps.append((time.monotonic() - began, load.heap_at_rest()))
        load.finish()
        if load.wrong:
            fail("; ".join(load.wrong))
        calm = until_calm(daemon, store, began)
        report(samples, calm, load)
        judge_memory(samples, heaps)


def until_calm(daemon, store, began):
    """Waits until the connections of ended clients are closed; then returns a sample of what the coordinator holds."""
    last = [Sample(daemon.process.pid, store, began)]

    def settled():
        last.append(Sample(daemon.process.pid, store, began))
        return last[-1].descriptors <= last[0].descriptors

    until(settled, 60, "connections of ended clients are closed")
    return last[-1]


def report(samples, calm, load):
    late = samples[len(samples) // 3 :]
    early = samples[len(samples) // 3 : len(samples) // 2]
    print(
        f"{SECONDS:.0f} s: {load.counts}; "
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


def judge_memory(samples, heaps):
    """Fails if memory grows. Does not judge a test that is shorter than LONG_S."""
    if SECONDS < LONG_S:
        print(f"memory is not judged: {SECONDS:.0f} s is less than {LONG_S}; at rest the heap holds {heaps[-1][1]:.2f} MB")
        return
    late = samples[len(samples) // 3 :]
    quarter = len(samples) // 4
    most = max(s.memory for s in samples[quarter : 2 * quarter])
    at_last = max(s.memory for s in samples[3 * quarter :])
    heaps = [one for one in heaps if one[0] >= SECONDS / 3]
    print(
        f"resident {min(s.memory for s in late):.1f} to {max(s.memory for s in late):.1f} MB, at most {most:.1f} in the second "
        f"quarter and {at_last:.1f} in the last; at rest the heap holds "
        f"{min(h for _, h in heaps):.2f} to {max(h for _, h in heaps):.2f} MB",
        flush=True,
    )
    print(f"resident {resident_slope(late):+.2f} MB an hour, which is not judged")
    expect(at_last <= MOST_RESIDENT * most, f"resident memory grows: {at_last:.1f} MB at last, {most:.1f} MB in the second quarter")
    if heaps[0][1] == 0:
        print("the slope of the heap is not judged: the C library does not count it; a sanitizer has an allocator of its own")
        return
    grows = slope(heaps)
    print(f"the heap {grows:+.2f} MB an hour", flush=True)
    expect(grows < MOST_SLOPE_MB, f"what the heap holds grows by {grows:.2f} MB an hour")


if __name__ == "__main__":
    main()
