#!/usr/bin/env python3
"""`warploom batch` on a fleet: everything is killed again and again (kill -9), the same command goes on, and in the end the
bundles have the kernels and figures of a run that nobody disturbed, from as many trials. Also in one process, and its mistakes."""

import signal

import graphs
from harness import WHOLE, Scratch, bundles_of, expect, expect_same, listening, trials_in, until

KILLS = 5 if WHOLE else 2
# Times are a hash of the source (`--devices fake`); with at_once = 1 the candidates do not depend on the workers, and with --jobs 1
# not on the order in which the models ask for what they share.
BATCH = """out = "bundles"
trials = 12
at_once = 1
[[model]]
file = "softmax.graph"
targets = ["cpu"]
[[model]]
file = "exp.graph"
name = "simple"
[[model]]
file = "products.graph"
trials = 8
"""


class Fleet:
    """A coordinator and two workers in one folder; begun() numbers their logs."""

    def __init__(self, scratch, folder):
        self.scratch, self.folder, self.begun, self.parts = scratch, folder, 0, []
        self.store, self.socket = scratch.path(f"{folder}/a.db"), scratch.path(f"{folder}/s")
        (scratch.root / folder).mkdir()
        for name, text in (("softmax", graphs.SOFTMAX), ("exp", graphs.EXP), ("products", graphs.PRODUCTS)):
            (scratch.root / folder / f"{name}.graph").write_text(text)
        (scratch.root / folder / "batch.toml").write_text(BATCH)

    def start(self):
        self.begun += 1
        name = f"{self.folder}.{self.begun}"
        address = f"unix:{self.socket}"
        (self.scratch.root / self.folder / "s").unlink(missing_ok=True)
        # The client comes first: it waits for its coordinator.
        client = self.scratch.start("warploom", "batch", f"{self.folder}/batch.toml", "--server", address, "--jobs", 1, name=f"batch.{name}")
        daemon = self.scratch.start("warploomd", "--store", self.store, "--listen", address, name=f"warploomd.{name}")
        until(lambda: listening(self.socket), 30, "the coordinator listens")
        workers = [
            self.scratch.start("warploom-worker", "--server", address, "--name", f"w{i}", "--devices", "fake", name=f"w{i}.{name}")
            for i in range(2)
        ]
        self.parts = [client, daemon, *workers]
        return client

    def kill(self):
        for part in self.parts:
            part.kill()

    def bundles(self):
        return bundles_of(self.scratch.root / self.folder / "bundles")


def disturbed(scratch):
    calm = Fleet(scratch, "calm")
    expect(calm.start().wait(120) == 0, (scratch.root / "batch.calm.1.log").read_text())
    calm.kill()
    whole = trials_in(calm.store)
    said = (scratch.root / "batch.calm.1.log").read_text()
    expect("3 of 3 bundles are in calm/bundles" in said, said)
    expect({"softmax", "simple", "products"} == {name.split("/")[0] for name in calm.bundles()}, calm.bundles())

    fleet = Fleet(scratch, "shaken")
    for number in range(1, KILLS + 1):
        client = fleet.start()
        enough = whole * number // (KILLS + 1)
        until(lambda: trials_in(fleet.store) >= enough or client.process.poll() is not None, 120, f"{enough} trials")
        expect(client.process.poll() is None, "the batch ended before it was killed")
        fleet.kill()
    expect(fleet.start().wait(120) == 0, (scratch.root / f"batch.shaken.{fleet.begun}.log").read_text())
    expect(trials_in(fleet.store) == whole, f"{trials_in(fleet.store)} trials, without kills {whole}")
    expect_same(fleet.bundles(), calm.bundles())
    # A batch that is done is asked for anew, and the store has it all.
    address = f"unix:{fleet.socket}"
    again = scratch.run("warploom", "batch", "shaken/batch.toml", "--server", address, "--json", "-").json()
    expect([run["state"] for run in again["runs"]] == ["done"] * 3, again)
    expect(all(run["sizes"][0]["report"]["job"]["cached"] for run in again["runs"]), again)
    expect(trials_in(fleet.store) == whole, "something was measured again")
    fleet.kill()
    return whole


def in_one_process(scratch):
    (scratch.root / "one.toml").write_text('out = "one"\ntrials = 200\n[[model]]\nfile = "calm/softmax.graph"\n')
    command = ("batch", "one.toml", "--store", scratch.path("one.db"))
    child = scratch.start("warploom", *command, name="one")
    until(lambda: trials_in(scratch.path("one.db")) >= 3 or child.process.poll() is not None, 120, "some trials")
    busy = scratch.run("warploom", *command[:2], "--store", scratch.path("two.db"), expect=2)
    expect("another `warploom batch` writes to" in busy.err, busy.err)
    child.process.send_signal(signal.SIGTERM)
    expect(child.wait(60) == 6, (scratch.root / "one.log").read_text())
    said = (scratch.root / "one.log").read_text()
    expect("the same command goes on from here" in said and "not done" in said, said)
    stored = trials_in(scratch.path("one.db"))
    text = (scratch.root / "one.toml").read_text().replace("200", str(stored + 4))
    (scratch.root / "one.toml").write_text(text)
    done = scratch.run("warploom", *command)
    expect("1 of 1 bundles" in done.out and trials_in(scratch.path("one.db")) >= stored, done.out)
    scratch.run("warploom", "run", "one/softmax/cpu", "--check")
    expect(not (scratch.root / "one/.unfinished-batch").exists(), "a batch that is done is not unfinished")


def mistakes(scratch):
    for text, code, says in (
        ('out = "b"\n[[model]]\nfile = "none.onnx"\n', 2, "none.onnx"),
        ('out = "b"\n[[model]]\nfile = "calm/exp.graph"\ntarget = "cpu"\n', 2, 'wrong.toml, line 4: unknown key "target" of a model'),
        ('out = "b"\n[[model]]\nfile = "calm/exp.graph"\ntargets = ["cpu:z80"]\n[[model]]\nfile = "calm/softmax.graph"\ntrials = 2\n', 2, "cpu:z80"),
    ):
        (scratch.root / "wrong.toml").write_text(text)
        done = scratch.run("warploom", "batch", "wrong.toml", "--store", scratch.path("w.db"), expect=code)
        expect(says in done.err, done.err)
    # What is wrong with one model does not keep the others from being tuned.
    expect("1 of 2 bundles" in done.out and (scratch.root / "b/softmax/cpu/manifest.json").exists(), done.out)


def main():
    with Scratch() as scratch:
        whole = disturbed(scratch)
        in_one_process(scratch)
        mistakes(scratch)
        print(f"{KILLS} kills of everything, {whole} trials as without them")


if __name__ == "__main__":
    main()
