#!/usr/bin/env python3
"""`warploom batch` on a fleet: all processes are killed several times with SIGKILL, the same command continues, and in the end the bundles
have the kernels and figures of an undisturbed run, after as many trials. The test also covers embedded mode and wrong files."""

import signal

import graphs
from harness import WHOLE, Scratch, expect, trials_in, until
from killed_batch import killed_as_calm

KILLS = 5 if WHOLE else 2
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


FILES = {"softmax.graph": graphs.SOFTMAX, "exp.graph": graphs.EXP, "products.graph": graphs.PRODUCTS}


def disturbed(scratch):
    calm, shaken = killed_as_calm(scratch, BATCH, {name: text.encode() for name, text in FILES.items()}, KILLS, 120)
    expect("3 of 3 bundles are in calm/bundles" in calm.said, calm.said)
    expect({"softmax", "simple", "products"} == {name.split("/")[0] for name in calm.bundles()}, calm.bundles())
    whole = trials_in(shaken.store)
    # When the same batch is run again, it is answered from the store.
    address = f"unix:{shaken.socket}"
    again = scratch.run("warploom", "batch", "shaken/batch.toml", "--server", address, "--json", "-").json()
    expect([run["state"] for run in again["runs"]] == ["done"] * 3, again)
    expect(all(run["sizes"][0]["report"]["job"]["cached"] for run in again["runs"]), again)
    expect(trials_in(shaken.store) == whole, "something was measured again")
    shaken.kill()
    return whole


def on_one_machine(scratch):
    """With both workers on one machine, no record is confirmed. The bundles still equal those of an undisturbed run."""
    batch = BATCH[: BATCH.index("[[model]]")] + '[[model]]\nfile = "products.graph"\n'
    _, shaken = killed_as_calm(scratch, batch, {"products.graph": graphs.PRODUCTS.encode()}, KILLS, 120, one_machine=True)
    shaken.kill()


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
        ('out = "c"\n[[model]]\nfile = "none.onnx"\n[[model]]\nfile = "calm/exp.graph"\ntrials = 2\n', 2, "none/cpu: warploom: error: cannot read"),
    ):
        (scratch.root / "wrong.toml").write_text(text)
        done = scratch.run("warploom", "batch", "wrong.toml", "--store", scratch.path("w.db"), expect=code)
        expect(says in done.err, done.err)
        # A mistake in the entry of one model does not keep the other models from being tuned.
        if text.count("[[model]]") > 1:
            expect("1 of 2 bundles" in done.out and "failed" in done.out, done.out)
    expect((scratch.root / "b/softmax/cpu/manifest.json").exists() and (scratch.root / "c/exp/cpu/manifest.json").exists(), "bundles of the others")


def main():
    with Scratch() as scratch:
        whole = disturbed(scratch)
        if WHOLE:
            on_one_machine(scratch)
        in_one_process(scratch)
        mistakes(scratch)
        print(f"{KILLS} kills of everything, {whole} trials as without them")


if __name__ == "__main__":
    main()
