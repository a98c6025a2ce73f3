#!/usr/bin/env python3
"""A whole batch as one Slurm job (deploy/slurm/batch.sbatch): certificates, coordinator, workers and bundles. A job that is requeued during
its work, as after a preemption, continues and ends with the bundles of an undisturbed run. A wrong batch file fails the job at once."""

import os
import socket

import slurm
from documented import documented
from harness import BIN, SOURCE, Scratch, bundles_of, expect, expect_same, trials_in, until

import graphs

BATCH = """out = "{out}"
trials = 24
at_once = 1
[[model]]
file = "softmax.graph"
[[model]]
file = "products.graph"
"""


class Job:
    """A run of batch.sbatch with a store of its own."""

    def __init__(self, scratch, cluster, name, text):
        self.scratch, self.cluster, self.name = scratch, cluster, name
        self.store, self.port = scratch.path(f"{name}.home/store.db"), slurm.free_port()
        (scratch.root / f"{name}.toml").write_text(text)
        changes = {"--nodes=4": f"--nodes=1 --output={name}.log", "nightly.toml": f"{name}.toml"}
        self.number = cluster.submit_as_documented(
            documented("sbatch --nodes=4 --gres=gpu:1 deploy/slurm/batch.sbatch", changes), WARPLOOM_HOME=scratch.path(f"{name}.home"),
            WARPLOOM_BIN=BIN, WARPLOOM_DEPLOY=SOURCE / "deploy", WARPLOOM_PORT=self.port, WARPLOOM_DEVICES="fake",
        )

    def log(self):
        path = self.scratch.root / f"{self.name}.log"
        return path.read_text() if path.exists() else ""

    def end(self, state):
        ended = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        got = until(lambda: next((s for s in self.cluster.states(self.number).values() if s in ended), None), 240, "the job has ended")
        expect(got == state, f"{got}, expected {state}: {self.log()}")
        with socket.socket() as probe:
            expect(probe.connect_ex(("127.0.0.1", self.port)) != 0, "something of the job listens still")


def main():
    with Scratch() as scratch, slurm.Slurm(scratch) as cluster:
        (scratch.root / "softmax.graph").write_text(graphs.SOFTMAX)
        (scratch.root / "products.graph").write_text(graphs.PRODUCTS)
        calm = Job(scratch, cluster, "calm", BATCH.format(out="calm"))
        calm.end("COMPLETED")
        expect("2 of 2 bundles are in calm" in calm.log(), calm.log())
        whole = trials_in(calm.store)
        secret = scratch.root / "calm.home/tls/ca.key"
        expect(os.stat(secret).st_mode & 0o077 == 0, "others may read the authority's key")

        moved = Job(scratch, cluster, "moved", BATCH.format(out="moved"))
        until(lambda: trials_in(moved.store) >= whole // 3, 120, "a third of the trials")
        cluster.ask("scontrol", "requeue", moved.number)
        moved.end("COMPLETED")
        expect("Restarts=1" in cluster.ask("scontrol", "show", "job", moved.number), "it was not requeued")
        expect(trials_in(moved.store) == whole, f"{trials_in(moved.store)} trials, in one piece {whole}")
        expect_same(bundles_of(scratch.root / "moved"), bundles_of(scratch.root / "calm"))

        wrong = Job(scratch, cluster, "wrong", 'out = "wrong"\n')
        wrong.end("FAILED")
        expect("no model; expected [[model]]" in wrong.log(), wrong.log())
        print(f"requeued in the middle: {whole} trials, as in one piece")


if __name__ == "__main__":
    main()
