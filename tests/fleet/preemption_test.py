#!/usr/bin/env python3
"""Workers are preempted many times: ended (SIGTERM), killed (SIGKILL), or stopped (SIGSTOP) until after the end of their lease. No
candidate counts as failed, the job ends, late reports are ignored, and the folders of a killed worker are removed when the next worker
starts."""

import pathlib
import random
import signal
import time

import graphs
from harness import WHOLE, Scratch, expect, leased_in, rows_in, until

PREEMPTIONS = 50 if WHOLE else 12
LEASE_S = 1.5
NAMES = ("w0", "w1", "w2", "w3")


def start_worker(scratch, address, name, number):
    return scratch.start(
        "warploom-worker", "--server", address, "--name", name, "--devices", "fake", "--work-dir", scratch.path("work"),
        "--quiet", name=f"{name}.{number}",
    )


def preempt(scratch, address, workers, name, how, number):
    name = name.split("/")[-1]  # the worker's name without its principal
    child = workers[name].process
    if how == signal.SIGSTOP:
        child.send_signal(signal.SIGSTOP)
        time.sleep(LEASE_S + 1)  # seconds for which the worker is stopped
        child.send_signal(signal.SIGCONT)
        return
    child.send_signal(how)
    expect(child.wait(timeout=30) in (0, -signal.SIGKILL), f"{name} ended with {child.returncode}")
    workers[name].kill()
    workers[name] = start_worker(scratch, address, name, number)


def victims(store, how):
    """Returns workers that have a lease and may be preempted. A batch may be lost only twice, since after three losses a candidate counts
    as failed (docs/design/service.md#lost-leases). A batch that a worker returns on SIGTERM does not count as lost."""
    losses = "length(lost_on) - length(replace(lost_on, char(10), ''))"
    return leased_in(store, "TRUE" if how == signal.SIGTERM else f"{losses} < 2")


def main():
    with Scratch() as scratch:
        (scratch.root / "work").mkdir()
        graph = scratch.root / "g.graph"
        graph.write_text(graphs.SOFTMAX)
        store, socket = scratch.path("a.db"), scratch.path("s")
        address = f"unix:{socket}"
        scratch.serve(socket, "--lease-seconds", LEASE_S, store=store)
        workers = {name: start_worker(scratch, address, name, 0) for name in NAMES}
        jobs = 0
        tune = None
        chance = random.Random(11)
        for number in range(1, PREEMPTIONS + 1):

            how = (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP)[number % 3]

            def busy(how=how):
                nonlocal tune, jobs
                if tune is None or tune.process.poll() is not None:
                    expect(tune is None or tune.process.returncode == 0, f"tune ended with {tune and tune.process.returncode}")
                    jobs += 1
                    command = ("tune", graph, "--server", address, "--trials", 48, "--retune", "--seed", jobs)
                    tune = scratch.start("warploom", *command, name=f"tune{jobs}")
                return victims(store, how)

            victim = chance.choice(sorted(until(busy, 60, "a worker has a lease")))
            preempt(scratch, address, workers, victim, how, number)
        expect(tune.wait(deadline=300) == 0, f"the last job ended with {tune.process.returncode}")
        blamed = rows_in(store, "SELECT plan, message FROM trials WHERE outcome IN (3, 4)")
        expect(not blamed, f"candidates were blamed: {blamed}")
        states = rows_in(store, "SELECT state, error_message FROM jobs")
        expect(len(states) == jobs and all(state == 2 for state, _ in states), f"jobs: {states}")
        for name in NAMES:
            workers[name].kill()
        fresh = start_worker(scratch, address, "fresh", 0)
        until(lambda: not list(pathlib.Path(scratch.path("work")).glob("measure.*")), 30, "the folders of killed workers are gone")
        fresh.kill()
        print(f"{PREEMPTIONS} preemptions, {jobs} jobs, nobody blamed")


if __name__ == "__main__":
    main()
