#!/usr/bin/env python3
"""Quantises ONNX models as users of onnxruntime do (`quantize_static`, QDQ), for benches such as bench/models.py OUT.
Run it with build/venv-peers.

    bench/quantised.py OUT MODEL...

Models without stored weights get random ones with the means and deviations that the file states
(`warploom.weight_stats`), and the calibration inputs are random, so the model's results have no meaning; its speed does
not depend on them. Activations are u8 (or i8 with --signed) with one scale per tensor, weights i8 with one scale per
channel.
"""

import argparse
import json
import pathlib
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper
from onnxruntime import quantization


def properties(model):
    return {entry.key: json.loads(entry.value) for entry in model.metadata_props if entry.value.startswith("{")}


def random_of(value, stats, ranges, random):
    shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    if np.issubdtype(dtype, np.floating):
        mean, deviation = stats.get(value.name, (0.0, 1.0))
        return random.normal(mean, deviation, shape).astype(dtype)
    low, high = ranges.get(value.name, (0, 2))
    return random.integers(low, high, shape).astype(dtype)


def with_weights(model, random):
    """Replaces the weights among a model's inputs by random initializers. Returns the ranges of its integer inputs by name."""
    facts = properties(model)
    stats = {k: (v["mean"], v["std"]) if isinstance(v, dict) else v for k, v in facts.get("warploom.weight_stats", {}).items()}
    ranges = facts.get("warploom.int_range", {})
    named = next((entry.value for entry in model.metadata_props if entry.key == "warploom.weights"), "")
    for name in filter(None, named.split(",")):
        value = next(i for i in model.graph.input if i.name == name)
        model.graph.initializer.append(numpy_helper.from_array(random_of(value, stats, ranges, random), name))
        model.graph.input.remove(value)
    return ranges


class Calibration(quantization.CalibrationDataReader):
    def __init__(self, model, ranges, random, count=4):
        inputs = [{i.name: random_of(i, {}, ranges, random) for i in model.graph.input} for _ in range(count)]
        self.inputs = iter(inputs)

    def get_next(self):
        return next(self.inputs, None)


def quantise(path, out, signed):
    random = np.random.default_rng(1)
    model = onnx.load(path)
    ranges = with_weights(model, random)
    del model.metadata_props[:]
    kind = quantization.QuantType.QInt8 if signed else quantization.QuantType.QUInt8
    with tempfile.TemporaryDirectory() as folder:
        whole = pathlib.Path(folder) / "model.onnx"
        onnx.save(model, whole)
        quantization.quantize_static(
            whole,
            out,
            Calibration(model, ranges, random),
            quant_format=quantization.QuantFormat.QDQ,
            per_channel=True,
            activation_type=kind,
            weight_type=quantization.QuantType.QInt8,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--signed", action="store_true", help="activations are i8 rather than u8")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for path in options.models:
        name = f"{path.stem}_{'s8' if options.signed else 'u8'}.onnx"
        quantise(path, options.out / name, options.signed)
        print(options.out / name)


if __name__ == "__main__":
    main()
