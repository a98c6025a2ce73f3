#!/usr/bin/env python3
"""Compares the importer with the installed `onnx` package.

    onnx_coverage.py table          ops and versions of onnx.defs that the table lacks, most tested first
    onnx_coverage.py oracle [PART]  runs the package's backend tests (those whose name contains PART) through eval_onnx:
                                    imported, computed by the oracle on the test's inputs, compared with its outputs

Cases, exclusions and the choice of inputs that become constants are those of tests/onnx_backend, which compiles and runs
the same cases; here nothing is compiled. A case that fails is tried at last with all inputs as constants. Short runs try
some of the cases (cases.drawn).
"""

import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy as np
    import onnx
except ImportError as missing:
    print(f"skipped: {missing}; `tools/setup.sh python` makes the environment")
    sys.exit(77)

warnings.filterwarnings("ignore")
SOURCE = pathlib.Path(os.environ.get("WARPLOOM_SOURCE_DIR", pathlib.Path(__file__).parent / "../.."))
TOOL = pathlib.Path(os.environ.get("WARPLOOM_BIN_DIR", SOURCE / "build/release/bin")) / "eval_onnx"
sys.path.insert(0, str(SOURCE / "tests/onnx_backend"))
import cases  # noqa: E402

DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "i64": "int64", "i32": "int32", "i16": "int16",
          "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "b1": "bool",
          "bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}


def rows():
    text = open(SOURCE / "compiler/import/rows/table.cpp").read()
    found = {}
    for op, since in re.findall(r'^ *\{"(\w+)", (\d+),', text, re.M):
        found[op] = min(int(since), found.get(op, 99))
    return found


def table():
    tested = collections.Counter()
    for case in cases.load():
        for graph in cases.graphs_of(case.model):
            tested.update(node.op_type for node in graph.node)
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


def given_arrays(case):
    known = {w.name for w in case.model.graph.initializer}
    order = [value.name for value in case.model.graph.input if value.name not in known]
    if len(order) != len(case.inputs):
        order = [value.name for value in case.model.graph.input]
    return {n: v for n, v in zip(order, case.inputs) if isinstance(v, np.ndarray)}


def write(folder, model, arrays):
    """Writes the files that eval_onnx --given reads."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "names").write_text("".join(name + "\n" for name in arrays))
    for number, array in enumerate(arrays.values()):
        np.ascontiguousarray(array).tofile(folder / f"{number}.bin")


def compare(case, folder, report):
    outputs = report.split("\t")[2:]
    if len(outputs) != len(case.outputs):
        return f"{len(outputs)} outputs, expected {len(case.outputs)}"
    for i, (text, want) in enumerate(zip(outputs, case.outputs)):
        if want is None:
            continue
        dtype, shape = text.split(":")
        shape = tuple(int(s) for s in shape.split(",") if s)
        if DTYPES[dtype] != str(want.dtype) or shape != want.shape:
            return f"output {i} is {dtype}{list(shape)}, expected {want.dtype}{list(want.shape)}"
        got, bound = np.fromfile(folder / f"out.{i}.bin", dtype=np.float64).reshape((2, *shape))
        want = want.astype(np.float64)
        # The oracle computes in double precision, without the roundings between ops, such as those to bfloat16.
        # Its bounds allow for these roundings, so a value within its bound counts as equal.
        with np.errstate(all="ignore"):
            got = np.where(np.isfinite(bound) & (np.abs(got - want) <= bound), want, got)
        try:
            np.testing.assert_allclose(got, want, rtol=case.rtol, atol=max(case.atol, 1e-7))
        except AssertionError as error:
            return f"output {i} differs: " + " ".join(str(error).split())[:300]
    return ""


def evaluate(jobs, base):
    """Returns the line of eval_onnx's output for each folder."""
    reports = {}
    for begin in range(0, len(jobs), 50):
        run = subprocess.run([TOOL, "--given", *[base / case.name for case in jobs[begin:begin + 50]]],
                             stdout=subprocess.PIPE, text=True)
        for line in run.stdout.splitlines():
            reports[os.path.basename(line.split("\t")[0])] = line
        for case in jobs[begin:begin + 50]:
            reports.setdefault(case.name, f"{case.name}\tcrashed with status {run.returncode}")
    return reports


def oracle(part):
    excluded = cases.read_excluded(SOURCE / "tests/onnx_backend/excluded.txt")
    every = [case for case in cases.load() if part in case.name]
    every = every if part else cases.drawn(every)
    jobs, outside = [], collections.Counter()
    for case in every:
        case.excluded = cases.why_excluded(case, excluded)
        if case.excluded:
            outside[case.excluded] += 1
        else:
            jobs.append(case)
    scope, passed, failures, levels = len(jobs), 0, {}, collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        base = pathlib.Path(scratch)
        level = 0
        while jobs:
            todo = []
            for case in jobs:
                arrays = given_arrays(case)
                few = [[], *cases.constant_sets(case, arrays)]
                sets = [*few, list(arrays)] if list(arrays) not in few else few
                if level >= len(sets):
                    continue
                case.kind = "all constant" if level >= len(few) else "some constant" if level else "as given"
                model = cases.with_constants(cases.fixed_shapes(case.model, arrays), arrays, sets[level])
                write(base / case.name, model, {n: a for n, a in arrays.items() if n not in sets[level]})
                todo.append(case)
            reports, jobs = evaluate(todo, base), []
            for case in todo:
                status = reports[case.name].split("\t")[1]
                message = status if status != "ok" else compare(case, base / case.name, reports[case.name])
                if not message:
                    failures.pop(case.name, None)
                    passed += 1
                    levels[case.kind] += 1
                    continue
                failures.setdefault(case.name, message)
                jobs.append(case)
            level += 1
    for name, why in sorted(failures.items()):
        print(f"FAIL {name}: {why}")
    for reason, count in outside.most_common():
        print(f"out of scope: {reason}: {count}")
    print(", ".join(f"{count} {kind}" for kind, count in levels.items()))
    print(f"passed {passed} / in scope {scope} / total {len(every)}  ({100 * passed / max(scope, 1):.1f} %)")
    return 0 if passed >= cases.least(FLOOR) * scope else 1


FLOOR = 0.99

if __name__ == "__main__":
    if sys.argv[1:2] == ["table"]:
        table()
    elif sys.argv[1:2] in ([], ["oracle"]):
        sys.exit(oracle(sys.argv[2] if len(sys.argv) > 2 else ""))
    else:
        sys.exit(__doc__)
