#!/usr/bin/env python3
"""`tune --budget` ends when its time is over: without a worker, after the coordinator was killed, and while the coordinator does not
answer."""

import signal

import graphs
from harness import WHOLE, Scratch, expect, until

UNREACHABLE = 4


def tune(scratch, name, budget):
    """Starts a `tune` command without a worker, and returns its process once its job has been made."""
    known = len(jobs(scratch))
    child = scratch.start("warploom", "tune", "g.graph", "--server", f"unix:{scratch.path('s')}", "--budget", budget, name=name)
    until(lambda: len(jobs(scratch)) > known, 30, "the job is made")
    return child


def jobs(scratch):
    return scratch.run("warploom", "jobs", "--server", f"unix:{scratch.path('s')}", "--json", "-").json()["jobs"]


def ended(scratch, child, name, says):
    code = child.wait(deadline=60)
    said = (scratch.root / f"{name}.log").read_text()
    expect(code == UNREACHABLE, f"{name}: exit code {code}, expected {UNREACHABLE}:\n{said}")
    expect(says in said, f"{name}: expected {says!r} in\n{said}")


def main():
    with Scratch() as scratch:
        (scratch.root / "g.graph").write_text(graphs.SCALAR)
        daemon = scratch.serve(scratch.path("s"), store=scratch.path("s.db"), name="first")
        ended(scratch, tune(scratch, "alone", 1), "alone", "the budget of 1 s is over")
        expect(all(job["state"] in ("failed", "cancelled") for job in jobs(scratch)), f"a job is left: {jobs(scratch)}")

        child = tune(scratch, "killed", 2)
        daemon.kill()
        ended(scratch, child, "killed", "is unreachable; what was measured is in its store")

        if WHOLE:
            daemon = scratch.serve(scratch.path("s"), store=scratch.path("s.db"), name="second")
            child = tune(scratch, "stopped", 2)
            daemon.process.send_signal(signal.SIGSTOP)
            ended(scratch, child, "stopped", "did not answer in time")
        print("a budget holds without a worker, a coordinator and an answer")


if __name__ == "__main__":
    main()
