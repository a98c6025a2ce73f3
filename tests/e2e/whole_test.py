#!/usr/bin/env python3
"""A model with a symbolic dimension and with weights: it is tuned at two sizes, run at each with the weights from the ONNX file, an .npz or
a folder, checked as a whole and call by call, and run by the example program."""

import subprocess
import sys

from graphs import onnx_model
from harness import BIN, Scratch, expect, skip

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper
except ImportError:
    skip("needs numpy and onnx")

WIDTH, CLASSES = 256, 128


def write_model(path, weights):
    """Writes a model of softmax(relu(x w + b) v) over rows, with w and v too large to be stored in the graph."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"]),
        helper.make_node("Add", ["xw", "b"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "v"], ["rv"]),
        helper.make_node("Softmax", ["rv"], ["y"], axis=-1),
    ]
    onnx.save(onnx_model(nodes, [("x", TensorProto.FLOAT, ["n", WIDTH])], [("y", TensorProto.FLOAT, ["n", CLASSES])], weights), path)


def expected(x, weights):
    x, w, b, v = (a.astype("f8") for a in (x, weights["w"], weights["b"], weights["v"]))
    z = np.maximum(x @ w + b, 0) @ v
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def run(scratch, weights_from, x, weights):
    np.save(scratch.path("x.npy"), x)
    out = scratch.path("out")
    options = ["--input", f"x={scratch.path('x.npy')}", "--weights", weights_from, "--output-dir", out, "--json", "-"]
    report = scratch.run("warploom", "run", "tuned", *options).json()
    expect(report["bind"] == {"n": len(x)}, f"ran what was tuned for {report['bind']}")
    expect(sorted(report["given_inputs"]) == ["b", "v", "w", "x"], f"given: {report['given_inputs']}")
    found = np.load(f"{out}/y.npy")
    worst = np.abs(found - expected(x, weights)).max()
    expect(worst < 1e-5, f"{weights_from}, {len(x)} rows: differs by {worst}")


def main():
    random = np.random.default_rng(7)
    weights = {
        "w": (random.standard_normal((WIDTH, WIDTH)) / 16).astype("f4"),
        "b": random.standard_normal(WIDTH).astype("f4"),
        "v": (random.standard_normal((WIDTH, CLASSES)) / 16).astype("f4"),
    }
    with Scratch() as scratch:
        write_model(scratch.path("m.onnx"), weights)
        report = scratch.run(
            "warploom", "tune", "m.onnx", "--bind", "n=16,48", "--trials", 1, "--out", "tuned", "--json", "-"
        ).json()
        sizes = [row["bind"]["n"] for row in report["sizes"]]
        expect(sizes == [16, 48], f"tuned for {sizes}")
        expect(all(row["report"]["input"]["bind"] == row["bind"] for row in report["sizes"]), "a report has another size")

        np.savez(scratch.path("w.npz"), **weights)
        folder = scratch.root / "weights"
        folder.mkdir()
        for name, array in weights.items():
            np.save(folder / f"{name}.npy", array)
        for rows in sizes:
            x = random.standard_normal((rows, WIDTH)).astype("f4")
            for weights_from in ("m.onnx", "w.npz", "weights"):
                run(scratch, weights_from, x, weights)
        np.save(scratch.path("x.npy"), np.zeros((17, WIDTH), "f4"))
        wrong = scratch.run("warploom", "run", "tuned", "--input", f"x={scratch.path('x.npy')}", expect=2).err
        expect("tuned for n=16; n=48" in wrong, wrong)

        for how in ("whole", "steps"):
            checked = scratch.run("warploom", "run", "tuned", "--bind", "n=48", "--check-by", how, "--json", "-").json()
            expect(checked["correct"] and checked["check_by"] == how, f"{how}: {checked}")
        expect(checked["steps_make_graph"], "the steps are not shown to be the graph")
        one = scratch.run("warploom", "run", "m.onnx", "--bind", "n=16", "--check", "--json", "-").json()
        expect(one["correct"] and one["bind"] == {"n": 16}, f"{one}")

        if (BIN / "run_model").exists():
            said = subprocess.run(
                [BIN / "run_model", scratch.path("tuned"), scratch.path("m.onnx")], capture_output=True, text=True, timeout=60
            )
            expect(said.returncode == 0 and "output y f32[16,128]" in said.stdout, f"{said.stdout}{said.stderr}")
        print("sizes, weights and checks agree")


if __name__ == "__main__":
    sys.exit(main())
