#!/usr/bin/env python3
"""Compares the importer and the oracle with onnxruntime, on the same inputs.

Runs every model of tests/data (or the files given as arguments) and every case of the import table. A value passes
when it is within FACTOR times the oracle's bound for correctly rounded evaluations (docs/numerics.md).
"""

import glob
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnxruntime as ort
except ImportError as missing:
    print(f"skipped: {missing}; `tools/setup.sh python` makes the environment")
    sys.exit(77)

# Factor by which onnxruntime's errors may exceed the bound for correctly rounded evaluations. Its kernels use polynomials, reassociated
# sums, and f32 where Warploom uses f64.
FACTOR = 2.0

DTYPES = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i16": np.int16,
    "i8": np.int8, "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8, "b1": np.bool_,
}


def run_peer(report):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    # Only basic rewrites of the graph are allowed, so that onnxruntime computes nearly the graph that is in the file.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = ort.InferenceSession(report["file"], options, providers=["CPUExecutionProvider"])
    given = {i["name"]: i for i in report["inputs"]}
    feeds = {}
    for wanted in session.get_inputs():
        one = given[wanted.name]
        feeds[wanted.name] = np.fromfile(one["file"], dtype=DTYPES[one["dtype"]]).reshape(one["shape"])
    return session.run([o["name"] for o in report["outputs"]], feeds)


def compare(output, got):
    """Returns (worst error divided by the bound, worst relative error, message or None)."""
    if list(got.shape) != output["shape"] or got.dtype != DTYPES[output["dtype"]]:
        return 0, 0, f"{output['name']} is {got.dtype}{list(got.shape)}, expected {output['dtype']}{output['shape']}"
    exact, bound = np.array(output["values"], dtype=np.float64), np.array(output["bounds"], dtype=np.float64)
    mine = got.reshape(-1)[np.array(output["indices"], dtype=np.int64)].astype(np.float64)
    if exact.size == 0:
        return 0, 0, None if got.size == 0 else f"{output['name']}: no samples"
    same = (mine == exact) | (np.isnan(mine) & np.isnan(exact))
    with np.errstate(all="ignore"):
        error = np.where(same, 0, np.abs(mine - exact))
        error = np.where(np.isnan(error), np.inf, error)
        ratio = np.where(same, 0, error / bound)
        scale = np.abs(exact[np.isfinite(exact)]).max(initial=0)
        relative = float(error.max() / scale) if scale > 0 else float(error.max())
    worst = int(np.argmax(ratio))
    if ratio[worst] > FACTOR:
        return ratio[worst], relative, (
            f"{output['name']}[{output['indices'][worst]}]: onnxruntime {mine[worst]!r}, oracle {exact[worst]!r} "
            f"with bound {bound[worst]:.3g}; {int((ratio > FACTOR).sum())} of {len(ratio)} samples are off")
    return ratio[worst], relative, None


def main():
    tool = os.path.join(os.environ["WARPLOOM_BIN_DIR"], "eval_onnx")
    source = os.environ["WARPLOOM_SOURCE_DIR"]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        models = sys.argv[1:] or sorted(glob.glob(os.path.join(source, "tests/data/*.onnx")))
        cases = []
        if not sys.argv[1:]:
            lines = subprocess.run([tool, "--cases", folder], check=True, capture_output=True, text=True).stdout
            cases = [line.rsplit(" ", 1)[0] for line in lines.splitlines() if line.endswith(" 1")]
        worst = (0.0, "")
        for files in [[m] for m in models] + ([cases] if cases else []):
            lines = subprocess.run([tool, folder, *files], check=True, stdout=subprocess.PIPE, text=True).stdout
            for line in lines.splitlines():
                report = json.loads(line)
                name = os.path.basename(report["file"])
                if "error" in report:
                    failures += 1
                    print(f"FAIL {name}: {report['error']}")
                    continue
                try:
                    results = run_peer(report)
                except Exception as error:  # all exceptions are caught, since onnxruntime raises several classes
                    failures += 1
                    print(f"FAIL {name}: onnxruntime: {str(error).splitlines()[0][:300]}")
                    continue
                for output, got in zip(report["outputs"], results):
                    ratio, relative, complaint = compare(output, got)
                    if complaint:
                        failures += 1
                        print(f"FAIL {name}: {complaint}")
                    elif files is not cases:
                        print(f"{name}: {output['name']}: {len(output['values'])} samples, largest relative error "
                              f"{relative:.2e}, {ratio:.3f} of the bound")
                    else:
                        worst = max(worst, (ratio, name))
                for one in report["inputs"]:
                    os.remove(one["file"])
        if cases:
            print(f"{len(cases)} one-node models: largest error {worst[0]:.3f} of the bound ({worst[1]})")
    print("FAILED:" if failures else "passed,", failures, "differences")
    sys.exit(1 if failures else 0)


main()
