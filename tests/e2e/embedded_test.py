#!/usr/bin/env python3
"""Each of the five models in embedded mode: tuned, tuned again from the store (with the same bytes and without measuring a candidate), and
checked against the oracle. The test prints how long the second answer takes; only the benchmarks have a limit for it. Short runs leave out
the whole layer of BERT, of which the other models are parts."""

import pathlib
import shutil
import sys
import time

import graphs
import reference
from harness import MODELS, WHOLE, Scratch, digest_of, expect

TRIALS = 4


def tune_twice(scratch, model):
    name = model.stem
    first = scratch.path(f"{name}.first")
    began = time.monotonic()
    report = scratch.run("warploom", "tune", model, "--trials", TRIALS, "--out", first, "--json", "-").json()
    took = time.monotonic() - began
    expect(report["groups"], f"{name}: no groups in the report")
    for group in report["groups"]:
        expect(group["trials"]["correct"] > 0, f"{name}: group {group['what']} has no correct candidate")
        expect(group["max_error"] <= group["bound"], f"{name}: group {group['what']} is outside its bound")
        expect(0 < group["best_ns"], f"{name}: group {group['what']} has no time")

    second = scratch.path(f"{name}.second")
    times = []
    for _ in range(3):
        began = time.monotonic()
        again = scratch.run("warploom", "tune", model, "--trials", TRIALS, "--out", second, "--json", "-").json()
        times.append(time.monotonic() - began)
    expect(again["job"]["cached"] is True, f"{name}: the second answer did not come from the store")
    expect(again["job"]["trials_run"] == 0, f"{name}: the second answer ran {again['job']['trials_run']} candidates")
    expect(all(group["source"] == "cached" for group in again["groups"]), f"{name}: a group was not cached")
    one, two = digest_of(first), digest_of(second)
    expect(one == two, f"{name}: the bundles differ in {[k for k in one | two if one.get(k) != two.get(k)]}")

    checked = scratch.run("warploom", "run", first, "--check", "--json", "-").json()
    expect(checked["correct"] and checked["check"], f"{name}: wrong outputs: {checked}")
    for output in checked["check"]:
        expect(output["samples"] > 0 and output["max_error"] <= output["bound"], f"{name}: {output}")
    compare(scratch, model, first)
    totals = report["totals"]
    print(
        f"{name}: {len(report['groups'])} groups, {totals['trials']} trials in {took:.1f} s, kernels "
        f"{totals['kernels_default']} -> {totals['kernels']}, speed-up {totals['default_ns'] / totals['best_ns']:.2f}; "
        f"again in {min(times) * 1000:.0f} ms",
        flush=True,
    )


def compare(scratch, model, bundle):
    if not reference.available():
        print("onnxruntime is not in this environment: not compared with it")
        return
    folder = scratch.path("values")
    scratch.run("warploom", "run", bundle, "--output-dir", folder, "--save-inputs", "--seed", 3)
    difference = reference.largest_difference(model, folder)
    shutil.rmtree(folder)
    print(f"{model.stem}: differs from onnxruntime by at most {difference:.2g} of the largest value")
    expect(difference <= reference.BOUND, f"{model.stem}: more than {reference.BOUND}")


def many_inputs(scratch):
    """A graph whose kernels have more arguments than those of any layer can be tuned and run."""
    scratch.root.joinpath("many.graph").write_text(graphs.MANY_INPUTS)
    scratch.run("warploom", "tune", "many.graph", "--trials", 1, "--out", "many")
    scratch.run("warploom", "run", "many", "--check")


def cached_only(scratch, model):
    """Commands that need a record have the exit code 3 if the store lacks the record. `run FILE` uses the records of the store."""
    scratch.run("warploom", "get", model, "--store", scratch.path("empty.db"), expect=3)
    scratch.run("warploom", "tune", model, "--require-cached", "--store", scratch.path("empty.db"), expect=3)
    scratch.run("warploom", "run", model, "--store", scratch.path("empty.db"), expect=3)
    scratch.run("warploom", "run", model, "--check")
    records = scratch.run("warploom", "records", "--json", "-").json()["records"]
    expect(records, "no records are listed")
    one = scratch.run("warploom", "get", records[0]["key"], "--json", "-").json()
    expect(one["key"] == records[0]["key"] and one["source"]["text"], "a record has no source")
    expect(one["key"].startswith(scratch.run("warploom", "records").out.split("\n")[1].split()[0]), "the newest record's first digits")
    expect(scratch.run("warploom", "get", one["key"][:12], "--json", "-").json() == one, "by its first digits")
    scratch.run("warploom", "get", "0123456789ab", expect=3)
    jobs = scratch.run("warploom", "jobs", "--json", "-").json()["jobs"]
    expect(any(job["state"] == "succeeded" for job in jobs), "no finished job is listed")


def main():
    with Scratch() as scratch:
        every = sorted(path for path in MODELS.glob("*.onnx") if WHOLE or not path.stem.startswith("bert"))
        models = [pathlib.Path(a) for a in sys.argv[1:]] or every
        for model in models:
            tune_twice(scratch, model)
        cached_only(scratch, models[0])
        many_inputs(scratch)


if __name__ == "__main__":
    main()
