#!/usr/bin/env python3
"""Ctrl-C on a search keeps the best kernels so far: the exit code is 6, a hint is printed, and the same command continues where the search
stopped."""

import signal

import graphs
from harness import Scratch, expect, trials_in, until


def main():
    with Scratch() as scratch:
        (scratch.root / "g.graph").write_text(graphs.SOFTMAX_MATMUL)
        store, bundle = scratch.path("s.db"), scratch.path("bundle")
        command = ("tune", "g.graph", "--store", store, "--strategy", "random", "--out", bundle)
        child = scratch.start("warploom", *command, "--trials", 400, name="tune")
        until(lambda: trials_in(store) >= 6 or child.process.poll() is not None, 120, "some trials are stored")
        child.process.send_signal(signal.SIGINT)
        code = child.wait(deadline=90)
        said = (scratch.root / "tune.log").read_text()
        expect(code == 6, f"exit code {code}, expected 6:\n{said}")
        expect("same command" in said, f"no hint how to continue:\n{said}")
        stored = trials_in(store)
        expect(stored >= 6, f"{stored} trials are left")
        report = scratch.run("warploom", *command, "--trials", 8, "--json", "-").json()
        expect(trials_in(store) >= stored, "trials were lost")
        expect(report["groups"], "no report")
        # Even SIGKILL loses no stored trial. When the command is started again, it first cancels the job that the killed process has left.
        again = ("tune", "g.graph", "--store", store, "--strategy", "random", "--seed", 9, "--retune")
        child = scratch.start("warploom", *again, "--trials", 400, name="killed")
        until(lambda: trials_in(store) >= stored + 8 or child.process.poll() is not None, 120, "more trials are stored")
        child.kill()
        stored = trials_in(store)
        scratch.run("warploom", *command, "--trials", 12)
        expect(trials_in(store) >= stored, "trials were lost")
        jobs = scratch.run("warploom", "jobs", "--store", store, "--json", "-").json()["jobs"]
        running = [job for job in jobs if job["state"] in ("queued", "running")]
        expect(len(running) <= 1, f"orphans: {running}")
        checked = scratch.run("warploom", "run", bundle, "--check", "--json", "-").json()
        expect(checked["correct"], f"wrong outputs: {checked}")
        print(f"interrupted after {stored} trials, resumed, {trials_in(store)} in the end")


if __name__ == "__main__":
    main()
