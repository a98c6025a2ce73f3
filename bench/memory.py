#!/usr/bin/env python3
"""Peak memory of running a whole model, compared with onnxruntime's.

    bench/memory.py [FOLDER] [--only NAME ...] [--trials 4]

Both programs read the weights from one ONNX file that contains them, and run the model three times with the same
number of threads, each in its own process. There are two figures for each:

*arena*: the memory of a run besides its weights. Warploom: intermediate values, inputs, outputs, and the scratch memory
of every thread, as the bundle lays them out. onnxruntime: "Total allocated bytes" of the BFC arena of its CPU provider
(default options), from its log. That includes initializers only where they were not repacked, and neither the
buffers of repacked ones nor the inputs.

*process*: the largest resident set, less that of the same program before it has loaded a model (`warploom
--version`; Python with onnxruntime and numpy imported). It includes the weights and the memory for loading them.

Writes bench/results/memory-DATE.json and .md; exits 1 when a figure of ours is above 1.2 of onnxruntime's.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import re
import subprocess
import sys

import run as bench
from run import ROOT

WORK = ROOT / "build" / "bench" / "memory"
MODELS = ["resnet50_b1", "bert_base_12l"]
CALLS = 3
LIMIT = 1.2


# A small process starts the program, since Linux adds the resident memory of the parent at the time of a fork to ru_maxrss of the child.
START = """
import os, sys
process = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(process, 0)
open(sys.argv[1], "w").write(str(usage.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def peak_of(command):
    """Returns the largest resident set of a process in bytes, and its output."""
    said = WORK / "peak"
    words = [sys.executable, "-S", "-E", "-c", START, said, *command]
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command[:3]))} failed: {done.stderr[-300:]}")
    return int(said.read_text()) * 1024, done.stdout


def bytes_of(buffer):
    return math.prod(buffer["shape"]) * int(re.search(r"\d+", buffer["dtype"]).group()) // 8


def ours(bundle, weights, threads):
    program = bench.BIN / "warploom"
    base, _ = peak_of([program, "--version"])
    peak, output = peak_of(
        [program, "run", bundle, "--weights", weights, "--repeat", CALLS, "--threads", threads, "--json", "-"]
    )
    said = json.loads(output)
    manifest = json.loads((bundle / "manifest.json").read_text())
    scratch = max(kernel["scratch_bytes"] for kernel in manifest["kernels"]) * said["threads"]
    memory = said["memory"]
    weights_bytes = sum(bytes_of(buffer) for buffer in manifest["buffers"] if buffer["name"] in manifest["weights"])
    return {
        "arena": said["arena_bytes"] + scratch + memory["outputs"] + memory["inputs"] - weights_bytes,
        "intermediates": said["arena_bytes"],
        "scratch": scratch,
        "weights": weights_bytes,
        "process": peak - base,
        "base": base,
    }


def theirs(model, inputs, threads):
    python = ROOT / "build" / "venv-peers" / "bin" / "python"
    command = [python if python.exists() else sys.executable, __file__, "--peer", model, inputs, threads]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
    totals = [int(n) for n in re.findall(r"Total allocated bytes: (\d+)", done.stderr)]
    return {**json.loads(done.stdout), "arena": max(totals)}


def peer(model, inputs, threads):
    """Runs onnxruntime in this process and returns how much its resident set grows."""
    import numpy as np
    import onnxruntime

    onnxruntime.set_default_logger_severity(0)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(threads)
    options.inter_op_num_threads = 1
    base = status("VmRSS")
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # sets the peak of the process's resident memory to its present size
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    folder = pathlib.Path(inputs)
    values = {i.name: np.load(folder / f"{i.name.replace('/', '_')}.npy") for i in session.get_inputs()}
    for _ in range(CALLS):
        session.run(None, values)
    print(json.dumps({"process": status("VmHWM") - base, "base": base, "version": onnxruntime.__version__}))


def status(field):
    text = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", text).group(1)) * 1024


def with_weights(model, inputs, to):
    """Saves the model with the values of its weights as initializers."""
    import numpy as np
    import onnx
    import peers
    import workloads

    made = onnx.load(model)
    names = workloads.weight_names(made)
    values = {name: np.load(inputs / f"{name.replace('/', '_')}.npy") for name in names}
    to.write_bytes(peers.with_constant_weights(made, values).SerializeToString())


def one(model, options):
    folder = WORK / model.stem
    folder.mkdir(parents=True, exist_ok=True)
    bundle, values, file = folder / "bundle", folder / "values", folder / "model.onnx"
    program = bench.BIN / "warploom"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": True}
    store = options.store or WORK / "store.db"
    tune = [program, "tune", model, "--store", store, "--trials", options.trials, "--out", bundle]
    subprocess.run([str(word) for word in tune], **quiet)
    subprocess.run([program, "run", bundle, "--output-dir", values, "--save-inputs"], **quiet)
    with_weights(model, values / "inputs", file)
    row = {"model": model.stem, "warploom": ours(bundle, file, options.threads)}
    row["onnxruntime"] = theirs(file, values / "inputs", options.threads)
    for figure in ("arena", "process"):
        row[f"{figure}_ratio"] = round(row["warploom"][figure] / row["onnxruntime"][figure], 3)
    return row


def table(rows, options):
    def mib(value):
        return f"{value / 2**20:.1f}"

    lines = [
        f"MiB; {options.threads} threads. *arena*: what a run needs beside its weights; *process*: growth of the resident set from "
        "before the model was loaded to its largest, weights and loading included.",
        "",
        "| model | weights | arena | of it scratch | onnxruntime's arena | ratio | process | onnxruntime's | ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        mine, other = row["warploom"], row["onnxruntime"]
        lines.append(
            f"| {row['model']} | {mib(mine['weights'])} | {mib(mine['arena'])} | {mib(mine['scratch'])} | "
            f"{mib(other['arena'])} | **{row['arena_ratio']:.2f}** | {mib(mine['process'])} | {mib(other['process'])} | "
            f"**{row['process_ratio']:.2f}** |"
        )
    return "\n".join(lines) + "\n"


def main():
    if sys.argv[1:2] == ["--peer"]:
        return peer(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=ROOT.parent / "shared" / "data" / "models")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=MODELS, help="files whose name begins so")
    parser.add_argument("--trials", type=int, default=4, help="per distinct group; the memory hardly depends on it")
    parser.add_argument("--store", type=pathlib.Path, help="a store with records of these models")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    models = [m for m in sorted(options.folder.glob("*.onnx")) if any(m.stem.startswith(name) for name in options.only)]
    if not models:
        parser.error(f"no such models in {options.folder}")
    WORK.mkdir(parents=True, exist_ok=True)
    rows = [one(model, options) for model in models]
    print(table(rows, options), end="")
    now = datetime.datetime.now(datetime.timezone.utc)
    facts = {
        "date": now.isoformat(timespec="seconds"),
        "machine": bench.machine(),
        "threads": options.threads,
        "trials": options.trials,
        "models": rows,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    stem = options.out / f"memory-{now:%Y%m%d-%H%M}"
    stem.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n")
    stem.with_suffix(".md").write_text(table(rows, options))
    print(f"Written to {stem}.json and .md")
    sys.exit(1 if any(row[f"{figure}_ratio"] > LIMIT for row in rows for figure in ("arena", "process")) else 0)


if __name__ == "__main__":
    main()
