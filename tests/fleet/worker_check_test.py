#!/usr/bin/env python3
"""`warploom-worker --check` prints what a machine has and lacks for a worker, with and without a GPU, as text and as JSON."""

import os
import shutil

from documented import documented, shell
from fakes import FAKE
from harness import Scratch, expect, skip
from sandbox_test import path_without


def check(scratch, *options, code=0):
    return scratch.run("warploom-worker", "--check", "--json", *options, expect=code).json()


def named(told, what):
    rows = [row for row in told["findings"] if row["what"] == what]
    expect(len(rows) == 1, f"{what}: {told['findings']}")
    return rows[0]


def rates(told, device):
    return {row["what"]: row for row in told["rates"] if row["device"] == device}


def main():
    with Scratch() as scratch:
        works = scratch.run("warploom-worker", "--check", expect=None)
        sandbox = [] if "bubblewrap, with" in works.out else ["--sandbox", "none"]
        told = check(scratch, *sandbox)
        expect(told["ready"] and told["format"] == 1, told)
        for what in ("processor", "runner", "sandbox", "processors", "processor limit", "clock governor", "other load", "memory", "work folder", "identity"):
            expect(named(told, what)["readiness"] in ("ok", "warn"), told)
        expect(named(told, "cpu kernels")["found"] == "compile, run and are right", told)
        expect(named(told, "GPUs")["found"].startswith("none: "), told)
        cpu = rates(told, "cpu")
        for what in ("copy", "multiply-adds"):
            expect(cpu[what]["measured"] > 0.1, cpu)
        for row in told["findings"]:
            expect((row["readiness"] == "ok") == (row["todo"] == ""), row)
        text = shell(scratch, " ".join([documented("warploom-worker --check --devices all"), *sandbox])).stdout
        expect(text.endswith("\nready\n") and len(text.splitlines()) < 45, text)
        for word in ("GB/s", "GFLOP/s", "compile, run and are right"):
            expect(word in text, text)
        print("without a GPU", flush=True)

        # `--check` reports every missing part with a remedy, and its exit code is 2.
        none = check(scratch, *sandbox, "--devices", "cuda:0", code=2)
        expect(not none["ready"] and named(none, "cuda:0")["readiness"] == "missing", none)
        gone = check(scratch, *sandbox, "--work-dir", "/nowhere", code=2)
        expect(named(gone, "work folder")["readiness"] == "missing" and "--work-dir" in named(gone, "work folder")["todo"], gone)
        lacks = check(scratch, *sandbox, "--runner", "/nowhere/runner", code=2)
        expect(named(lacks, "runner")["readiness"] == "missing", lacks)
        whole = dict(scratch.environment)
        if not sandbox:
            scratch.environment["PATH"] = path_without(scratch, "bwrap")
            bare = check(scratch, code=2)
            expect(named(bare, "sandbox")["readiness"] == "missing" and "install bubblewrap" in named(bare, "sandbox")["todo"], bare)
            expect(named(check(scratch, "--sandbox", "none"), "sandbox")["readiness"] == "warn", "--sandbox none")
        tools = scratch.root / "no-compilers"
        tools.mkdir()
        for program in ("bwrap", "sh", "ld"):
            if found := shutil.which(program):
                (tools / program).symlink_to(os.path.realpath(found))
        scratch.environment["PATH"] = str(tools)
        nothing = check(scratch, *sandbox, code=2)
        expect(named(nothing, "g++")["readiness"] == "missing" and "install g++" in named(nothing, "g++")["todo"], nothing)
        scratch.environment = whole
        print("missing", flush=True)

        scratch.environment.update(LD_LIBRARY_PATH=str(FAKE), WARPLOOM_FAKE_CLOCKS="1980 1500 " * 5000)
        gpu = check(scratch, *sandbox, "--devices", "cuda:0")
        expect(gpu["ready"] and "Fake GPU" in named(gpu, "cuda:0")["found"], gpu)
        expect("nvrtc=13.99" in named(gpu, "cuda:0 compiler")["found"], gpu)
        expect("compile, run and are right" in named(gpu, "cuda:0 kernels")["found"], gpu)
        clock = named(gpu, "cuda:0 clock")
        expect(clock["readiness"] == "warn" and "nvidia-smi -lgc" in clock["todo"], clock)
        for what, row in rates(gpu, "cuda:0").items():
            expect(row["measured"] > 0 and row["nominal"] > 0, row)
        expect("not asked for" in named(gpu, "hip:0")["found"], gpu)
        scratch.environment["WARPLOOM_FAKE_CLOCKS"] = "1980"
        expect(named(check(scratch, *sandbox, "--devices", "cuda:0"), "cuda:0 clock")["readiness"] == "ok", "a clock that is locked")
        print("with a fake GPU", flush=True)

        usage = scratch.run("warploom-worker", expect=1)
        expect("--server is required" in usage.err, usage.err)
        json = scratch.run("warploom-worker", "--json", "--server", "unix:x", expect=1)
        expect("--check" in json.err, json.err)


if __name__ == "__main__":
    main()
