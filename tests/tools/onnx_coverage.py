#!/usr/bin/env python3
"""What the importer knows of ONNX, against the installed `onnx` package.

  onnx_coverage.py table          ops and versions of onnx.defs that the table lacks, most tested first
  onnx_coverage.py oracle [PART]  the package's node tests (those whose name contains PART) through eval_onnx: imported,
                                  computed by the oracle on the test's inputs, compared with the test's outputs

An input whose values decide shapes must be a constant for Warploom, whereas a node test passes every input when it runs:
a test that is refused for that is tried again with its small integer inputs as initializers, and then with all of them.
"""

import collections
import os
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import helper, numpy_helper

warnings.filterwarnings("ignore")
SOURCE = os.environ.get("WARPLOOM_SOURCE_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
TOOL = os.path.join(os.environ.get("WARPLOOM_BIN_DIR", os.path.join(SOURCE, "build/release/bin")), "eval_onnx")

# Classes of the issue that stay outside; each a reason and a test.
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
KNOWN_TYPES = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16, 17, 19}


def excluded(model):
    """Why a model is out of scope, or None."""
    def tensor_type(value):
        kind = value.type.WhichOneof("value")
        if kind == "sequence_type" or kind == "map_type":
            return "sequences"
        if kind == "optional_type":
            return "optionals"
        if kind != "tensor_type":
            return None
        if value.type.tensor_type.elem_type == 8:
            return "strings"
        if value.type.tensor_type.elem_type not in KNOWN_TYPES:
            return "element type " + onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type)
        return None

    for value in list(model.graph.input) + list(model.graph.output):
        reason = tensor_type(value)
        if reason:
            return reason
    for node in walk(model.graph):
        if node.op_type.startswith("Sequence") or node.op_type in ("SplitToSequence", "ConcatFromSequence"):
            return "sequences"
        if node.op_type.startswith("Optional"):
            return "optionals"
        if node.op_type.startswith("String") or node.op_type in ("TfIdfVectorizer", "RegexFullMatch"):
            return "strings"
        if node.op_type in RANDOM:
            return "random generators"
        if node.op_type == "ImageDecoder":
            return "decoders of image files"
        if node.domain == "ai.onnx.preview.training" or node.domain == "ai.onnx.preview":
            return "training ops"
        if node.domain == "ai.onnx.ml":
            return "domain ai.onnx.ml"
        if node.op_type == "Cast":
            for a in node.attribute:
                if a.name == "to" and a.i not in KNOWN_TYPES:
                    return "element type " + onnx.TensorProto.DataType.Name(a.i)
    return None


def drops(model, inputs):
    """Whether a Dropout is trained with a ratio other than 0."""
    given = dict(zip([i.name for i in model.graph.input], inputs))
    for node in model.graph.node:
        if node.op_type == "Dropout" and len(node.input) > 2 and given.get(node.input[2]) is not None:
            ratio = given.get(node.input[1], 0.5) if node.input[1] else 0.5
            return bool(given[node.input[2]]) and float(ratio) != 0
    return False


def arrays(values):
    """A data set's values; some are protobuf messages."""
    return [numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v if v is None else np.asarray(v)
            for v in values]


def walk(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from walk(attribute.g)


def node_cases():
    from onnx.backend.test.loader import load_model_tests
    return load_model_tests(kind="node")


def rows():
    text = open(os.path.join(SOURCE, "compiler/import/table.cpp")).read()
    found = {}
    for op, since in re.findall(r'^ *\{"(\w+)", (\d+),', text, re.M):
        found[op] = min(int(since), found.get(op, 99))
    return found


def table():
    tested = collections.Counter()
    for case in node_cases():
        for node in walk(case.model.graph):
            tested[node.op_type] += 1
    known = rows()
    versions = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and not schema.deprecated:
            versions[schema.name].append(schema)
    lines = []
    for op, schemas in versions.items():
        least = max([s.since_version for s in schemas if s.since_version <= 9] or [min(s.since_version for s in schemas)])
        newest = max(schemas, key=lambda s: s.since_version)
        body = "function" if newest.has_function or newest.has_context_dependent_function else ""
        if op not in known:
            lines.append((-tested[op], op, f"missing; {tested[op]} in node tests {body}"))
        elif known[op] > least:
            lines.append((-tested[op], op, f"known since {known[op]}, exists since {least}"))
    for _, op, text in sorted(lines):
        print(f"{op}: {text}")


def frozen(case, inputs, which):
    """The model with some inputs as initializers."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    keep = []
    for value, array in zip(case.model.graph.input, inputs):
        if array is not None and which(array):
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), value.name))
        else:
            keep.append(value)
    del model.graph.input[:]
    model.graph.input.extend(keep)
    return model


LEVELS = [
    lambda array: False,
    lambda array: array.dtype.kind in "iub" and array.ndim <= 1 or array.size == 1,
    lambda array: True,
]


def write_case(folder, model, given):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "model.onnx"), "wb") as out:
        out.write(model.SerializeToString())
    with open(os.path.join(folder, "names"), "w") as names:
        for i, (name, array) in enumerate(given):
            names.write(name + "\n")
            np.ascontiguousarray(array).tofile(os.path.join(folder, f"{i}.bin"))


def compare(case, folder, report, expected):
    outputs = report.split("\t")[2:]
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs, expected {len(expected)}"
    names = {"f64": "float64", "f32": "float32", "f16": "float16", "i64": "int64", "i32": "int32", "i16": "int16",
             "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "b1": "bool",
             "bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
    for i, (text, want) in enumerate(zip(outputs, expected)):
        dtype, shape = text.split(":")
        shape = tuple(int(s) for s in shape.split(",") if s)
        if names[dtype] != str(want.dtype) or shape != want.shape:
            return f"output {i} is {dtype}{list(shape)}, expected {want.dtype}{list(want.shape)}"
        got, bound = np.fromfile(os.path.join(folder, f"out.{i}.bin"), dtype=np.float64).reshape((2, *shape))
        want = want.astype(np.float64)
        # Roundings between ops, of bfloat16 say, are not in the double-precision values but in their bounds.
        with np.errstate(all="ignore"):
            got = np.where(np.isfinite(bound) & (np.abs(got - want) <= bound), want, got)
        try:
            np.testing.assert_allclose(got, want, rtol=case.rtol, atol=max(case.atol, 1e-7))
        except AssertionError as error:
            return f"output {i} differs: " + " ".join(str(error).split())[:300]
    return None


def oracle(part):
    jobs, outside, cases = [], collections.Counter(), 0
    for case in node_cases():
        if part not in case.name:
            continue
        cases += 1
        reason = excluded(case.model)
        if not reason:
            case.data_sets[0] = tuple(arrays(part) for part in case.data_sets[0])
            if any(a.dtype.kind in "OUS" for a in case.data_sets[0][0] if a is not None):
                reason = "strings"
            if drops(case.model, case.data_sets[0][0]):
                reason = "random generators"
        if reason:
            outside[reason] += 1
            continue
        jobs.append(case)
    passed, failures, levels = 0, [], collections.Counter()
    with tempfile.TemporaryDirectory() as base:
        for level, freeze in enumerate(LEVELS):
            again = []
            for case in jobs:
                inputs, _ = case.data_sets[0]
                model = frozen(case, inputs, freeze)
                given = [(v.name, np.asarray(a)) for v, a in zip(case.model.graph.input, inputs)
                         if a is not None and not freeze(np.asarray(a))]
                write_case(os.path.join(base, case.name), model, given)
            for begin in range(0, len(jobs), 50):
                batch = jobs[begin:begin + 50]
                run = subprocess.run([TOOL, "--given", *[os.path.join(base, c.name) for c in batch]],
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                reports = {os.path.basename(line.split("\t")[0]): line for line in run.stdout.splitlines()
                           if line.count("\t") >= 1}
                for case in batch:
                    report = reports.get(case.name)
                    if report is None:
                        failures.append((case.name, f"crashed ({run.returncode}): {run.stdout[-200:]}"))
                        continue
                    status = report.split("\t")[1]
                    if status != "ok":
                        if "constant" in status and level + 1 < len(LEVELS):
                            again.append(case)
                        else:
                            failures.append((case.name, status))
                        continue
                    try:
                        complaint = compare(case, os.path.join(base, case.name), report, case.data_sets[0][1])
                    except Exception as error:
                        complaint = f"{type(error).__name__}: {error}"
                    if complaint:
                        failures.append((case.name, complaint))
                    else:
                        passed += 1
                        levels[level] += 1
            jobs = again
    for name, why in sorted(failures):
        print(f"FAIL {name}: {why}")
    for reason, count in outside.most_common():
        print(f"out of scope: {reason}: {count}")
    scope = cases - sum(outside.values())
    print(f"passed {passed} / in scope {scope} / total {cases}  ({100 * passed / max(scope, 1):.1f} %); "
          f"as given {levels[0]}, with small inputs constant {levels[1]}, with all {levels[2]}")
    return 0 if passed == scope else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["table"]:
        table()
    elif sys.argv[1:2] == ["oracle"]:
        sys.exit(oracle(sys.argv[2] if len(sys.argv) > 2 else ""))
    else:
        sys.exit(__doc__)
