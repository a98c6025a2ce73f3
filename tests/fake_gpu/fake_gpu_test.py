#!/usr/bin/env python3
"""GPU support of the real programs, on fake drivers (tests/fake_gpu): a GPU is found and kernels are tuned for it, in embedded mode and by
a fleet. The generated text of the kernels runs on a simulated GPU. The test also reads the messages on a machine without a GPU."""

import os
import pathlib
import sqlite3

import graphs
from fakes import FAKE, without_clang
from harness import Scratch, expect, rows_in


def with_fake(scratch, **more):
    scratch.environment.update(LD_LIBRARY_PATH=str(FAKE), **more)


def without_gpu(scratch, file):
    """Without a GPU, the message names the target, the missing driver and alternatives."""
    scratch.environment["WARPLOOM_FAKE_ABSENT"] = "1"
    done = scratch.run("warploom", "tune", file, "--target", "cuda:sm_90a", expect=4)
    for part in ("cuda:sm_90a", "no such device", "libcuda.so.1", "--server", "--target sim:cuda", "inspect --stage asm"):
        expect(part in done.err, f"no {part!r} in {done.err}")
    worker = scratch.run("warploom-worker", "--server", "unix:nobody", "--devices", "cuda:0", expect=1)
    expect("this machine has no device cuda:0; it has cpu" in worker.err, worker.err)
    del scratch.environment["WARPLOOM_FAKE_ABSENT"]


def found(scratch):
    listing = scratch.run("warploom", "targets", "--json", "-").json()
    names = {gpu["name"]: gpu for gpu in listing["gpus"]}
    expect(set(names) == {"cuda:0", "hip:0"}, listing["gpus"])
    expect(names["cuda:0"]["target"] == "cuda:sm_90a" and "memory_mib=2048" in names["cuda:0"]["details"], names)
    row = next(row for row in listing["targets"] if row["name"] == "cuda:sm_90a")
    expect(row["run"] and row["compile"], row)


def tuned(report, target="cuda:sm_90a"):
    expect(report["target"]["name"] == target and report["target"]["device"] == "Fake GPU", report["target"])
    for group in report["groups"]:
        expect(f"target={target} " in group["plan"], group["plan"])
        expect(group["trials"]["correct"] > 0 and group["best_ns"] > 0, group)
        expect(group["max_error"] <= group["bound"], group)


# A graph that the greedy cover divides into two kernels, with an intermediate value between them.
TWO_KERNELS = """graph {
  %0 = input "x" : f32[32,200] normal(0,1)
  %1 = reduce_max %0 axes=[1] : f32[32]
  %2 = broadcast %1 dims=[0] : f32[32,200]
  %3 = sub %0 %2 : f32[32,200]
  %4 = exp %3 : f32[32,200]
  %5 = reduce_sum %4 axes=[0] : f32[200]
  output "y" %5
}
"""


def run_bundle(scratch, bundle):
    """Runs a bundle on the device, for which only the driver is needed: results are right, the bundle is timed, and the message about a
    missing device is clear."""
    expect(any(path.suffix == ".cubin" for path in (pathlib.Path(bundle) / "kernels").iterdir()), "no cubin in the bundle")
    for by in "whole", "steps":
        report = scratch.run("warploom", "run", bundle, "--check", "--check-by", by, "--repeat", 4, "--profile", "--json", "-").json()
        expect(report["correct"] and report["device"] == "cuda:0" and len(report["time"]["samples_ns"]) == 4, report)
    # The bundle has at least two kernels; it has more if a kernel's parts were measured to be faster and have replaced
    # it.
    expect(len(report["steps"]) >= 2 and all(step["min_ns"] > 0 for step in report["steps"]), report["steps"])
    expect(report["calls"] == len(report["steps"]) and report["memory"]["intermediates"] > 0, report)
    done = scratch.run("warploom", "run", bundle)
    expect("on cuda:0, cuda:sm_90a" in done.out, done.out)
    model = scratch.run("run_model", bundle)  # run_model is a program that uses the C library; it fills the inputs with zeros
    expect("output y f32[200]: first element 32" in model.out, model.out)

    def refused(code, says, *options, **environment):
        scratch.environment.update(environment)
        done = scratch.run("warploom", "run", bundle, *options, expect=code)
        expect(says in done.err, done.err)
        for name in environment:
            del scratch.environment[name]

    refused(4, "kernels for cuda:sm_90a run on no device of this machine; cuda:0 is cuda:sm_80; tune for that target",
            WARPLOOM_FAKE_CAPABILITY="80")
    refused(4, "run on no cuda:3; cuda:0 is cuda:sm_90a", "--device", "cuda:3")
    refused(4, "kernels for cuda:sm_90a need its driver and device; CUDA: libcuda.so.1 finds no device", WARPLOOM_FAKE_ABSENT="1")
    refused(7, "out of memory", WARPLOOM_FAKE_MEMORY="20000")


def in_a_stream(scratch, family, target):
    """The C library runs kernels in a stream of the caller with device memory. One output is an input, and another one occurs twice."""
    graph = scratch.root / "stream.graph"
    graph.write_text(TWO_KERNELS.replace("}\n", '  output "x again" %0\n  output "y again" %5\n}\n'))
    bundle = scratch.path(f"{family}_stream")
    scratch.run("warploom", "tune", graph, "--target", target, "--trials", 1, "--out", bundle)
    scratch.run("launch_in_stream", bundle, family, "lazy")


def spilling(scratch, file):
    """Candidates with 256 threads in a block spill registers. Of these, only the default schedule is launched; the store has the reason for
    the others."""
    store = scratch.path("spill.db")
    scratch.environment["WARPLOOM_FAKE_SPILL"] = ", 256, WL_IN(f32, p0"
    report = scratch.run("warploom", "tune", file, "--target", "cuda:sm_90a", "--trials", 10, "--store", store, "--json", "-").json()
    del scratch.environment["WARPLOOM_FAKE_SPILL"]
    trials = report["groups"][0]["trials"]
    expect(trials["rejected"] > 0 and trials["correct"] > 0 and trials["runtime_error"] == 0, trials)
    with sqlite3.connect(store) as database:
        rows = database.execute("SELECT message, code FROM trials WHERE code LIKE '% spill=8192 %' AND trial > 0").fetchall()
        default = database.execute("SELECT DISTINCT message FROM trials WHERE trial = 0").fetchall()
    expect(len(rows) >= trials["rejected"], rows)
    expect(all("a lane spills 8192 bytes; at most 32 pay" in message for message, _ in rows), rows)
    expect(any("ERROR_LAUNCH_FAILED" in message for message, in default), default)  # launching a kernel that spills registers fails
    expect(not any("a lane spills" in message for message, in default), default)


def unsound(scratch, file):
    """If a kernel that is known to be right fails, the device is at fault: the job ends with a message that says so, and nothing is
    stored."""
    store = scratch.path("unsound.db")
    scratch.environment["WARPLOOM_FAKE_SPILL"] = "wl_check_copy"
    done = scratch.run("warploom", "tune", file, "--target", "cuda:sm_90a", "--trials", 2, "--store", store, expect=4)
    del scratch.environment["WARPLOOM_FAKE_SPILL"]
    expect("one that is known to be right failed (runtime_error: CUDA error 719" in done.err, done.err)
    expect(not rows_in(store, "SELECT * FROM trials"), "trials of a device that is at fault were stored")


def hip(scratch, file):
    """GPUs of AMD, with the fake libamdhip64, and hipRTC instead of clang."""
    path = without_clang(scratch)
    bundle = scratch.path("hip_bundle")
    report = scratch.run("warploom", "tune", file, "--target", "hip:gfx90a", "--trials", 1, "--out", bundle, "--json", "-").json()
    tuned(report, "hip:gfx90a")
    expect("hiprtc=13.99" in report["environment"]["compiler"], report["environment"])
    in_a_stream(scratch, "hip", "hip:gfx90a")
    scratch.environment["PATH"] = path
    expect(any(path.suffix == ".hsaco" for path in (pathlib.Path(bundle) / "kernels").iterdir()), "no hsaco in the bundle")
    done = scratch.run("warploom", "run", bundle, "--check", "--json", "-").json()
    expect(done["correct"] and done["device"] == "hip:0", done)
    scratch.run("warploom", "get", report["groups"][0]["key"], "--out", scratch.path("one"))
    kinds = sorted(file.suffix for file in pathlib.Path(scratch.path("one")).iterdir())
    expect(kinds == [".hip", ".hsaco", ".json"], kinds)


def fleet(scratch, file):
    """A fleet of a coordinator, a worker that offers all its devices, and a client without a GPU."""
    where = f"unix:{scratch.path('s')}"
    scratch.serve(scratch.path("s"), store=scratch.path("fleet.db"))
    worker = scratch.start("warploom-worker", "--server", where, "--devices", "all", "--exit-when-idle", 2)
    tuned(scratch.run("warploom", "tune", file, "--target", "cuda", "--server", where, "--trials", 3, "--json", "-").json())
    workers = scratch.run("warploom", "workers", "--server", where, "--json", "-").json()["workers"]
    devices = {worker["name"].split("/")[-1]: worker["devices"] for worker in workers}
    expect(devices["cuda:0"] == ["cuda:sm_90a Fake GPU"] and {"cpu", "cuda:0", "hip:0"} == set(devices), workers)
    expect(worker.wait(60) == 0, "the worker did not end in order")


# A product whose extents are multiples of the extents of the matrix instructions.
PRODUCT = """graph {
  %0 = input "a" : f32[64,64] normal(0,1)
  %1 = input "b" : f32[64,64] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : f32[64,64]
  output "y" %2
}
"""


def tf32(scratch):
    """Products of f32 use TF32 if the client allows it, are within the bound for TF32, and have keys of their own."""
    file = scratch.root / "product.graph"
    file.write_text(PRODUCT)
    asked = [file, "--target", "cuda:sm_90a"]
    exact = scratch.run("warploom", "inspect", *asked, "--stage", "space").out
    allowed = scratch.run("warploom", "inspect", *asked, "--stage", "space", "--allow-tf32").out
    expect("tf32" not in exact and "m16n8k8_tf32" in allowed, allowed)
    expect("wl_mma_m16n8k8_tf32(" in scratch.run("warploom", "inspect", *asked, "--stage", "source", "--allow-tf32").out, "no TF32")
    store = scratch.path("tf32.db")
    asked += ["--trials", 3, "--store", store, "--json", "-"]
    reports = [scratch.run("warploom", "tune", *asked, *more).json() for more in ([], ["--allow-tf32"])]
    for report in reports:
        tuned(report)
    keys = [report["groups"][0]["key"] for report in reports]
    expect(keys[0] != keys[1], keys)
    with sqlite3.connect(store) as database:
        outcomes = database.execute("SELECT outcome FROM trials WHERE plan LIKE '%matrix=m16n8k8_tf32%'").fetchall()
    expect(outcomes and all(outcome == 0 for (outcome,) in outcomes), outcomes)


def main():
    with Scratch() as scratch:
        file = scratch.root / "softmax.graph"
        file.write_text(graphs.SOFTMAX)
        with_fake(scratch)
        without_gpu(scratch, file)
        found(scratch)
        bundle = scratch.path("bundle")
        tuned(scratch.run("warploom", "tune", file, "--target", "cuda:sm_90a", "--trials", 4, "--json", "-").json())
        two = scratch.root / "two.graph"
        two.write_text(TWO_KERNELS)
        # The greedy cover always has two kernels and an intermediate value, whatever times are measured.
        tuned(scratch.run("warploom", "tune", two, "--target", "cuda:sm_90a", "--trials", 1, "--cover", "greedy", "--out", bundle, "--json", "-").json())
        run_bundle(scratch, bundle)
        expect(not list(pathlib.Path(scratch.root).glob("fake_nvrtc*")), os.listdir(scratch.root))
        in_a_stream(scratch, "cuda", "cuda:sm_90a")
        spilling(scratch, file)
        unsound(scratch, file)
        tf32(scratch)
        hip(scratch, two)
        fleet(scratch, file)
        print("ok")


if __name__ == "__main__":
    main()
