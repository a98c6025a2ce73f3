#!/usr/bin/env python3
"""tune_test.py ARCHITECTURE ORDER TRIALS NAMES...: tunes the groups of the goldens of these names ("all": of all goldens) on the emulator,
as a user does on a GPU, with the real programs, driver calls, compilers and checks. Goldens whose default kernels execute too many
instructions for the emulator are left out and printed."""

import json
import pathlib
import re
import shutil
import subprocess
import sys

import emulator
from harness import BIN, PATIENCE, SOURCE, Scratch, expect, fail

MOST_INSTRUCTIONS = 300_000  # largest number of wave instructions in all kernels of a graph; the emulator executes them in about a second
SECONDS = 3000


def graph_of(golden):
    return re.search(r"== graph\n(graph \{\n.*?\n\}\n)", golden.read_text(), re.DOTALL)[1]


def goldens(names):
    found = {file.stem: graph_of(file) for file in sorted((SOURCE / "tests/golden/kernels").rglob("*.txt"))}
    return found if names == ["all"] else {name: found[name] for name in names}


def multiplies_bytes(graph):
    """Returns whether a graph multiplies bytes, u8 with i8. RDNA does this by WMMA, but the emulator takes both factors for signed
    bytes."""
    return re.search(r"contract .*: i32", graph) is not None


def prepare(scratch):
    """Makes a folder with the client, a script that opens the driver before it starts the runner, and a bwrap that fails, since a candidate
    in a sandbox could not reach the emulator's socket and memory. Returns the folder."""
    tools = pathlib.Path(scratch.path("tools"))
    tools.mkdir()
    shutil.copy2(BIN / "warploom", tools)
    scripts = {"warploom-runner": f'LD_PRELOAD="{BIN}/libemulated_early.so" exec "{BIN}/warploom-runner" "$@"', "bwrap": "exit 1"}
    for name, body in scripts.items():
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)
    return tools


def started(scratch, architecture, order, *program):
    """Runs a program on the emulator and returns its output."""
    environment = dict(emulator.environment(), EMU_ORDER=order, NO_COLOR="1")
    environment["PATH"] = f"{scratch.path('tools')}:{environment['PATH']}"
    command = emulator.command(architecture, *program)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=scratch.root, start_new_session=True
    )
    with emulator.ended(process):
        out, _ = process.communicate(timeout=SECONDS * PATIENCE)
    if process.returncode != 0:
        fail(f"{' '.join(command)}: exit code {process.returncode}\n{out}")
    return out


def too_long(scratch, architecture, order):
    """Returns the goldens that are left out: name -> wave instructions of their default kernels."""
    said = started(scratch, architecture, order, BIN / "emulated_test", "--gtest_filter=Emulated.GoldenGroupsMeanTheirGraphs")
    counted = {name: int(count) for name, count in re.findall(r"^golden (\w+) instructions (\d+)$", said, re.MULTILINE)}
    return {name: count for name, count in counted.items() if count > MOST_INSTRUCTIONS}


def main(architecture, order, trials, *names):
    emulator.make_ready()
    with Scratch() as scratch:
        tools = prepare(scratch)
        graphs = goldens(list(names))
        left_out = too_long(scratch, architecture, order) if names == ("all",) else {}
        for name, count in sorted(left_out.items()):
            print(f"left out: {name}: {count} instructions of waves; at most {MOST_INSTRUCTIONS} are executed")
        tuned = correct = 0
        for name, graph in graphs.items():
            if name in left_out:
                continue
            if not architecture.startswith("gfx9") and multiplies_bytes(graph):
                print(f"left out: {name}: the emulator takes all bytes for signed ones")
                continue
            file, report = scratch.root / f"{name}.graph", scratch.root / f"{name}.json"
            file.write_text(graph)
            started(scratch, architecture, order, tools / "warploom", "tune", file, "--target", f"hip:{architecture}", "--trials", trials,
                    "--store", scratch.path(f"{name}.db"), "--json", report)
            for group in json.loads(report.read_text())["groups"]:
                by_outcome = group["trials"]
                for outcome in "compile_error", "wrong_result", "runtime_error":
                    expect(by_outcome[outcome] == 0, f"{name}: {group}")
                expect(by_outcome["correct"] > 0 and group["max_error"] <= group["bound"], f"{name}: {group}")
                if by_outcome["timeout"]:
                    print(f"left out: {by_outcome['timeout']} candidates of {name}, which the emulator does not finish in a worker's time")
                correct += by_outcome["correct"]
            tuned += 1
        print(f"{tuned} graphs tuned, {correct} candidates right")
        expect(tuned > 0, "nothing was tuned")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
