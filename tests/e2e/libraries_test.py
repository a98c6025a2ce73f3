#!/usr/bin/env python3
"""Matrix products by a vendor's library: its kernels are candidates of jobs that allow the library and of no others, and pass the same
checks as generated kernels. Report and bundle say which kernels need the library. Without it, or with another version of it, an error says
what to install. Kernels of a library that computes wrong results are never chosen."""

import ctypes
import json
import pathlib
import shutil
import subprocess
import sys

from graphs import graph, several_products
from harness import MODELS, WHOLE, Scratch, expect, library_trials, skip

LIBRARY, PACKAGE = "libdnnl.so.2", "libdnnl2"
ALLOWED = ("--libraries", "onednn")


GELU = graph(
    '%0 = input "a" : f32[64,48] normal(0,1)',
    '%1 = input "b" : f32[48,80] normal(0,1)',
    '%2 = input "bias" : f32[80] normal(0,1)',
    '%3 = input "r" : f32[64,80] normal(0,1)',
    '%4 = contract %0 %1 "mk,kn->mn" : f32[64,80]',
    "%5 = broadcast %2 dims=[1] : f32[64,80]",
    "%6 = add %4 %5 : f32[64,80]",
    "%7 = constant 0.70710677 : f32[64,80]",
    "%8 = mul %6 %7 : f32[64,80]",
    "%9 = erf %8 : f32[64,80]",
    "%10 = constant 1 : f32[64,80]",
    "%11 = add %9 %10 : f32[64,80]",
    "%12 = mul %6 %11 : f32[64,80]",
    "%13 = constant 0.5 : f32[64,80]",
    "%14 = mul %12 %13 : f32[64,80]",
    "%15 = add %14 %3 : f32[64,80]",
    'output "y" %15',
)
BATCHED = graph(
    '%0 = input "a" : f32[6,20,32] normal(0,1)',
    '%1 = input "b" : f32[6,24,32] normal(0,1)',
    '%2 = contract %0 %1 "bmk,bnk->bmn" : f32[6,20,24]',
    "%3 = tanh %2 : f32[6,20,24]",
    'output "y" %3',
)
PANELS = graph(
    '%0 = input "a" : f32[40,64] normal(0,1)',
    '%1 = input "b" : f32[3,64,64] normal(0,1)',
    '%2 = contract %0 %1 "mk,pkq->mpq" : f32[40,3,64]',
    "%3 = constant 0 : f32[40,3,64]",
    "%4 = max %2 %3 : f32[40,3,64]",
    'output "y" %4',
)


def convolution(stride, dilation, pad):
    out = (17 + 2 * pad - 2 * dilation - 1) // stride + 1
    padded = 17 + 2 * pad
    window = f"3,{stride},{dilation}"
    return graph(
        '%0 = input "x" : f32[2,6,17,17] normal(0,1)',
        '%1 = input "w" : f32[10,6,3,3] normal(0,1)',
        '%2 = input "bias" : f32[10] normal(0,1)',
        f"%3 = pad %0 low=[0,0,{pad},{pad}] high=[0,0,{pad},{pad}] value=0 : f32[2,6,{padded},{padded}]",
        f"%4 = window %3 axes=[2,3] params=[{window},{window}] : f32[2,6,{out},{out},3,3]",
        f'%5 = contract %4 %1 "bkmoli,nkli->bnmo" : f32[2,10,{out},{out}]',
        f"%6 = broadcast %2 dims=[1] : f32[2,10,{out},{out}]",
        f"%7 = add %5 %6 : f32[2,10,{out},{out}]",
        f"%8 = constant 0 : f32[2,10,{out},{out}]",
        f"%9 = max %7 %8 : f32[2,10,{out},{out}]",
        'output "y" %9',
    )


GROUPS = {
    "gelu": GELU,
    "batched": BATCHED,
    "panels": PANELS,
    "convolution": convolution(1, 1, 1),
    "strided": convolution(2, 1, 1),
    "dilated": convolution(1, 2, 2),
    "unpadded": convolution(1, 1, 0),
}


def tune(scratch, name, text, *more, **options):
    file = scratch.root / f"{name}.graph"
    file.write_text(text)
    store = scratch.path(f"{name}.db")
    done = scratch.run("warploom", "tune", file, "--store", store, "--trials", 24, "--json", "-", "--cover", "greedy", *more, **options)
    return done, store


def test_every_group(scratch):
    """Each kernel of the library agrees with the oracle, in the workers' sandbox."""
    for name, text in GROUPS.items():
        if not WHOLE and name not in ("gelu", "strided"):
            continue
        done, store = tune(scratch, name, text, *ALLOWED)
        trials = library_trials(store, "onednn")
        correct = [plan for plan, outcome, _ in trials if outcome == 0]
        expect(correct, f"{name}: no kernel of the library was right: {trials}")
        expect(all(outcome == 0 for _, outcome, _ in trials), f"{name}: {trials}")
        expect(any("own_format=1" in plan for plan in correct), f"{name}: {correct}")
        groups = done.json()["groups"]
        expect(all(row["library"] == ("onednn" if " class=onednn " in row["plan"] else "") for row in groups), f"{groups}")
        print(name, len(trials), "kernels of the library", flush=True)


def test_off_unless_allowed(scratch):
    """Jobs with and without libraries share a store. Neither kind is answered with records of the other."""
    done, store = tune(scratch, "gelu", GELU)
    expect(done.json()["job"]["cached"] or done.json()["job"]["trials_run"] > 0, done.out)
    scratch.run("warploom", "tune", scratch.path("gelu.graph"), "--store", store, "--cover", "greedy", "--libraries", "none", "--require-cached", expect=None)
    fresh, store = tune(scratch, "off", BATCHED)
    expect(not library_trials(store, "onednn"), "a job that allows no library had kernels of one")
    keys = {row["key"] for row in fresh.json()["groups"]}
    allowed, store = tune(scratch, "off", BATCHED, *ALLOWED)
    expect(not keys & {row["key"] for row in allowed.json()["groups"]}, "one key for both kinds of jobs")
    expect(library_trials(store, "onednn"), "no kernel of the library was tried")


def without_library(scratch):
    """Makes a folder for LD_LIBRARY_PATH in which the file of the library's name is a text file, and returns the folder."""
    folder = scratch.root / "nothing"
    folder.mkdir(exist_ok=True)
    (folder / LIBRARY).write_text("no library")
    return str(folder)


def fake_library(scratch, version):
    folder = scratch.root / f"fake{version}"
    folder.mkdir()
    command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", f"-DVERSION={version}", MODELS / "wrong_dnnl.cpp", "-o", folder / LIBRARY]
    subprocess.run(command, check=True)
    return str(folder)


def in_folder(scratch, folder, test):
    before = dict(scratch.environment)
    scratch.environment["LD_LIBRARY_PATH"] = folder
    try:
        test()
    finally:
        scratch.environment = before


def test_missing(scratch):
    def refused():
        done, _ = tune(scratch, "missing", GELU, *ALLOWED, expect=None)
        expect(done.code != 0 and PACKAGE in done.err, f"{done.code}: {done.err}")
        targets = scratch.run("warploom", "targets")
        expect("libraries for --libraries: none found" in targets.out, targets.out)
        check = scratch.run("warploom-worker", "--check", "--devices", "cpu", expect=None)
        expect(PACKAGE in check.out or "cannot be used" in check.out, check.out)

    in_folder(scratch, without_library(scratch), refused)
    in_folder(scratch, fake_library(scratch, 3), lambda: expect(tune(scratch, "version", GELU, *ALLOWED, expect=None)[0].code != 0, "version 3 was used"))


def test_wrong_library(scratch):
    def judged():
        done, store = tune(scratch, "wrong", GELU, *ALLOWED)
        trials = library_trials(store, "onednn")
        expect(trials and all(outcome == 2 for _, outcome, _ in trials), f"wrong results were not found: {trials}")
        expect(all(row["library"] == "" for row in done.json()["groups"]), done.out)

    in_folder(scratch, fake_library(scratch, 2), judged)


def test_bundle(scratch):
    """A bundle needs the library. With --devices fake, times are hashes of sources, so that the library's kernels win on every machine."""
    socket = scratch.path("s")
    scratch.serve(socket, store=scratch.path("fleet.db"))
    scratch.start("warploom-worker", "--server", f"unix:{socket}", "--devices", "fake")
    file, bundle = scratch.root / "several.graph", scratch.path("several.bundle")
    file.write_text(several_products(8, 16, 48))
    asked = ("--server", f"unix:{socket}", "--trials", 8, *ALLOWED)
    report = scratch.run("warploom", "tune", file, *asked, "--json", "-", "--out", bundle).json()
    manifest = json.loads(pathlib.Path(bundle, "manifest.json").read_text())
    needing = [kernel for kernel in manifest["kernels"] if kernel["library"] == "onednn"]
    expect(needing and len(needing) < len(manifest["kernels"]), f"{len(needing)} of {len(manifest['kernels'])}")
    expect(len(needing) == sum(row["library"] == "onednn" for row in report["groups"]), report["groups"])
    table = scratch.run("warploom", "tune", file, *asked).out
    expect(f"needs the Debian package {PACKAGE}" in table, table)
    result = scratch.run("warploom", "run", bundle, "--check", "--threads", 1, "--json", "-").json()
    expect(result["correct"], result)
    expect(scratch.run("warploom", "run", bundle, "--check", "--json", "-").json()["correct"], "wrong on all threads")

    def refused():
        done = scratch.run("warploom", "run", bundle, expect=None)
        expect(done.code != 0 and PACKAGE in done.err and "needs the library onednn" in done.err, f"{done.code}: {done.err}")

    in_folder(scratch, without_library(scratch), refused)


def main():
    if shutil.which("g++") is None:
        skip("no g++")
    with Scratch() as scratch:
        test_missing(scratch)
        test_wrong_library(scratch)
    try:
        ctypes.CDLL(LIBRARY)
    except OSError as error:
        skip(f"oneDNN itself: {error}")
    for test in (test_every_group, test_off_unless_allowed, test_bundle):
        with Scratch() as scratch:
            test(scratch)
        print(test.__name__, "ok", flush=True)


if __name__ == "__main__":
    sys.exit(main())
