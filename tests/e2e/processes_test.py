#!/usr/bin/env python3
"""A coordinator on a Unix socket, two workers and a client are each killed with SIGKILL during a search and restarted. The client sees its
job end, the candidates are those of an undisturbed run with the same seed, and no trial is lost or stored twice."""

import sqlite3

import graphs
from harness import Scratch, expect, until

TRIALS = 24


class Fleet:
    def __init__(self, scratch, name):
        self.scratch, self.name = scratch, name
        self.store = scratch.path(f"{name}.db")
        self.socket = scratch.path(f"{name}.sock")
        self.address = f"unix:{self.socket}"
        self.starts = 0
        self.coordinator = self.start_coordinator()
        self.workers = {worker: self.start_worker(worker) for worker in ("w1", "w2")}

    def start_coordinator(self):
        self.starts += 1
        return self.scratch.serve(self.socket, store=self.store, name=f"{self.name}.coordinator{self.starts}")

    def start_worker(self, worker):
        self.starts += 1
        return self.scratch.start(
            "warploom-worker", "--server", self.address, "--name", worker, name=f"{self.name}.{worker}.{self.starts}"
        )

    def restart_coordinator(self):
        self.coordinator.kill()
        self.coordinator = self.start_coordinator()

    def restart_worker(self, worker):
        self.workers[worker].kill()
        self.workers[worker] = self.start_worker(worker)

    def rows(self, query):
        # The test opens the store's file only for reading, since the coordinator alone may write it.
        try:
            with sqlite3.connect(f"file:{self.store}?mode=ro", uri=True, timeout=5) as connection:
                return connection.execute(query).fetchall()
        except sqlite3.OperationalError:
            return []

    def trials(self):
        """Returns (key, phase, trial, plan) of every search trial, in order."""
        return self.rows(
            "SELECT s.key, t.phase, t.trial, t.plan FROM trials t JOIN searches s ON s.id = t.search_id "
            "WHERE t.phase = 0 ORDER BY s.key, s.generation, t.trial"
        )

    def stop(self):
        for child in [*self.workers.values(), self.coordinator]:
            child.kill()


def tune_command(fleet, graph):
    # The disturbed and the undisturbed fleet must propose the same candidates. So the cover is one kernel per op, since measured times
    # decide in other covers whether the parts of a group are tuned as well; and rounds come one at a time, since the candidates of several
    # rounds at once depend on the number of workers.
    return ("tune", graph, "--server", fleet.address, "--trials", TRIALS, "--cover", "one-per-op", "--strategy", "random", "--seed", 5, "--at-once", 1)


def main():
    with Scratch() as scratch:
        graph = scratch.root / "g.graph"
        graph.write_text(graphs.SOFTMAX_MATMUL)

        nowhere = ("warploomd", "--store", scratch.path("n.db"), "--listen", f"unix:{scratch.path('n')}", "--ranker", scratch.path("none"))
        said = scratch.run(*nowhere, expect=2).err
        expect("No such file or directory; `warploom-train` makes one" in said, f"a ranker that is not there: {said}")

        calm = Fleet(scratch, "calm")
        report = scratch.run("warploom", *tune_command(calm, graph), "--json", "-", deadline=240).json()
        expected = calm.trials()
        workers = scratch.run("warploom", "workers", "--server", calm.address, "--json", "-").json()["workers"]
        expect({w["name"].split("/")[-1] for w in workers} >= {"w1", "w2"}, f"workers: {workers}")
        watched = scratch.run("warploom", "watch", "jobs/1", "--server", calm.address, "--json", "-").json()
        expect(watched["groups"] == report["groups"], "watch reports something else than tune")
        scratch.run("warploom", "cancel", "jobs/1", "--server", calm.address)
        scratch.run("warploom", "watch", "jobs/77", "--server", calm.address, expect=3)
        calm.stop()
        expect(len(expected) >= TRIALS, f"only {len(expected)} trials")

        stormy = Fleet(scratch, "stormy")
        tune = scratch.start("warploom", *tune_command(stormy, graph), name="tune1")
        acknowledged = []

        def at_least(count):
            def check():
                trials = stormy.trials()
                done = tune.process.poll() is not None
                return (trials or ["none"]) if len(trials) >= count or done else None

            trials = until(check, 240, f"{count} trials are stored")
            # All trials that the previous call of at_least() found in the store are still there, unchanged.
            expect(set(acknowledged) <= set(trials), "a stored trial is gone")
            acknowledged[:] = trials

        at_least(1)
        expect(tune.process.poll() is None, "too quick to be disturbed")
        stormy.restart_worker("w1")
        at_least(len(acknowledged) + 1)
        stormy.restart_coordinator()
        at_least(len(acknowledged) + 1)
        stormy.restart_worker("w2")
        at_least(len(acknowledged) + 1)
        tune.kill()
        tune = scratch.start("warploom", *tune_command(stormy, graph), name="tune2")
        code = tune.wait(deadline=300)
        expect(code == 0, f"tune ended with {code}")
        at_least(0)

        found = stormy.trials()
        expect(len(found) == len(set(row[:3] for row in found)), "a trial is doubled")
        expect(found == expected, f"other candidates than undisturbed: {len(found)} and {len(expected)}")
        again = scratch.run("warploom", *tune_command(stormy, graph), "--json", "-").json()
        expect(again["job"]["cached"], "the second answer did not come from the store")
        expect([g["key"] for g in again["groups"]] == [g["key"] for g in report["groups"]], "other groups")
        stormy.stop()
        print(f"{len(found)} trials of {len(report['groups'])} groups, each once, after four kills")


if __name__ == "__main__":
    main()
