#!/usr/bin/env python3
"""A job that no worker serves reports this, and waits for a limited time. A worker that is killed counts as lost at once, and an idle
worker gets its batch long before the end of the lease."""

import json

import graphs
from harness import Scratch, expect, until

LEASE_S = 600


def workers(scratch):
    listed = json.loads(scratch.run("warploom", "workers", "--server", "unix:s", "--json", "-").out)["workers"]
    return {worker["name"]: worker for worker in listed}


def alone(scratch):
    done = scratch.run("warploom", "tune", "g.graph", "--server", "unix:s", "--trials", 2, "--wait-for-worker", "4s", expect=4)
    for says in ("waiting: no worker serves", "no worker is there", "start one with `warploom-worker --server unix:s`"):
        expect(says in done.err, done.err)
    jobs = json.loads(scratch.run("warploom", "jobs", "--server", "unix:s", "--json", "-").out)["jobs"]
    expect([job["state"] for job in jobs] == ["cancelled"], jobs)


def killed(scratch):
    """One of two workers is killed. Both are on one machine, but they count as two machines."""
    made = {}
    for name in ("a", "b"):
        known = ["--token-file", f"{name}.token", "--name", "w"]
        made[name] = scratch.start("warploom-worker", "--server", "unix:s", "--devices", "fake", *known, name=name)
    until(lambda: len(workers(scratch)) == 2, 60, "the workers are there")
    tune = scratch.start("warploom", "tune", "g.graph", "--server", "unix:s", "--trials", 100_000, "--budget", "60s", name="tune")
    until(lambda: workers(scratch)["a/w"]["leases"] == 1, 60, "a measures")
    made["a"].kill()
    until(lambda: not workers(scratch)["a/w"]["alive"], 10, "a is lost")
    expect("lost" in scratch.run("warploom", "workers", "--server", "unix:s").out, "the table says lost")
    expect(workers(scratch)["b/w"]["alive"], "b is there")
    until(lambda: workers(scratch)["a/w"]["leases"] == 0, 10, "what a had is given back")
    expect(tune.wait(120) == 0, (scratch.root / "tune.log").read_text())


def main():
    with Scratch() as scratch:
        (scratch.root / "g.graph").write_text(graphs.EXP)
        scratch.callers("machine one a\nmachine two b\n")
        for name in ("a", "b"):
            scratch.token(name, "worker")
        scratch.serve("s", "--callers", "callers", "--lease-seconds", LEASE_S, store="a.db")
        alone(scratch)
        killed(scratch)


if __name__ == "__main__":
    main()
