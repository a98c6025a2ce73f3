#!/usr/bin/env python3
"""Tunes one model on this machine, shows what was found, and times onnxruntime beside it where that is installed.

    tools/demo.py [--model FILE] [--trials N] [--rounds N]

The search's results stay in build/demo/store.db, so a second demo searches nothing.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build/release/bin/warploom"
FOLDER = ROOT / "build/demo"
RUNS = 10  # number of calls of the model that Warploom makes in each round, and that onnxruntime makes

# The text of a program for the Python interpreter that has onnxruntime. It prints how many milliseconds every call of the model took.
PEER = """
import json, sys, time
import numpy, onnxruntime
model, threads, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
draw = numpy.random.default_rng(1)
types = {"tensor(float)": numpy.float32, "tensor(double)": numpy.float64, "tensor(float16)": numpy.float16}
feeds = {i.name: draw.standard_normal(i.shape).astype(types[i.type]) for i in session.get_inputs()}
bound, times = session.io_binding(), []
for name, value in feeds.items():
    bound.bind_cpu_input(name, value)
for output in session.get_outputs():
    bound.bind_ortvalue_output(output.name, onnxruntime.OrtValue.ortvalue_from_shape_and_type(output.shape, types[output.type]))
for i in range(runs + 2):
    start = time.perf_counter()
    session.run_with_iobinding(bound)
    times.append(1e3 * (time.perf_counter() - start))
print(json.dumps({"version": onnxruntime.__version__, "ms": times[2:]}))
"""


def said(*command, **more):
    """Runs a program of the demo, which prints to this terminal; ends the demo if it fails."""
    done = subprocess.run([str(word) for word in command], **more)
    if done.returncode != 0:
        sys.exit(f"demo: {command[0]} {command[1]} ended with {done.returncode}")
    return done


def python_with_onnxruntime():
    """Returns an interpreter that has onnxruntime and NumPy: of an environment of this project, or the system's; None if there is none."""
    for python in (ROOT / "build/venv-peers/bin/python", ROOT / "build/venv/bin/python", "python3"):
        try:
            if subprocess.run([str(python), "-c", "import onnxruntime, numpy"], capture_output=True).returncode == 0:
                return python
        except OSError:
            pass
    return None


def ours(bundle):
    """Returns the milliseconds of every call of the bundle, and the number of its threads."""
    report = json.loads(said(PROGRAM, "run", bundle, "--repeat", RUNS, "--json", "-", stdout=subprocess.PIPE).stdout)
    return [1e-6 * ns for ns in report["time"]["samples_ns"]], report["threads"]


def beside(model, bundle, rounds):
    """Times the bundle and onnxruntime in turn, and prints the median and the least time of each."""
    python = python_with_onnxruntime()
    if python is None:
        print("\nonnxruntime is not installed here, so nothing is timed beside it; `make python` installs it in build/venv")
        return
    times, version = {"Warploom": [], "onnxruntime": []}, ""
    for _ in range(rounds):
        mine, threads = ours(bundle)
        times["Warploom"] += mine
        peer = subprocess.run([str(python), "-c", PEER, str(model), str(threads), str(RUNS)], capture_output=True, text=True)
        if peer.returncode != 0:
            print(f"\nonnxruntime could not run {model.name}: {peer.stderr.strip().splitlines()[-1]}")
            return
        answer = json.loads(peer.stdout)
        version = answer["version"]
        times["onnxruntime"] += answer["ms"]
    print(f"\n{model.name} beside onnxruntime {version}, {threads} threads, {rounds} rounds of {RUNS} runs in turn:")
    for name, values in times.items():
        print(f"  {name:12} median {statistics.median(values):8.2f} ms   least {min(values):8.2f} ms")
    by = {name: statistics.median(values) for name, values in times.items()}
    print(f"  ratio of the medians: {by['onnxruntime'] / by['Warploom']:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "tests/data/layernorm_residual.onnx")
    parser.add_argument("--trials", type=int, default=12, help="candidates of each kernel")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the comparison with onnxruntime")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    bundle, page, store = FOLDER / "bundle", FOLDER / "report.html", ("--store", FOLDER / "store.db")
    said(PROGRAM, "tune", options.model, *store, "--trials", options.trials, "--out", bundle, "--html", page)
    print("\nwhich operations share a kernel, and why:", flush=True)
    said(PROGRAM, "inspect", bundle, *store, "--stage", "plan", "--why")
    beside(options.model, bundle, options.rounds)
    print(f"\nthe page of the report: {page.relative_to(ROOT)}\nthe kernels: build/release/bin/warploom inspect build/demo/bundle --stage source")


if __name__ == "__main__":
    main()
