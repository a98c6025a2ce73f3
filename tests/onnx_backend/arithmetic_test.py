#!/usr/bin/env python3
"""Arithmetic at the limits of every type, compared with NumPy and exact integers: each elementwise operator, conversions, and positions of
extremes, for zeros of both signs, the type's limits and their neighbours, neighbours of powers of two, infinities, NaN and denormals.
Models are imported, covered, compiled and run by run_onnx. docs/numerics.md defines the results that the standard leaves open.

    arithmetic_test.py [-k REGEX]"""
import argparse
import math
import os
import pathlib
import random as randoms
import re
import subprocess
import sys
import tempfile

try:
    import ml_dtypes
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper

    import backend_test
    import cases
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

BF16 = ml_dtypes.bfloat16
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, BF16, np.float32, np.float64]
np.seterr(all="ignore")
random = randoms.Random(int(os.environ.get("WARPLOOM_TEST_SEED", "1")))


def is_float(dtype):
    return dtype in FLOATS


def name_of(dtype):
    return np.dtype(dtype).name


# Values of the models' inputs.
def integers(dtype):
    info = np.iinfo(dtype)
    near = [s * (1 << k) + d for k in range(info.bits) for d in (-1, 0, 1) for s in (1, -1)]
    every = {info.min, info.min + 1, info.max - 1, info.max, 0, 1, -1, 2, -2, 3, 7, 10, *near}
    every |= {random.randrange(info.min, info.max + 1) for _ in range(20)}
    return np.array(sorted(v for v in every if info.min <= v <= info.max), dtype)


def floats(dtype):
    info = ml_dtypes.finfo(dtype)
    tiny, least, most = float(info.tiny), float(info.smallest_subnormal), float(info.max)
    sizes = [0, 1, 0.5, 2, 3, 1 / 3, 0.1, 10, 88.9, 89.2, 104, 720, 11.5, 12, 256, 1e4, 1e9, 1e18, 1e19, 1e20, 3e38, 1e154, 1e300,
             tiny, tiny * 0.75, least, least * 3, most, most / 2, 1 + float(info.eps), 1 - float(info.eps), 2 - float(info.eps),
             2.0**24, 2.0**24 + 1, 2.0**31, 2.0**32, 2.0**63, 2.0**64, 0.9999, 1.0001, 1e-4, 1e-9, 5.3, 0.25, math.inf]  # fmt: skip
    values = np.array([s * v for v in sizes if v <= most or v == math.inf for s in (1, -1)] + [math.nan], np.float64)
    return np.array(list(dict.fromkeys(values.astype(dtype).tolist())) + [-0.0], dtype)


def values_of(dtype):
    return floats(dtype) if is_float(dtype) else np.array([False, True]) if dtype == np.bool_ else integers(dtype)


def pairs(a, b, most=1500):
    both = [(x, y) for x in range(len(a)) for y in range(len(b))]
    both = both if len(both) <= most else random.sample(both, most)
    return a[[x for x, _ in both]], b[[y for _, y in both]]


# The references that operators are compared with.
def wrapped(value, dtype):
    info = np.iinfo(dtype)
    return (value - info.min) % (1 << info.bits) + info.min


def exactly(function, dtype):
    """Returns the reference of a function of integers, which is computed with Python's integers and then wrapped to the type."""
    def reference(*arrays):
        return np.array([wrapped(function(*(int(v) for v in values)), dtype) for values in zip(*arrays)], dtype)
    return reference


def wide(function):
    """Returns the reference of a function of floats, which is computed in a wider type and then rounded once."""
    def reference(*arrays):
        dtype = arrays[0].dtype
        result = function(*(a.astype(np.longdouble if dtype == np.float64 else np.float64) for a in arrays))
        return result if result.dtype == np.bool_ else result.astype(np.float32).astype(dtype) if dtype == BF16 else result.astype(dtype)
    return reference


def truncated(a, b):
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a, b):
    return 0 if b == 0 else a - truncated(a, b) * b


def modulo(a, b):
    return 0 if b == 0 else a % b


def power(a, b):
    if b < 0:
        return a if a == -1 and b % 2 else 1 if abs(a) == 1 else 0
    return pow(a, b, 1 << 64)


def converted(array, dtype):
    if dtype == np.bool_:
        return array != 0
    if is_float(dtype):
        if array.dtype == np.bool_ or not is_float(array.dtype.type):
            array = array.astype(np.longdouble)
        return array.astype(np.float64 if dtype != np.float64 else dtype).astype(np.float32 if dtype == BF16 else dtype).astype(dtype)
    info = np.iinfo(dtype)
    if is_float(array.dtype.type):
        whole = lambda v: 0 if math.isnan(v) else (info.max if v > 0 else info.min) if math.isinf(v) else int(v)
        return np.array([min(max(whole(v), info.min), info.max) for v in array.astype(np.float64).tolist()], dtype)
    return np.array([wrapped(int(v), dtype) for v in array], dtype)


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x).astype(x.dtype)


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def elu(x, alpha):
    return np.where(x < 0, np.expm1(x) * alpha, x)


SELU = (np.float32(1.67326319217681884765625), np.float32(1.05070102214813232421875))
UNARY = {  # name of an operator on floats -> its reference, and the allowed error in units in the last place
    "Abs": (np.abs, 0), "Neg": (np.negative, 0), "Sign": (np.sign, 0), "Ceil": (np.ceil, 0), "Floor": (np.floor, 0), "Round": (np.rint, 0),
    "Sqrt": (np.sqrt, 1), "Reciprocal": (lambda x: 1 / x, 1), "Exp": (np.exp, 4), "Log": (np.log, 4), "Sin": (np.sin, 4), "Cos": (np.cos, 4),
    "Tan": (np.tan, 16), "Asin": (np.arcsin, 16), "Acos": (np.arccos, 16), "Atan": (np.arctan, 4), "Sinh": (np.sinh, 24), "Cosh": (np.cosh, 24),
    "Tanh": (np.tanh, 8), "Asinh": (np.arcsinh, 24), "Acosh": (np.arccosh, 24), "Atanh": (np.arctanh, 32), "Erf": (erf, 8),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 8), "Softplus": (softplus, 16), "Softsign": (lambda x: x / (1 + np.abs(x)), 4),
    "Elu": (lambda x: elu(x, 1), 8), "Selu": (lambda x: elu(x, SELU[0]) * SELU[1], 8),
    "Celu": (lambda x: np.maximum(x, 0) + np.minimum(np.expm1(x), 0), 8), "Mish": (lambda x: x * np.tanh(softplus(x)), 64),
    "Relu": (lambda x: np.maximum(x, 0), 0), "HardSwish": (lambda x: x * np.clip(x * np.float32(1 / 6) + 0.5, 0, 1), 16),
    "IsNaN": (np.isnan, 0), "IsInf": (np.isinf, 0),
}  # fmt: skip
# Operators that are tested in f32 only, since in the other types their constants or intermediate values are rounded as well.
ONLY_F32 = {"Celu", "Mish", "HardSwish", "Selu", "Softplus", "Softsign", "Erf"}
BINARY = {
    "Add": (np.add, 1), "Sub": (np.subtract, 1), "Mul": (np.multiply, 1), "Div": (np.divide, 1), "Min": (np.minimum, 0),
    "Max": (np.maximum, 0), "Equal": (np.equal, 0), "Less": (np.less, 0), "LessOrEqual": (np.less_equal, 0), "Greater": (np.greater, 0),
    "GreaterOrEqual": (np.greater_equal, 0), "Pow": (np.power, 8),
}  # fmt: skip
OF_INTEGERS = {
    "Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "Div": truncated, "Min": min, "Max": max,
    "Mod": modulo, "BitwiseAnd": lambda a, b: a & b, "BitwiseOr": lambda a, b: a | b, "BitwiseXor": lambda a, b: a ^ b,
}  # fmt: skip
ONE_INTEGER = {"Abs": abs, "Neg": lambda a: -a, "Sign": lambda a: (a > 0) - (a < 0), "BitwiseNot": lambda a: ~a}


# Models that compute the operators, and the comparison of their results with the references.
class Model:
    """A model of many nodes that read the model's inputs. Each node has an output of its own."""

    def __init__(self, name, **arrays):
        self.name, self.arrays, self.nodes, self.made, self.checks = name, arrays, [], [], []

    def constant(self, array):
        self.made.append(numpy_helper.from_array(array, f"c{len(self.made)}"))
        return self.made[-1].name

    def add(self, op, inputs, expected, ulps=0, **attributes):
        if random.random() >= cases.share():
            return
        names = [f"y{len(self.checks) + i}" for i in range(len(expected))]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        self.checks += [(f"{op} {attributes or ''} {' '.join(inputs)}", name, array, ulps) for name, array in zip(names, expected)]

    def write(self, folder):
        kind = lambda array: helper.np_dtype_to_tensor_dtype(array.dtype)
        inputs = [helper.make_tensor_value_info(n, kind(a), a.shape) for n, a in self.arrays.items()]
        outputs = [helper.make_tensor_value_info(n, kind(a), a.shape) for _, n, a, _ in self.checks]
        graph = helper.make_graph(self.nodes, self.name, inputs, outputs, self.made)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        cases.write(cases.Case(self.name, "node", model, list(self.arrays.values()), [], 0, 0), folder)


def apart(got, expected, ulps, arrays):
    """Returns "", or a message about the elements that differ from the expected ones by more than `ulps` units in the last place, with the
    elements of the inputs at these places."""
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"is {got.dtype}{list(got.shape)}, expected {expected.dtype}{list(expected.shape)}"
    if is_float(expected.dtype.type):
        info = ml_dtypes.finfo(expected.dtype)
        g, e = got.astype(np.longdouble), expected.astype(np.longdouble)
        step = np.maximum(np.abs(e) * float(info.eps), float(info.smallest_subnormal))
        wrong = ~((g == e) | (np.isnan(g) & np.isnan(e)) | (np.isfinite(e) & (np.abs(g - e) <= max(ulps, 0.5 if ulps else 0) * step)))
        # If the allowed error reaches the limit of the type, infinity is allowed as well.
        wrong &= ~(np.isinf(g) & np.isfinite(e) & (np.abs(e) + ulps * step >= float(info.max)))
    else:
        wrong = got != expected
    if not wrong.any():
        return ""
    at = np.argwhere(wrong)[:4]
    of = lambda a, i: a[tuple(i)] if a.shape == got.shape else "-"
    return f"{int(wrong.sum())} of {wrong.size}: " + "; ".join(
        f"({', '.join(str(of(a, i)) for a in arrays)}) is {got[tuple(i)]}, expected {expected[tuple(i)]}" for i in at)


def models():
    for dtype in FLOATS:
        x = floats(dtype)
        model = Model(f"unary_{name_of(dtype)}", x=x)
        for op, (function, ulps) in UNARY.items():
            if dtype == np.float32 or op not in ONLY_F32:
                model.add(op, ["x"], [wide(function)(x)], ulps)
        yield model
        a, b = pairs(x, x)
        model = Model(f"binary_{name_of(dtype)}", a=a, b=b)
        for op, (function, ulps) in BINARY.items():
            model.add(op, ["a", "b"], [wide(function)(a, b)], ulps)
        model.add("Mod", ["a", "b"], [wide(np.fmod)(a, b)], 0, fmod=1)
        yield model
    for dtype in INTEGERS:
        x = integers(dtype)
        a, b = pairs(x, x)
        signed = np.iinfo(dtype).min < 0
        model = Model(f"integers_{name_of(dtype)}", x=x, a=a, b=b)
        for op, function in ONE_INTEGER.items():
            if signed or op != "Neg":
                model.add(op, ["x"], [exactly(function, dtype)(x)])
        for op, function in OF_INTEGERS.items():
            model.add(op, ["a", "b"], [exactly(function, dtype)(a, b)])
        model.add("Mod", ["a", "b"], [exactly(remainder, dtype)(a, b)], fmod=1)
        for op in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"):
            model.add(op, ["a", "b"], [BINARY[op][0](a, b)])
        if not signed:
            bits = np.iinfo(dtype).bits
            model.add("BitShift", ["a", "b"], [exactly(lambda v, n: v << n if n < bits else 0, dtype)(a, b)], direction="LEFT")
            model.add("BitShift", ["a", "b"], [exactly(lambda v, n: v >> n if n < bits else 0, dtype)(a, b)], direction="RIGHT")
        model.add("Pow", ["a", "b"], [exactly(power, dtype)(a, b)])
        yield model
        model = Model(f"constants_{name_of(dtype)}", x=x)
        info = np.iinfo(dtype)
        for number in sorted({info.min, info.max - 1, -1, (1 << 53) + 1, 6364136223846793005}):
            if not info.min <= number <= info.max:
                continue
            c = np.array(number, dtype)
            for op, function in OF_INTEGERS.items():
                model.add(op, ["x", model.constant(c)], [exactly(function, dtype)(x, np.full_like(x, c))])
            model.add("Equal", ["x", model.constant(c)], [x == c])
        model.add("Equal", ["x", model.constant(x[::-1].copy())], [x == x[::-1]])
        yield model
        # Integer sums and products wrap around, so simplifications such as x + 1 > x to true would be wrong.
        model = Model(f"wraps_{name_of(dtype)}", x=x)
        one, two = model.constant(np.array(1, dtype)), model.constant(np.array(2, dtype))
        more, twice = exactly(lambda v: v + 1, dtype)(x), exactly(lambda v: 2 * v, dtype)(x)
        model.nodes += [helper.make_node("Add", ["x", one], ["more"]), helper.make_node("Mul", ["x", two], ["twice"])]
        model.add("Greater", ["more", "x"], [more > x])
        model.add("Div", ["twice", two], [exactly(truncated, dtype)(twice, np.full_like(x, 2))])
        model.nodes += [helper.make_node("Abs", ["x"], ["size"])]
        model.add("Less", ["size", model.constant(np.array(0, dtype))], [exactly(abs, dtype)(x) < 0])
        model.add("Cast", ["twice"], [converted(twice, np.int64)], to=onnx.TensorProto.INT64)
        yield model
    for dtype in [*FLOATS, *INTEGERS, np.bool_]:
        x = values_of(dtype)
        model = Model(f"cast_{name_of(dtype)}", x=x)
        for to in [*FLOATS, *INTEGERS, np.bool_]:
            if to != dtype:
                model.add("Cast", ["x"], [converted(x, to)], 1 if is_float(to) else 0, to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))
        yield model
    yield from powers()
    yield from positions()


def powers():
    """Powers whose base and exponent have different types: the result is rounded once, to the base's type."""
    for base, exponent in ((np.int32, np.float32), (np.int64, np.float64), (np.int32, np.int64), (np.float32, np.int64), (np.float32, np.int32),
                           (np.float64, np.int64), (np.float32, np.float64), (np.float16, np.float32), (np.int64, np.int32)):  # fmt: skip
        x = np.array([0, 1, 2, 3, 4, 7, 9, 13, 16, 25, 100, -1, -2, -3], np.float64).astype(base)
        if is_float(exponent):
            y = np.array([0, 0.5, 1, 1.5, 2, 3, 0.25], exponent)
        else:
            y = np.array([0, 1, 2, 3, 8, 17, (1 << 24) + 1, (1 << 31) - 1], exponent)
            y = y if is_float(base) or exponent == np.int64 else y[:6]
        if not is_float(base) and is_float(exponent):
            x = np.abs(x)
        a, b = pairs(x, y)
        if not is_float(base) and not is_float(exponent):
            expected = exactly(power, base)(a, b)
        else:
            expected = converted(np.power(a.astype(np.longdouble), b.astype(np.longdouble)), base)
            if not is_float(base):
                expected = np.array([min(max(int(v), np.iinfo(base).min), np.iinfo(base).max)
                                     for v in np.power(a.astype(np.float64), b.astype(np.float64))], base)  # fmt: skip
        model = Model(f"pow_{name_of(base)}_{name_of(exponent)}", a=a, b=b)
        model.add("Pow", ["a", "b"], [expected], 8)
        yield model


def positions():
    """Positions of extremes if there is NaN among the elements, compared with onnx's reference implementation, which follows NumPy."""
    from onnx.reference import ReferenceEvaluator

    for dtype, n in ((np.float32, 9), (np.float32, 70), (np.float64, 9), (np.float16, 9), (np.int32, 9), (np.int64, 70)):
        rows = [[random.choice([-2, -1, 0, 1, 2, 3]) for _ in range(n)] for _ in range(24)]
        x = np.array(rows, dtype)
        if is_float(dtype):
            for i, special in enumerate((math.nan, math.inf, -math.inf, math.nan)):
                for row in range(i, 20, 4):
                    x[row, random.sample(range(n), 1 + row % 3)] = special
            x[20], x[21], x[22, :-1], x[23, 1:] = math.nan, -math.inf, -math.inf, math.inf
        else:
            x[20], x[21] = np.iinfo(dtype).min, np.iinfo(dtype).max
        model = Model(f"positions_{name_of(dtype)}_{n}", x=x)
        todo = [("ArgMax", 1, dict(axis=1, select_last_index=last)) for last in (0, 1)]
        todo += [("ArgMin", 1, dict(axis=1, select_last_index=last)) for last in (0, 1)]
        todo += [("Hardmax", 1, {})] if is_float(dtype) else []
        todo += [("TopK", 2, dict(largest=largest)) for largest in (1, 0)]
        for op, outputs, attributes in todo:
            inputs = ["x"] + ([model.constant(np.array([5], np.int64))] if op == "TopK" else [])
            node = helper.make_node(op, inputs, [f"r{i}" for i in range(outputs)], **attributes)
            expected = reference(node, {"x": x} | {t.name: numpy_helper.to_array(t) for t in model.made}, ReferenceEvaluator)
            model.add(op, inputs, expected, **attributes)
        yield model
    for dtype in (np.float32, np.float64, np.int8):
        x = np.array([random.choice([-2, -1, 0, 1, 2]) for _ in range(2 * 9 * 8)], dtype).reshape(1, 2, 9, 8)
        if is_float(dtype):
            for special in (math.nan, math.nan, math.nan, -math.inf, math.inf):
                x.reshape(-1)[random.sample(range(x.size), 12)] = special
            x[0, 1, :3] = -math.inf
        else:
            x[0, 1, :3] = -128
        model = Model(f"pool_{name_of(dtype)}", x=x)
        for attributes in (dict(kernel_shape=[2, 2], strides=[2, 2]), dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
                           dict(kernel_shape=[2, 3], pads=[1, 2, 0, 1], dilations=[2, 1]), dict(kernel_shape=[2, 2], strides=[2, 2], storage_order=1)):  # fmt: skip
            node = helper.make_node("MaxPool", ["x"], ["r0", "r1"], **attributes)
            model.add("MaxPool", ["x"], reference(node, {"x": x}, ReferenceEvaluator), **attributes)
        yield model


def reference(node, arrays, evaluator):
    kind = lambda array: helper.np_dtype_to_tensor_dtype(array.dtype)
    inputs = [helper.make_tensor_value_info(name, kind(array), array.shape) for name, array in arrays.items()]
    outputs = [helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in node.output]
    model = helper.make_model(helper.make_graph([node], "r", inputs, outputs), opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return evaluator(model).run(None, arrays)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-k", default="", help="only models whose name matches")
    options = parser.parse_args()
    chosen = [model for model in models() if model.checks and re.search(options.k, model.name)]
    tool = pathlib.Path(os.environ.get("WARPLOOM_BIN_DIR", "build/release/bin")) / "run_onnx"
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for model in chosen:
            model.write(folder / model.name)
        (folder / "cases.txt").write_text("".join(model.name + "\n" for model in chosen))
        done = subprocess.run([tool, "--jobs", str(len(os.sched_getaffinity(0))), folder], stdout=subprocess.PIPE, text=True, check=True)
        states = {line.split("\t")[0]: line.split("\t")[1:] for line in done.stdout.splitlines()}
        for model in chosen:
            if states[model.name][0] != "ok":
                print(f"{model.name}: {' '.join(states[model.name])[:500]}")
                wrong += 1
                continue
            files = dict(line.split("\t") for line in (folder / model.name / "outputs.txt").read_text().splitlines())
            for what, name, expected, ulps in model.checks:
                got = backend_test.read_output(folder / model.name / files[name])
                inputs = [model.arrays[i] for i in what.split()[-2:] if i in model.arrays]
                message = apart(got, np.asarray(expected), ulps, inputs)
                if message:
                    print(f"{model.name}: {what}: {message}")
                    wrong += 1
    checks = sum(len(model.checks) for model in chosen)
    print(f"{checks - wrong} of {checks} results of {len(chosen)} models are right")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
