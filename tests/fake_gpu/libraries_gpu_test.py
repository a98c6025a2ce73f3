#!/usr/bin/env python3
"""Matrix products by the vendors' libraries for GPUs, on fake drivers and fake libraries (tests/fake_gpu/blas.cpp). The libraries' kernels
are candidates of jobs that allow them, pass the same checks as generated kernels, and run from bundles and in streams. Algorithms that a
library does not propose are rejected. Errors and outcomes report a missing library, and one that computes wrong results."""

import json
import pathlib
import re

from fakes import FAKE, without_clang
from graphs import graph, several_products
from harness import Scratch, expect, library_trials

ROWS = (("cuda:sm_90a", "cublaslt", "cublaslt=13.99.0", "libcublasLt.so.13"), ("hip:gfx90a", "hipblaslt", "hipblaslt=0.99.0", "libhipblaslt.so.1"))
CORRECT, WRONG_RESULT, REJECTED = 0, 2, 5


def factors(dtype, a, b):
    return f'%0 = input "a" : {dtype}{a} normal(0,1)', f'%1 = input "b" : {dtype}{b} normal(0,1)'


# A graph of 0.125 a b + r + bias in a narrow type, followed by GELU by tanh in f32, whose result is rounded to the narrow type.
def everything(dtype, m, n):
    full, wide = f"{dtype}[{m},{n}]", f"f32[{m},{n}]"
    constants = (0.044715, 0.7978845608, 1, 0.5)
    return graph(
        *factors(dtype, f"[{m},40]", f"[40,{n}]"),
        f'%2 = input "r" : {full} normal(0,1)',
        f'%3 = input "bias" : {dtype}[{n}] normal(0,1)',
        f'%4 = contract %0 %1 "mk,kn->mn" : {full}',
        f"%5 = constant 0.125 : {full}",
        *(f"%{6 + i} = constant {value} : {wide}" for i, value in enumerate(constants)),
        f"%10 = mul %4 %5 : {full}",
        f"%11 = broadcast %3 dims=[1] : {full}",
        f"%12 = add %10 %2 : {full}",
        f"%13 = add %12 %11 : {full}",
        f"%14 = cast %13 : {wide}",
        f"%15 = mul %14 %14 : {wide}",
        f"%16 = mul %15 %14 : {wide}",
        f"%17 = mul %16 %6 : {wide}",
        f"%18 = add %14 %17 : {wide}",
        f"%19 = mul %18 %7 : {wide}",
        f"%20 = tanh %19 : {wide}",
        f"%21 = add %20 %8 : {wide}",
        f"%22 = mul %14 %21 : {wide}",
        f"%23 = mul %22 %9 : {wide}",
        f"%24 = cast %23 : {full}",
        'output "y" %24',
    )


GROUPS = {
    "plain": graph(*factors("bf16", "[24,40]", "[40,16]"), '%2 = contract %0 %1 "mk,kn->mn" : bf16[24,16]', 'output "y" %2'),
    "transposed": graph(*factors("f16", "[40,24]", "[16,40]"), '%2 = contract %0 %1 "km,nk->mn" : f16[24,16]', 'output "y" %2'),
    "batched": graph(*factors("f32", "[3,24,40]", "[3,16,40]"), '%2 = contract %0 %1 "bmk,bnk->bmn" : f32[3,24,16]', 'output "y" %2'),
    "shared": graph(*factors("f32", "[24,40]", "[3,40,16]"), '%2 = contract %0 %1 "mk,bkn->bmn" : f32[3,24,16]', 'output "y" %2'),
    "bias": graph(
        *factors("f32", "[24,40]", "[40,16]"),
        '%2 = input "bias" : f32[16] normal(0,1)',
        '%3 = contract %0 %1 "mk,kn->mn" : f32[24,16]',
        "%4 = broadcast %2 dims=[1] : f32[24,16]",
        "%5 = add %3 %4 : f32[24,16]",
        "%6 = constant 0 : f32[24,16]",
        "%7 = max %5 %6 : f32[24,16]",
        'output "y" %7',
    ),
    "everything": everything("bf16", 24, 16),
    "everything in f32": everything("f32", 20, 28),
}


def tune(scratch, name, text, target, *more, trials=2, **options):
    file, store = scratch.root / f"{name}.graph", scratch.path(f"{name} {target.replace(':', ' ')}.db")
    file.write_text(text)
    options.setdefault("expect", 0)
    done = scratch.run("warploom", "tune", file, "--store", store, "--target", target, "--trials", trials, "--json", "-", *more, **options)
    return done, store


def every_group(scratch, target, library, version, _):
    device = next(gpu for gpu in scratch.run("warploom", "targets", "--json", "-").json()["gpus"] if gpu["target"] == target)
    expect(device["libraries"] == version, device)
    # HipBLASLt differs from cuBLASLt only in attribute numbers, so fewer groups are tested with it.
    names = GROUPS if library == "cublaslt" else ("transposed", "batched", "bias")
    for name in names:
        text = GROUPS[name]
        done, store = tune(scratch, name, text, target, "--libraries", library, trials=6 if name == "transposed" else 2)
        by_number = {int(re.search(r"algorithm=(\d+)", plan)[1]): (outcome, says) for plan, outcome, says in library_trials(store, library)}
        expect(len(by_number) >= (3 if name == "transposed" else 1), f"{name}: {by_number}")
        for number, (outcome, says) in by_number.items():
            expect(outcome == (CORRECT if number < 2 else REJECTED), f"{name}, algorithm {number}: {outcome} {says}")
            expect(number < 2 or f"proposes no algorithm of number {number}" in says, says)
        groups = done.json()["groups"]
        expect(all(row["library"] == (library if f" class={library} " in row["plan"] else "") for row in groups), groups)
    _, store = tune(scratch, "not allowed", GROUPS["plain"], target)
    expect(not library_trials(store, library), "a job that allows no library had kernels of one")


def bundle_of(scratch, target, library):
    """Generated kernels of the first two products spill and are rejected, so that the library's kernels win there whatever times are
    measured."""
    file, bundle = scratch.root / "several.graph", scratch.path(f"{library}.bundle")
    file.write_text(several_products(6, 8, 16))
    # A generated kernel spills if its text contains this string, that is, if its first operand has 200 to 299 elements. The first operands of
    # the first two products have 256 and 288 elements.
    scratch.environment["WARPLOOM_FAKE_SPILL"] = "WL_IN(f32, p0, 2"
    scratch.run("warploom", "tune", file, "--target", target, "--trials", 8, "--libraries", library, "--cover", "greedy", "--out", bundle)
    del scratch.environment["WARPLOOM_FAKE_SPILL"]
    manifest = json.loads(pathlib.Path(bundle, "manifest.json").read_text())
    return bundle, [kernel["library"] for kernel in manifest["kernels"]]


def bundle(scratch, target, library, _, file):
    made, libraries = bundle_of(scratch, target, library)
    expect(libraries.count(library) >= 2, f"no kernel of {library} won: {libraries}")
    for by in "whole", "steps":
        report = scratch.run("warploom", "run", made, "--check", "--check-by", by, "--repeat", 4, "--json", "-").json()
        expect(report["correct"], report)
    scratch.run("launch_in_stream", made, target.split(":")[0], "lazy")
    refused = scratch.run("warploom", "export", made, "--out", scratch.path("source"), expect=None)
    expect(refused.code != 0 and "tune with --libraries none" in refused.err, refused.err)
    nothing = scratch.root / "nothing"
    nothing.mkdir(exist_ok=True)
    (nothing / file).write_text("no library")
    scratch.environment["LD_LIBRARY_PATH"] = f"{nothing}:{FAKE}"
    done = scratch.run("warploom", "run", made, expect=None)
    scratch.environment["LD_LIBRARY_PATH"] = str(FAKE)
    if file in done.err:  # false on a machine that has a real library, which is then loaded
        expect(done.code != 0 and f"needs the library {library}" in done.err and "--libraries none" in done.err, done.err)


def misused(scratch, target, library, *_):
    scratch.environment["WARPLOOM_FAKE_BLAS"] = "wrong"
    _, store = tune(scratch, "wrong", GROUPS["plain"], target, "--libraries", library)
    outcomes = {outcome for _, outcome, _ in library_trials(store, library)}
    expect(outcomes <= {WRONG_RESULT, REJECTED} and WRONG_RESULT in outcomes, f"wrong results were not found: {outcomes}")
    scratch.environment["WARPLOOM_FAKE_BLAS"] = "silent"
    done, _ = tune(scratch, "silent", GROUPS["plain"], target, "--libraries", library, expect=None)
    expect(done.code == 2 and f"libraries {library}: the given device has it not; install" in done.err, f"{done.code}: {done.err}")
    del scratch.environment["WARPLOOM_FAKE_BLAS"]
    done, _ = tune(scratch, "of a CPU", GROUPS["plain"], target, "--libraries", "onednn", expect=None)
    expect(done.code == 2 and f"libraries onednn: it is for targets of cpu, and the target is {target}; for that there is {library}" in done.err, f"{done.code}: {done.err}")


def main():
    with Scratch() as scratch:
        scratch.environment.update(LD_LIBRARY_PATH=str(FAKE))
        without_clang(scratch)
        for row in ROWS:
            every_group(scratch, *row)
            misused(scratch, *row)
            bundle(scratch, *row)
        print("ok")


if __name__ == "__main__":
    main()
