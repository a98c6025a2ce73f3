#!/usr/bin/env python3
"""The Slurm array of deploy/slurm on a real Slurm, started by the command of deploy/README.md. Four workers measure for a batch, with the
certificate of their node. One task is cancelled during its work, one is preempted and requeued, slurmctld is restarted, and a worker of
another machine registers and confirms. The batch ends with the bundles of an undisturbed run, after as many trials, and no candidate counts
as failed."""

import re

import slurm
from documented import documented, shell
from harness import BIN, WHOLE, Scratch, bundles_of, expect, expect_same, leased_in, rows_in, shown, trials_in, until

import graphs

REPEATS = 10 if WHOLE else 1


BATCH = """trials = 24
at_once = 1
out = "{out}"
[[model]]
file = "softmax.graph"
[[model]]
file = "products.graph"
"""


class Fleet:
    """A coordinator, and a batch that waits for workers."""

    def __init__(self, scratch, name):
        self.scratch, self.name, self.store = scratch, name, scratch.path(f"{name}.db")
        (scratch.root / f"{name}.toml").write_text(BATCH.format(out=name))
        # Both Slurm nodes are this machine. These rows of the callers file make the coordinator count them as two machines.
        callers = f"{name}.callers"
        scratch.callers("".join(f"machine {node} spiffe://warploom/warploom/worker/{node}\n" for node in ("node", "elsewhere")), callers)
        who = ["--callers", callers, "--trust-domain", "warploom", *shown("coordinator")]
        self.daemon = scratch.start("warploomd", "--store", self.store, "--listen", "localhost:0", *who, name=f"warploomd.{name}")
        self.address = scratch.logged(f"warploomd.{name}", r"listening on (\S+)", "it listens")
        self.batch = scratch.start("warploom", "batch", f"{name}.toml", "--server", self.address, *shown("alice"), "--jobs", 1, name=f"batch.{name}")

    def worker(self, certificate):
        name = f"{self.name}.{certificate}"
        return self.scratch.start("warploom-worker", "--server", self.address, *shown(certificate), "--devices", "fake", "--name", name, name=name)

    def finish(self):
        expect(self.batch.wait(300) == 0, (self.scratch.root / f"batch.{self.name}.log").read_text())
        blamed = rows_in(self.store, "SELECT plan, message FROM trials WHERE outcome IN (3, 4)")
        expect(not blamed, f"candidates were blamed: {blamed}")
        return trials_in(self.store), bundles_of(self.scratch.root / self.name)


def undisturbed(scratch):
    fleet = Fleet(scratch, "calm")
    workers = [fleet.worker("node"), fleet.worker("elsewhere")]
    result = fleet.finish()
    for part in (*workers, fleet.daemon):
        part.kill()
    return result


def disturbed(scratch, cluster, number, calm):
    whole, bundles = calm
    fleet = Fleet(scratch, f"run{number}")
    command = documented("sbatch --array=0-7 --gres=gpu:1 --export", {"0-7": "0-3", "coordinator.lab:7411": fleet.address})
    array = cluster.submit_as_documented(command, WARPLOOM_DEVICES="fake", WARPLOOM_BIN=BIN, WARPLOOM_IDLE=5)

    def task_with_a_lease(but=()):
        names = [re.search(r"slurm-warploom-(\d+)-(\d+)$", name) for name in leased_in(fleet.store)]
        tasks = {f"{name[1]}_{name[2]}" for name in names if name} - set(but)
        return min(tasks) if tasks else None

    until(lambda: trials_in(fleet.store) >= whole // 4, 120, "a quarter of the trials")
    cancelled = until(task_with_a_lease, 60, "a worker has a lease")
    cluster.ask("scancel", cancelled)
    until(lambda: cluster.states(array).get(cancelled) not in ("RUNNING", "COMPLETING"), 30, f"task {cancelled} has ended")
    # The urgent job needs two processors: the cancelled task has left one, and Slurm preempts another task to get the second.
    urgent = cluster.submit("--partition=high", "--ntasks=2", "--wrap", "sleep 2")

    def preempted():
        return [task for task, state in cluster.states(array).items() if state in ("PENDING", "REQUEUED", "REQUEUE_HOLD")]

    victim = until(preempted, 60, "a task is preempted")[0]
    cluster.restart_controller()
    elsewhere = fleet.worker("elsewhere")
    until(lambda: cluster.states(urgent).get(urgent) not in ("PENDING", "RUNNING", "CONFIGURING"), 60, "the urgent job is done")
    count, made = fleet.finish()
    expect(count == whole, f"{count} trials, undisturbed {whole}")
    expect_same(made, bundles)
    # The preempted task starts again under its old name, finds no work and ends like all other tasks.
    until(lambda: not {"RUNNING", "PENDING", "COMPLETING"} & set(cluster.states(array).values()), 120, "all workers have ended")
    states = cluster.states(array)
    expect(all(state == "COMPLETED" for task, state in states.items() if task != cancelled), states)
    restarted = cluster.ask("scontrol", "show", "job", victim)
    expect("Restarts=1" in restarted, restarted)
    for part in (elsewhere, fleet.daemon):
        part.kill()


def main():
    with Scratch() as scratch, slurm.Slurm(scratch) as cluster:
        (scratch.root / "softmax.graph").write_text(graphs.SOFTMAX)
        (scratch.root / "products.graph").write_text(graphs.PRODUCTS)
        make = "deploy/certificates.sh tls"
        shell(scratch, f"{make} coordinator localhost; {make} worker {cluster.host} node elsewhere; {make} client alice")
        calm = undisturbed(scratch)
        for number in range(REPEATS):
            disturbed(scratch, cluster, number, calm)
        print(f"{REPEATS} times: one task cancelled, one preempted, slurmctld restarted; {calm[0]} trials each, none lost")


if __name__ == "__main__":
    main()
