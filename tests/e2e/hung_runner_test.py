#!/usr/bin/env python3
"""Runners are stopped (SIGSTOP) during measurements while their worker keeps running. The worker kills each stopped runner, its batch is
measured again, no candidate counts as failed, and the job ends."""

import os
import pathlib
import signal
import sqlite3

import graphs
from harness import WHOLE, Scratch, expect, until

STOPS = 5 if WHOLE else 2


def descendants_of(pid):
    """Returns the pids of all descendants of a process, whichever of its threads started them. (In the sandbox, two processes are between
    the worker and its runner.) Processes and threads that end meanwhile are left out."""
    found = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found  # the process has ended meanwhile
    for thread in threads:
        try:
            found += map(int, pathlib.Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
        except OSError:
            pass  # the thread has ended meanwhile
    return found + [inner for child in found for inner in descendants_of(child)]


def is_measuring(pid):
    """Returns whether a process is a runner of a CPU device and is neither stopped nor ended."""
    try:
        command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return command[0].endswith(b"warploom-runner") and command[2:3] == [b"cpu"] and state not in "TZX"


def stop(pid):
    """Stops a process; returns whether it existed."""
    try:
        os.kill(pid, signal.SIGSTOP)
    except ProcessLookupError:
        return False
    return True


def stop_a_runner(worker, tune):
    """Waits for a worker that measures, and stops its runner; returns the runner's pid, or None if the job has ended."""

    def stopped():
        if tune.poll() is not None:
            return "over"
        for pid in descendants_of(worker.pid):
            if is_measuring(pid) and stop(pid):
                return pid
        return None

    pid = until(stopped, 120, "a runner measures")
    return None if pid == "over" else pid


def main():
    with Scratch() as scratch:
        graph = scratch.root / "g.graph"
        graph.write_text(graphs.SOFTMAX)
        store, socket = scratch.path("a.db"), scratch.path("s")
        address = f"unix:{socket}"
        scratch.serve(socket, store=store)
        worker = scratch.start("warploom-worker", "--server", address, "--name", "w").process
        tune = scratch.start("warploom", "tune", graph, "--server", address, "--trials", 6).process
        pids = []
        for _ in range(STOPS):
            pid = stop_a_runner(worker, tune)
            expect(pid is not None, "the job ended before its runners were stopped")
            until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), 60, f"the stopped runner {pid} is killed and reaped")
            pids.append(pid)
        expect(tune.wait(timeout=300) == 0, f"tune ended with {tune.returncode}")
        expect(worker.poll() is None, f"the worker ended with {worker.returncode}")
        expect(len(set(pids)) == STOPS, f"stopped runners: {pids}")
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
            blamed = connection.execute("SELECT plan, outcome, message FROM trials WHERE outcome IN (3, 4)").fetchall()
        expect(not blamed, f"candidates were blamed: {blamed}")
        print(f"{STOPS} runners were stopped, nobody blamed")


if __name__ == "__main__":
    main()
