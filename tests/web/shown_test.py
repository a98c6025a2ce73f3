#!/usr/bin/env python3
"""The HTML page, `--why`, `--svg` and `inspect` show the kernels that a result launches, for a search, its bundle and the store, even if a
new plan of the graph would have other kernels. A bundle that is damaged or inconsistent is refused with the reason."""

import hashlib
import json
import pathlib
import re
import shutil

import graphs
from harness import Scratch, expect

STAGES = ("graph", "space", "plan", "kernel", "source", "asm")


def kernels_in(picture):
    """Returns the numbers of the kernels to which the operations of a drawn graph belong."""
    boxes = re.findall(r">(g\d+(?: g\d+)*) [a-z]+\d*\[", picture)
    return {int(number) for box in boxes for number in re.findall(r"\d+", box)}


def kernels_said(why):
    return int(re.search(r"^# (1(?= kernel )|(?!1 )\d+(?= kernels )) kernels? instead of", why, re.M)[1])


def is_of(report, picture, why, what):
    launches = sum(group["count"] for group in report["groups"])
    expect(kernels_said(why) == launches, f"{what}: {launches} kernels are launched:\n{why}")
    expect(kernels_in(picture) == set(range(launches)), f"{what}: {launches} kernels are launched, {kernels_in(picture)} are drawn")
    expect("as they were chosen by a search" in why, f"{what}: {why}")


def page_is_of(report, page, what):
    text = pathlib.Path(page).read_text()
    why = re.search(r"<pre>(.*?)</pre>", text, re.S)[1]
    is_of(report, text[text.index("The graph; operations of one colour") :], why, what)


def inspected(scratch, *asked):
    """Inspects every stage of the compiler; returns the keys of the kernels."""
    for stage in STAGES:
        text = scratch.run("warploom", "inspect", *asked, "--stage", stage).out
        keys = re.findall(r"^# g\d+: .* key ([0-9a-f]+)$", text, re.M)
        expect(keys, f"stage {stage}: {text[:500]}")
    return keys


# On this target, the covers that the tests compare have different numbers of kernels; on cpu:amx the numbers are equal.
ON = ("--target", "cpu:generic")


def one_result(scratch, cover):
    """Tunes with a cover; page, picture and stages show its kernels, from the search, the bundle and the store.

    Returns the bundle, how many kernels it launches, and how many a plan has before any kernel is timed. A search may launch more: it
    cuts a group where the parts are faster."""
    bundle, store = scratch.path(cover), ("--store", scratch.path(f"{cover}.db"))
    tune = ("tune", "g.graph", *ON, "--cover", cover, "--trials", 2, "--out", bundle, "--html", "search.html", "--json", "-", *store)
    report = scratch.run("warploom", *tune).json()
    keys = [group["key"] for group in report["groups"]]
    page_is_of(report, scratch.path("search.html"), f"{cover}: the page of the search")
    scratch.run("warploom", "report", bundle, "--html", "bundle.html", *store)
    page_is_of(report, scratch.path("bundle.html"), f"{cover}: the page of the bundle")
    for what, asked in (("the bundle", (bundle,)), ("the graph, whose result is stored", ("g.graph", *ON, "--cover", cover))):
        why = scratch.run("warploom", "inspect", *asked, *store, "--stage", "plan", "--why", "--svg", "p.svg").out
        is_of(report, (scratch.root / "p.svg").read_text(), why, f"{cover}: inspect of {what}")
        expect(inspected(scratch, *asked, *store) == keys, f"{cover}: {what} has other kernels than the report")
        plans = scratch.run("warploom", "inspect", *asked, *store, "--stage", "plan").out
        expect(all(group["plan"] in plans for group in report["groups"]), f"{cover}: inspect of {what} shows other plans:\n{plans}")
    simple = scratch.run("warploom", "inspect", bundle, *store, "--stage", "graph", "--simplify-only").out
    expect(simple.startswith("graph {") and '"sums"' in simple, simple)
    unasked = ("inspect", "g.graph", *ON, "--cover", cover, "--store", scratch.path("new.db"), "--stage", "plan", "--why")
    plan = scratch.run("warploom", *unasked).out
    expect("as planned before any kernel is timed" in plan, "a plan is said to be a result")
    return bundle, sum(group["count"] for group in report["groups"]), kernels_said(plan)


def text_of(manifest):
    """Returns the JSON of a manifest in the form in which the program writes it (client/program/json.h)."""
    return json.dumps(manifest, indent=1, ensure_ascii=False, separators=(",", ": ")) + "\n"


def forged(bundle, to, change, report=None):
    """Copies a bundle, with a changed manifest and, if given, a changed report. The copy's digests are correct."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(bundle, to)
    manifest = json.loads((to / "manifest.json").read_text())
    if report is not None:
        (to / "report.json").write_text(report)
        for file in manifest["files"]:
            if file["path"] == "report.json":
                file.update(bytes=len(report), sha256=hashlib.sha256(report.encode()).hexdigest())
    change(manifest)
    del manifest["sha256"]
    manifest["sha256"] = hashlib.sha256(text_of(manifest).encode()).hexdigest()
    (to / "manifest.json").write_text(text_of(manifest))


def refused(scratch, folder, *words, code=2):
    for command in (("inspect", folder, "--stage", "plan", "--why"), ("inspect", folder, "--stage", "source")):
        done = scratch.run("warploom", *command, "--store", scratch.path("s.db"), expect=code)
        expect(not done.out and all(word in done.err for word in words), f"{command}: {done.out[:300]} {done.err}")


def broken(scratch, bundle):
    copy = scratch.root / "copy"
    for name in ("graph.txt", "report.json"):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(bundle, copy)
        path = copy / name
        path.write_bytes(path.read_bytes()[:-2] + b"x\n")
        refused(scratch, copy, name)
        path.unlink()
        refused(scratch, copy, name)
    refused(scratch, scratch.root / "nothing", "nothing")
    (scratch.root / "empty").mkdir()
    refused(scratch, scratch.root / "empty", "manifest.json")

    def call_reads_what_is_not_there(manifest):
        manifest["calls"][0], manifest["calls"][-1] = manifest["calls"][-1], manifest["calls"][0]

    def call_of_no_kernel(manifest):
        manifest["calls"][0]["kernel"] = 99

    def argument_of_no_buffer(manifest):
        manifest["calls"][0]["args"][0] = 1 << 30

    def plan_of_nothing(manifest):
        manifest["kernels"][0]["plan"] = "tile=12 of=nothing"

    for change in (call_reads_what_is_not_there, call_of_no_kernel, argument_of_no_buffer):
        forged(bundle, copy, change)
        refused(scratch, copy, "manifest.json")
    forged(bundle, copy, plan_of_nothing)
    said = scratch.run("warploom", "inspect", copy, "--stage", "kernel", "--store", scratch.path("s.db"), expect=2).err
    expect("tile" in said, said)
    for report in ("[1]", "{}", '{"target": [], "environment": 5}', '{"environment": {"host": [1]}}',
                   '{"environment": {"host": {"threads": 1e300, "l2_bytes": -5, "l1_bytes": 9223372036854775807, "l3_bytes": "x"}}}'):
        forged(bundle, copy, lambda manifest: None, report)
        why = scratch.run("warploom", "inspect", copy, "--stage", "plan", "--why", "--store", scratch.path("s.db")).out
        expect(kernels_said(why) > 0, f"{report}: {why}")


def main():
    with Scratch() as scratch:
        (scratch.root / "g.graph").write_text(graphs.CONVOLUTIONS)
        counts = {cover: one_result(scratch, cover) for cover in ("channels-last", "one-per-op", "planned")}
        expect(counts["channels-last"][2] != counts["one-per-op"][2], f"the covers are planned with as many kernels: {counts}")
        print({cover: f"{launched} launched, {planned} planned" for cover, (_, launched, planned) in counts.items()})
        broken(scratch, counts["channels-last"][0])


if __name__ == "__main__":
    main()
