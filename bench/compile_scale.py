#!/usr/bin/env python3
"""How import, canonicalisation and partition grow with the graph.

Writes bench/results/compile-scale-MACHINE-TIME.json.

usage: compile_scale.py [--tool build/release/bin/compile_scale] [--sizes 1000,10000,100000] [--rules]
                        [--models FILE...]

Every mix is a graph of about the given number of ONNX nodes: transformer blocks, residual convolutions, elementwise
chains, one value that every node reads, dense concatenations, blocks of different shapes. The models of tests/data and
those given come first. Each program has one thread and never waits, so its CPU time is the time that it takes on an
idle machine. `slope` is the exponent p of time ~ nodes^p between the two largest sizes: 1 is linear, and n log n is
slightly more.
"""

import argparse
import datetime
import json
import math
import pathlib
import platform
import re
import subprocess
import tempfile

from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parents[1]


class Maker:
    def __init__(self):
        self.nodes, self.inputs, self.constants, self.count = [], [], [], 0

    def input(self, *shape):
        self.count += 1
        name = f"i{self.count}"
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def op(self, kind, *operands, **attributes):
        self.count += 1
        name = f"v{self.count}"
        self.nodes.append(helper.make_node(kind, list(operands), [name], **attributes))
        return name

    def constant(self, dtype, shape, values):
        self.count += 1
        name = f"c{self.count}"
        self.constants.append(helper.make_tensor(name, dtype, shape, values))
        return name

    def scalar(self, value):
        return self.constant(TensorProto.FLOAT, [], [value])

    def shape(self, *shape):
        return self.constant(TensorProto.INT64, [len(shape)], shape)

    def bytes(self, *outputs):
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "scale", self.inputs, infos, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()


def transformer(nodes, tokens=128, heads=4, size=32):
    m = Maker()
    width = heads * size
    x, mask = m.input(tokens, width), m.input(1, 1, tokens)
    half, one, root, scale = (m.scalar(v) for v in (0.5, 1.0, math.sqrt(2), math.sqrt(size)))
    split, joined = m.shape(tokens, heads, size), m.shape(tokens, width)

    def linear(value, rows, columns):
        return m.op("Add", m.op("MatMul", value, m.input(rows, columns)), m.input(columns))

    def norm(value):
        return m.op("LayerNormalization", value, m.input(width), m.input(width), axis=-1)

    while len(m.nodes) < nodes:
        q, k, v = (
            m.op("Transpose", m.op("Reshape", linear(x, width, width), split), perm=perm)
            for perm in ([1, 0, 2], [1, 2, 0], [1, 0, 2])
        )
        scores = m.op("Add", m.op("Div", m.op("MatMul", q, k), scale), mask)
        context = m.op("Transpose", m.op("MatMul", m.op("Softmax", scores, axis=-1), v), perm=[1, 0, 2])
        x = norm(m.op("Add", linear(m.op("Reshape", context, joined), width, width), x))
        up = linear(x, width, 4 * width)
        gelu = m.op("Mul", m.op("Mul", up, m.op("Add", m.op("Erf", m.op("Div", up, root)), one)), half)
        x = norm(m.op("Add", linear(gelu, 4 * width, width), x))
    return m.bytes(x)


def residual_convolutions(nodes, channels=8, side=14):
    m = Maker()
    x = m.input(1, channels, side, side)
    while len(m.nodes) < nodes:
        y = x
        for last in (False, True):
            y = m.op("Conv", y, m.input(channels, channels, 3, 3), pads=[1, 1, 1, 1])
            y = m.op("BatchNormalization", y, *(m.input(channels) for _ in range(4)))
            y = m.op("Add", y, x) if last else y
            y = m.op("Relu", y)
        x = y
    return m.bytes(x)


def elementwise_chain(nodes):
    m = Maker()
    x, y = m.input(64, 128), m.input(64, 128)
    for i in range(nodes):
        x = m.op(("Tanh", "Neg", "Abs", "Relu")[i % 4], x) if i % 3 else m.op("Add", x, y)
    return m.bytes(x)


def wide_fan_out(nodes):
    """Returns a graph in which one expensive value is an operand of every product, and all products are summed."""
    m = Maker()
    x = m.op("Exp", m.input(64, 128))
    level = []
    for i in range(nodes // 3):
        level.append(m.op("Tanh", m.op("Mul", x, m.scalar(i + 0.5))))
    while len(level) > 1:
        level = [m.op("Add", *level[i : i + 2]) if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)]
    return m.bytes(level[0])


def dense_concatenation(nodes, block=24, growth=4):
    """Blocks like DenseNet's, in which every layer reads the concatenation of all layers before it."""
    m = Maker()
    x = m.input(32, growth)
    while len(m.nodes) < nodes:
        values = [x]
        for i in range(block):
            joined = m.op("Concat", *values, axis=1) if len(values) > 1 else values[0]
            product = m.op("MatMul", joined, m.input(growth * len(values), growth))
            values.append(m.op("Relu", product))
        x = m.op("Tanh", values[-1])
    return m.bytes(x)


def different_shapes(nodes):
    """Blocks of different shapes, so that nothing cached for one applies to the next."""
    m = Maker()
    outputs = []
    i = 0
    while len(m.nodes) < nodes:
        i += 1
        x = m.input(16, 16 + i)
        y = m.op("Mul", m.op("Tanh", m.op("MatMul", x, m.input(16 + i, 24 + i))), m.scalar(0.5))
        y = m.op("Softmax", m.op("Add", y, m.input(24 + i)), axis=-1)
        outputs.append(m.op("ReduceSum", y, keepdims=0))
    return m.bytes(*outputs)


MIXES = (
    transformer,
    residual_convolutions,
    elementwise_chain,
    wide_fan_out,
    dense_concatenation,
    different_shapes,
)


def measure(tool, path, rules):
    command = [str(tool), *(["--rules"] if rules else []), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {"error": (done.stderr.strip() or f"exit {done.returncode}")[:300]}
    result = json.loads(done.stdout)
    del result["file"]
    return result


def seconds(result, clock="cpu_s"):
    return sum(result["stages"][stage][clock] for stage in ("import", "fold", "canonicalise", "cover_greedy", "cover_stitched"))


def show(name, result):
    if "error" in result:
        print(f"{name:34} {result['error']}")
        return
    stages = result["stages"]
    times = "  ".join(f"{stage} {entry['cpu_s']:.3f}" for stage, entry in stages.items())
    peak = max(entry["peak_mb"] for entry in stages.values())
    print(
        f"{name:34} {result['nodes']:7} nodes {result['groups']:6} groups {result['keys']:6} keys  "
        f"import+canonicalise+cover {seconds(result):7.3f} s (wall {seconds(result, 's'):7.3f})  peak {peak:6.0f} MB  ({times})",
        flush=True,
    )


def slopes(runs):
    """Returns the exponents of growth between the two largest sizes: of the total time, and of each stage that takes long enough to
    measure."""
    done = [run for run in runs if "error" not in run]
    if len(done) < 2:
        return {}
    small, large = done[-2], done[-1]
    ratio = math.log(large["nodes"] / small["nodes"])
    found = {"all": math.log(seconds(large) / seconds(small)) / ratio}
    for part in ("stages", "rules"):
        for name, entry in large.get(part, {}).items():
            if entry["cpu_s"] > 0.02 and small[part][name]["cpu_s"] > 0:
                found[name] = math.log(entry["cpu_s"] / small[part][name]["cpu_s"]) / ratio
    return {name: round(p, 2) for name, p in found.items()}


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text() if pathlib.Path("/proc/cpuinfo").exists() else ""
    found = re.search(r"model name\s*:\s*(.*)", text)
    return found.group(1).strip() if found else platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build/release/bin/compile_scale")
    parser.add_argument("--sizes", default="1000,5000,10000,100000")
    parser.add_argument("--mixes", default=",".join(mix.__name__ for mix in MIXES))
    parser.add_argument("--rules", action="store_true", help="time each rule alone, too")
    parser.add_argument("--models", type=pathlib.Path, nargs="*", default=[])
    parser.add_argument("--out", type=pathlib.Path, help="the file to write; default bench/results/compile-scale-...; - for none")
    options = parser.parse_args()
    report = {"machine": machine(), "time": datetime.datetime.now().isoformat(timespec="seconds"), "models": {}, "mixes": {}}
    for path in [*sorted((ROOT / "tests/data").glob("*.onnx")), *options.models]:
        report["models"][path.stem] = measure(options.tool, path, options.rules)
        show(path.stem, report["models"][path.stem])
    with tempfile.TemporaryDirectory() as folder:
        for mix in MIXES:
            if mix.__name__ not in options.mixes.split(","):
                continue
            runs = []
            for size in map(int, options.sizes.split(",")):
                path = pathlib.Path(folder) / "graph.onnx"
                path.write_bytes(mix(size))
                runs.append({"size": size, **measure(options.tool, path, options.rules)})
                show(f"{mix.__name__} {size}", runs[-1])
            report["mixes"][mix.__name__] = {"runs": runs, "slope": slopes(runs)}
            print(f"{mix.__name__:34} slope {report['mixes'][mix.__name__]['slope']}")
    if str(options.out) == "-":
        return
    name = re.sub(r"[^a-z0-9]+", "-", report["machine"].lower()).strip("-")[:24].strip("-")
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M")
    out = options.out or ROOT / f"bench/results/compile-scale-{name}-{stamp}.json"
    out.write_text(json.dumps(report, indent=1) + "\n")
    print(out)


if __name__ == "__main__":
    main()
