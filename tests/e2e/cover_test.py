#!/usr/bin/env python3
"""Every kind of cover gives a bundle with correct results, and `inspect --why` describes and draws the cover's decisions. A planned cover
is chosen again with measured times, and with thorough effort until no candidate can be better. Short runs tune with two of the covers."""

import re

import graphs
from harness import WHOLE, Scratch, expect

COVERS = ("stitched", "greedy", "planned", "channels-last", "contractions-alone", "one-per-op")
TUNED = COVERS if WHOLE else ("stitched", "planned")


def main():
    with Scratch() as scratch:
        file = scratch.root / "g.graph"
        file.write_text(graphs.SOFTMAX_MATMUL)
        kernels = {}
        for cover in COVERS:
            picture = scratch.root / f"{cover}.svg"
            why = scratch.run("warploom", "inspect", file, "--stage", "plan", "--cover", cover, "--why", "--svg", picture).out
            expect("us" in why and "KB" in why or "MB" in why, f"{cover}: {why}")
            # The number of kernels is taken from the first line of the plan, which gives it before tuning, and not from a bundle, since the
            # kernels of a bundle depend on measured times.
            kernels[cover] = int(re.match(r"# (1(?= kernel )|(?!1 )\d+(?= kernels )) kernels? instead of 8", why)[1])
            expect(picture.read_text().startswith("<svg"), f"{cover}: {picture.read_text()[:200]}")
        # The sources of all kernels, with their preludes, are together larger than a gRPC message may be. `inspect` must show them nevertheless.
        file.write_text(graphs.distinct_ops(2000))
        shown = scratch.run("warploom", "inspect", file, "--stage", "source").out
        expect(len(re.findall("^# g[0-9]+: ", shown, re.M)) == 2000, f"sources: {shown[:500]}")
        file.write_text(graphs.SOFTMAX_MATMUL)
        for cover in TUNED:
            bundle = scratch.path(cover)
            made = scratch.run("warploom", "tune", file, "--cover", cover, "--trials", 2, "--out", bundle, "--json", "-").json()
            launched = sum(group["count"] for group in made["groups"])
            result = scratch.run("warploom", "run", bundle, "--check", "--json", "-").json()
            expect(result["correct"], f"{cover}: {result}")
            expect(kernels[cover] <= launched <= 8, f"{cover}: {launched} kernels in place of {kernels[cover]}")
            rounds = made["totals"]["cover_rounds"]
            expect(rounds == 0 or cover == "planned", f"{cover}: chosen again {rounds} times")
            timed = made["covers"]
            expect((cover in ("stitched", "planned")) == (len(timed) > 1), f"{cover}: timed whole: {timed}")
            expect(not timed or sum(one["chosen"] for one in timed) == 1, f"{cover}: {timed}")
            # A cover whose default schedules are slow is not searched, and so has no time.
            untimed = [one for one in timed if not one["samples_ns"]]
            expect(all(one["why"].startswith("not searched: ") and not one["chosen"] for one in untimed), f"{cover}: a cover has no time: {timed}")
            expect(any(one["samples_ns"] for one in timed) == bool(timed), f"{cover}: no cover has a time: {timed}")
            expect(all(one["kernels"] == launched for one in timed if one["chosen"]), f"{cover}: {launched}, {timed}")
            expect(not made["totals"]["cover_certified"], f"{cover}: certified without having been asked to")
            print(cover, kernels[cover], launched, flush=True)
        file.with_name("products.graph").write_text(graphs.PRODUCTS)
        products = file.with_name("products.graph")
        for target in ("cpu", "sim:cuda"):
            why = ("inspect", products, "--stage", "plan", "--cover", "planned", "--why", "--target", target)
            said = scratch.run("warploom", *why).out
            expect("3 kernels side by side" in said, f"{target}: {said}")
        bundle = scratch.path("products")
        command = ("tune", products, "--cover", "planned", "--trials", 2, "--out", bundle, "--json", "-")
        packed = scratch.run("warploom", *command).json()
        expect(packed["totals"]["cover_rounds"] > 0, f"products: nothing was chosen by measured times: {packed}")
        result = scratch.run("warploom", "run", bundle, "--check", "--json", "-").json()
        expect(result["correct"], f"products: {result}")
        timed_as_it_runs(scratch)
        channels_last(scratch, file.with_name("convolutions.graph"))
        if WHOLE:
            thorough(scratch, file)
        expect(kernels["one-per-op"] >= kernels["contractions-alone"] > kernels["stitched"], str(kernels))


# A graph that has two kernels in every cover: neither op reads the other's result, and they reduce different axes.
TWO_KERNELS = """graph {
  %0 = input "x" : f32[64,96] normal(0,1)
  %1 = reduce_max %0 axes=[1] : f32[64]
  %2 = reduce_sum %0 axes=[0] : f32[96]
  output "y" %1
  output "z" %2
}
"""


def timed_as_it_runs(scratch):
    """The report has the time of the whole program if it was measured. For a program of one kernel, this is the kernel's time."""
    (scratch.root / "two.graph").write_text(TWO_KERNELS)
    report = scratch.run("warploom", "tune", "two.graph", "--trials", 2, "--json", "-").json()
    expect([cover["kernels"] for cover in report["covers"]] == [2], report["covers"])
    expect(report["totals"]["whole_ns"] == report["covers"][0]["least_ns"] > 0, report["totals"])
    (scratch.root / "one.graph").write_text(graphs.EXP)
    report = scratch.run("warploom", "tune", "one.graph", "--trials", 2, "--kernels-alone", "--json", "-").json()
    expect(report["totals"]["kernels"] == 1, report["totals"])
    expect(report["totals"]["whole_ns"] == sorted(report["groups"][0]["samples_ns"])[1], report["totals"])
    report = scratch.run("warploom", "tune", "two.graph", "--cover", "greedy", "--trials", 2, "--json", "-").json()
    expect(report["totals"]["whole_ns"] == 0 and not report["covers"], report["totals"])


def channels_last(scratch, file):
    """A planned cover is timed as a whole against the cover channels-last, whose steps compute the graph as well."""
    file.write_text(graphs.CONVOLUTIONS)
    timed = scratch.run("warploom", "tune", file, "--cover", "planned", "--trials", 2, "--json", "-").json()["covers"]
    expect("channels-last" in [one["name"] for one in timed], f"timed whole: {timed}")
    bundle = scratch.path("convolutions")
    scratch.run("warploom", "tune", file, "--cover", "channels-last", "--trials", 2, "--out", bundle)
    for how in ("whole", "steps"):
        result = scratch.run("warploom", "run", bundle, "--check", "--check-by", how, "--json", "-").json()
        expect(result["correct"], f"channels last, checked by {how}: {result}")
    expect(result["steps_make_graph"], f"channels last: {result}")


def thorough(scratch, file):
    certified = ("tune", file, "--cover", "planned", "--effort", "thorough", "--trials", 2, "--retune", "--json", "-")
    expect(scratch.run("warploom", *certified).json()["totals"]["cover_certified"], "thorough ended without a certificate")


if __name__ == "__main__":
    main()
