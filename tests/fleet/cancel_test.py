#!/usr/bin/env python3
"""`tune`, `inspect`, `run` and `batch` are ended at random moments, by SIGTERM, Ctrl-C, CancelJob or the death of a client: everything ends
soon and leaves no process, no file in TMPDIR and no lock on a store. Ending `watch` does not cancel its job."""

import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import time

import graphs
from harness import SCALE, Scratch, expect, until

MOMENTS = max(2, round(5 * SCALE))  # how often each command is stopped: 2 times in `make test`, 50 times in `make test-long`
LATEST = 3.0  # latest moment of a signal, in seconds after the start of a command
DEADLINE = 60  # seconds after which a process counts as hung


def network(blocks):
    """Returns a graph of attention blocks and a perceptron. Planning the graph takes seconds, since all blocks differ."""
    lines, value = ['%0 = input "x" : f32[4,64,96] normal(0,1)'], 0

    def add(text):
        lines.append(f"%{len(lines)} = {text}")
        return len(lines) - 1

    for block in range(blocks):
        width, wide = 96, 128 + 16 * block
        up = add(f'input "u{block}" : f32[{width},{wide}] normal(0,1)')
        down = add(f'input "d{block}" : f32[{wide},{width}] normal(0,1)')
        scores = add(f'contract %{value} %{value} "aqd,akd->aqk" : f32[4,64,64]')
        most = add(f"reduce_max %{scores} axes=[2] : f32[4,64]")
        most = add(f"broadcast %{most} dims=[0,1] : f32[4,64,64]")
        powers = add(f"sub %{scores} %{most} : f32[4,64,64]")
        powers = add(f"exp %{powers} : f32[4,64,64]")
        sums = add(f"reduce_sum %{powers} axes=[2] : f32[4,64]")
        sums = add(f"broadcast %{sums} dims=[0,1] : f32[4,64,64]")
        shares = add(f"div %{powers} %{sums} : f32[4,64,64]")
        mixed = add(f'contract %{shares} %{value} "aqk,akd->aqd" : f32[4,64,96]')
        mixed = add(f"add %{mixed} %{value} : f32[4,64,96]")
        inner = add(f'contract %{mixed} %{up} "abk,kn->abn" : f32[4,64,{wide}]')
        inner = add(f"tanh %{inner} : f32[4,64,{wide}]")
        outer = add(f'contract %{inner} %{down} "abk,kn->abn" : f32[4,64,96]')
        value = add(f"add %{outer} %{mixed} : f32[4,64,96]")
    return "graph {\n  " + "\n  ".join(lines) + f'\n  output "y" %{value}\n}}\n'


def processes_of(session):
    """Returns the running processes of a session, as (pid, command)."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        name, rest = re.search(r"\((.*)\) (.*)", text, re.S).groups()
        state, _, _, owner = rest.split()[:4]
        if int(owner) == session and state != "Z":
            found.append((int(stat.parent.name), name))
    return found


class Moments:
    def __init__(self, scratch):
        self.scratch = scratch
        self.random = random.Random(int(os.environ.get("WARPLOOM_TEST_SEED", "7")))
        self.temporary = scratch.root / "tmp"
        self.temporary.mkdir()
        scratch.environment["TMPDIR"] = str(self.temporary)
        self.count = 0
        self.slowest = {}  # name of a command -> longest time in seconds from a signal to the command's end

    def expect_nothing_left(self, what, session):
        until(lambda: not processes_of(session), 30, f"{what}: its processes to end; left: {processes_of(session)}")
        left = [str(path) for path in self.temporary.rglob("*")]
        expect(not left, f"{what}: left in TMPDIR: {left}")

    def stop_at(self, moment, sent, *command):
        """Runs a command, sends it a signal after `moment` seconds unless it has ended, and checks that it leaves no process, file or lock
        behind."""
        self.count += 1
        shutil.rmtree(self.temporary, ignore_errors=True)
        self.temporary.mkdir()
        child = self.scratch.start("warploom", *command, name=f"stopped{self.count}")
        try:
            child.process.wait(timeout=moment)
            ended = True
        except subprocess.TimeoutExpired:
            ended = False
        what = f"{command[0]}, {sent.name} after {moment:.3f} s"
        if not ended:
            child.process.send_signal(sent)
        begin = time.monotonic()
        code = child.wait(DEADLINE)
        took = time.monotonic() - begin
        if not ended:
            self.slowest[command[0]] = max(self.slowest.get(command[0], 0), took)
        # A signal that arrives before main() begins has its default action: it ends the process, whose exit code here is then the negative
        # signal number.
        expect(ended or code in (0, 6, -sent.value), f"{what}: exit code {code}\n{(self.scratch.root / f'stopped{self.count}.log').read_text()}")
        self.expect_nothing_left(what, child.process.pid)

    def of_this_process(self):
        scratch, store = self.scratch, self.scratch.path("s.db")
        (scratch.root / "small.graph").write_text(graphs.SOFTMAX_MATMUL)
        (scratch.root / "large.graph").write_text(network(60))
        (scratch.root / "batch.toml").write_text('out = "bundles"\ntrials = 40\n[[model]]\nfile = "small.graph"\n[[model]]\nfile = "large.graph"\n')
        bundle = scratch.path("bundle")
        scratch.run("warploom", "tune", "small.graph", "--store", store, "--trials", 1, "--out", bundle)
        commands = [
            ("tune", "small.graph", "--store", store, "--trials", 200, "--retune"),
            ("tune", "large.graph", "--store", store, "--trials", 1, "--cover", "planned"),
            ("inspect", "large.graph", "--store", store, "--stage", "space", "--cover", "planned"),
            ("run", bundle, "--repeat", 1000000),
            ("run", "small.graph", "--store", store, "--repeat", 1000000),
            ("batch", "batch.toml", "--store", store),
        ]
        for command in commands:
            for _ in range(MOMENTS):
                self.stop_at(self.random.uniform(0, LATEST), self.random.choice([signal.SIGTERM, signal.SIGINT]), *command)
                # The command `jobs` fails if a stopped command still holds the store's lock.
                scratch.run("warploom", "jobs", "--store", store, deadline=DEADLINE)

    def of_a_coordinator(self):
        scratch = self.scratch
        socket = scratch.path("c.sock")
        server = ("--server", f"unix:{socket}")
        # The commands' folder for temporary files must be empty when they have ended. The coordinator and its worker, which keep running,
        # use another folder.
        scratch.environment["TMPDIR"] = str(scratch.root)
        coordinator = scratch.serve(socket, store=scratch.path("c.db"))
        scratch.start("warploom-worker", *server, "--name", "w")
        scratch.environment["TMPDIR"] = str(self.temporary)
        tune = ("tune", "large.graph", *server, "--trials", 1, "--cover", "planned", "--retune")
        inspect = ("inspect", "large.graph", *server, "--stage", "space", "--cover", "planned")
        for number in range(MOMENTS):
            for command in (tune, inspect):
                self.stop_at(self.random.uniform(0, LATEST), signal.SIGKILL, *command)
            child = scratch.start("warploom", *tune, name=f"cancelled{number}")
            time_of = self.random.uniform(0, LATEST)
            try:
                child.process.wait(timeout=time_of)
            except subprocess.TimeoutExpired:
                pass
            jobs = scratch.run("warploom", "jobs", *server, "--json", "-").json()["jobs"]
            for job in jobs:
                if job["state"] in ("queued", "running"):
                    scratch.run("warploom", "cancel", job["name"], *server)
            child.process.send_signal(signal.SIGTERM)
            child.wait(DEADLINE)
        # The coordinator still plans graphs, so calls whose clients were stopped do not occupy all threads of its pools.
        for _ in range(3):
            scratch.run("warploom", "inspect", "small.graph", *server, "--stage", "plan", deadline=DEADLINE)
        coordinator.process.send_signal(signal.SIGTERM)
        expect(coordinator.wait(DEADLINE) == 0, "the coordinator does not end well")

    def watching(self):
        """Ctrl-C on `watch` cancels the watched job only with --cancel-on-interrupt."""
        scratch = self.scratch
        socket = scratch.path("w.sock")
        server = ("--server", f"unix:{socket}")
        scratch.serve(socket, store=scratch.path("w.db"), name="watched")
        tune = scratch.start("warploom", "tune", "small.graph", *server, name="asked")  # no worker is running, so the job waits for one

        def state():
            jobs = scratch.run("warploom", "jobs", *server, "--json", "-").json()["jobs"]
            return jobs[0]["state"] if jobs else None

        until(lambda: state() == "queued", 30, "the job to exist")
        for wanted, flags in (("queued", ()), ("cancelled", ("--cancel-on-interrupt",))):
            watch = scratch.start("warploom", "watch", "jobs/1", *server, "--progress", "json", *flags, name=f"watch-{wanted}")
            log = scratch.root / f"watch-{wanted}.log"
            until(lambda: "state" in log.read_text(), 30, "the job to be watched")
            watch.process.send_signal(signal.SIGINT)
            watch.wait(DEADLINE)
            until(lambda: state() == wanted, 30, f"the job to be {wanted} after Ctrl-C on `watch {' '.join(flags)}`: {log.read_text()}")
            if wanted == "queued":
                expect(watch.process.returncode == 6, f"exit code {watch.process.returncode}")
                expect("goes on" in log.read_text(), log.read_text())
                expect(tune.process.poll() is None, "the one who asked for the job lost it")
        tune.wait(DEADLINE)


def main():
    with Scratch() as scratch:
        moments = Moments(scratch)
        moments.of_this_process()
        moments.of_a_coordinator()
        moments.watching()
        print("seconds from a signal to the end, at most:", {kind: round(seconds, 2) for kind, seconds in moments.slowest.items()})


if __name__ == "__main__":
    main()
