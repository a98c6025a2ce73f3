#!/usr/bin/env python3
"""Writes docs/operators.md: every operator of ONNX, and what Warploom does with it.

    build/venv/bin/python tools/operators.py [--check]

The supported types are found by trial: the models of tests/unit/import/cases.cpp are imported with each element type that
the standard allows. Needs the program eval_onnx of the build. `--check`, which a test uses, compares instead of writing."""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/operators.md"
try:
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper

    sys.path.insert(0, str(ROOT / "tests/onnx_fuzz"))
    import mutate
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

TOOL = pathlib.Path(os.environ.get("WARPLOOM_BIN_DIR", ROOT / "build/release/bin")) / "eval_onnx"
NAMES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
         "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "b1": "bool"}
# Reason -> operators without a row in the import table. A new operator of the standard needs such a row, or an entry here.
WITHOUT = {
    "random numbers": "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
    "sequences": "ConcatFromSequence SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap SplitToSequence ReverseSequenceMap",
    "optional values": "Optional OptionalGetElement OptionalHasElement",
    "strings": "RegexFullMatch StringConcat StringNormalizer StringSplit",
    "files of images": "ImageDecoder",
    "no present exporter makes it; RoiAlign is taken": "MaxRoiPool",
    "results whose size depends on data": "NonZero Compress Unique NonMaxSuppression",
    "ended before opset 7": "Affine ATen Crop DynamicSlice GRUUnit GivenTensorFill ImageScaler ParametricSoftplus Scale ScaledTanh",
}
BODIES = {"If": "a condition that is known when the model is imported; else both branches are computed", "Loop": "counts and conditions that are known when the model is imported",
          "Scan": "unrolled"}
MISSING = re.compile(r'missing\((.*?)\);', re.S)


def eval_lines(*arguments):
    return subprocess.run([TOOL, *map(str, arguments)], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


def with_type(template, parameters, dtype):
    """Returns the template's model with another element type for all inputs of some type parameters; None if it has no such input."""
    model = onnx.ModelProto()
    model.CopyFrom(template.model)
    schema, node = mutate.schema_of(model), model.graph.node[0]
    names = {name for i, name in enumerate(node.input) if name and mutate.formal(schema, i).type_str in parameters}
    if not names:
        return None
    for value in model.graph.input:
        if value.name in names:
            value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    for weight in model.graph.initializer:
        if weight.name in names:
            with np.errstate(all="ignore"):
                weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight).astype(dtype), weight.name))
    for output in model.graph.output:
        output.ClearField("type")
    return model


def accepted_types(templates, folder):
    """Returns for each operator and type parameter the types with which any template can be imported, and all types that were tried."""
    tried = {}
    for path in templates:
        template = mutate.template(path)
        schema = mutate.schema_of(template.model)
        for constraint in schema.type_constraints if schema else ():
            for text in constraint.allowed_type_strs:
                # A type is tried first for this type parameter alone, and then at once for all type parameters that allow the type.
                together = {c.type_param_str for c in schema.type_constraints if text in c.allowed_type_strs}
                for parameters in ({constraint.type_param_str}, together):
                    if text not in mutate.TYPES or with_type(template, {constraint.type_param_str}, mutate.TYPES[text]) is None:
                        continue
                    file = folder / f"{len(tried)}.onnx"
                    file.write_bytes(with_type(template, parameters, mutate.TYPES[text]).SerializeToString())
                    tried[str(file)] = (schema.name, constraint.type_param_str, next(n for n, t in NAMES.items() if np.dtype(mutate.TYPES[text]).name == t))
    found, all_types = collections.defaultdict(set), collections.defaultdict(set)
    files = list(tried)
    for begin in range(0, len(files), 500):
        part = files[begin : begin + 500]
        for file, line in zip(part, eval_lines("--import", *part)):
            operator, parameter, dtype = tried[file]
            all_types[operator, parameter].add(dtype)
            if line == "ok":
                found[operator, parameter].add(dtype)
    return found, all_types


def refusals():
    """Returns what the import functions of each operator refuse: the texts of the calls of missing() in their sources."""
    bodies, calls = {}, {}
    for file in sorted((ROOT / "compiler/import/rows").glob("*.cpp")):
        head = []
        for line in file.read_text().splitlines():
            if line and not line[0].isspace() and not line.startswith(("}", "//", "#")):
                head, body = head + [line], []
                if line.endswith((";", ",")):
                    head = head if line.endswith(",") else []
                    continue
            elif line == "}" and head:
                name = re.search(r"(\w+)\(", head[0])
                if name:
                    bodies[file.stem, name[1]] = bodies.get((file.stem, name[1]), "") + "\n".join(body)
                head = []
            elif head:
                body.append(line)
    texts = {}
    for name, body in bodies.items():
        said = []
        for text in MISSING.findall(body):
            pieces = re.findall(r'"((?:[^"\\]|\\.)*)"|(?:^|,)\s*([\w.]+(?:\([^()]*\))*)', text)
            said.append("".join(p[0] if p[0] else "…" for p in pieces))
        texts[name] = said
        called = set(re.findall(r"\b(\w+)(?:<[^<>]*>)?\(", body))
        # Only calls of functions in the same file are followed: functions of other files are called only by rows of the import table.
        calls[name] = {(name[0], other) for other in called if (name[0], other) in bodies}
    found = collections.defaultdict(list)
    table = (ROOT / "compiler/import/rows/table.cpp").read_text()
    parts = re.split(r'^    \{(?="\w+", \d+,)', table, flags=re.M)[1:]
    for operator, text in ((re.match(r'"(\w+)"', part)[1], part) for part in parts):
        words = set(re.findall(r"\w+", text))
        todo, seen = sorted(key for key in bodies if key[1] in words and key[0] != "table"), set()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            found[operator] += [t for t in texts[name] if t not in found[operator]]
            todo += sorted(calls[name])
    return found


def backend_tests():
    """Returns the number of nodes of each operator in the node tests of the onnx package."""
    counts = collections.Counter()
    for file in (pathlib.Path(onnx.__file__).parent / "backend/test/case/node").glob("*.py"):
        counts.update(re.findall(r'make_node\(\s*(?:op_type=)?"(\w+)"', file.read_text()))
    return counts


def versions(rows, operator, domain):
    parts = [f"{since}–{until}" if until < NEWEST else f"{since}–" for op, since, until, of in rows if op == operator and of == domain]
    return ", ".join(parts)


NEWEST = 0


def types_text(operator, found, allowed):
    """Returns the accepted types of each type parameter, and in brackets the types that the standard allows but the importer refuses."""
    order = list(NAMES)
    parts = []
    for (name, parameter), types in sorted(allowed.items()):
        if name != operator:
            continue
        taken = sorted(found[name, parameter], key=order.index)
        refused = sorted(types - found[name, parameter], key=order.index)
        text = "all" if not refused and len(types) > 6 else " ".join(taken) or "none"
        parts.append(f"{parameter}: {text}" + (f" (not {' '.join(refused)})" if refused else ""))
    return "; ".join(parts)


def page():
    global NEWEST
    rows = []
    for line in eval_lines("--rows"):
        op, since, until, *domain = line.split()
        rows.append((op, int(since), int(until), domain[0] if domain else ""))
    NEWEST = max(r[2] for r in rows)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        (scratch / "cases").mkdir()
        lines = [line.split() for line in eval_lines("--cases", scratch / "cases")]
        peers = {mutate.template(path).node.op_type for path, peer in lines if peer == "1"}
        found, allowed = accepted_types([path for path, _ in lines], scratch)
    refused, tests = refusals(), backend_tests()
    out = [__doc__.split("\n")[0].split(": ", 1)[0].replace("Writes docs/operators.md", "# Operators of ONNX"), ""]
    out += [
        f"What Warploom takes of ONNX (`onnx` {onnx.__version__}, opsets to {NEWEST}). `tools/operators.py` writes this page, and a test compares it. Types: those of the",
        "standard's type parameters that are taken, tried one by one; types that Warploom stores are " + " ".join(NAMES) + ", and integers of",
        "four bits in weights. Every operator is held against the `onnx` package's reference by its backend tests (their number is here) and by generated",
        "models ([`tests/onnx_fuzz`](../tests/onnx_fuzz/fuzz_test.py)); *ort* where onnxruntime computes it too. What differs from them by rule is in",
        "[numerics](numerics.md) and [rules.txt](../tests/onnx_fuzz/rules.txt). What is refused is refused by name, with what to do, before anything is tuned.",
        "",
        "| operator | opsets | types | tested against | refused |",
        "|---|---|---|---|---|",
    ]
    domains = {"": sorted({r[0] for r in rows if not r[3]} | set(BODIES)), "com.microsoft": sorted({r[0] for r in rows if r[3] == "com.microsoft"})}
    escape = lambda text: text.replace("|", "\\|")  # noqa: E731
    for domain, operators in domains.items():
        for operator in operators:
            name = operator if not domain else f"{domain}.{operator}"
            against = ", ".join([f"onnx ({tests[operator]})"] * (not domain and tests[operator] > 0) + ["ort"] * (operator in peers)) or "by hand"
            limits = "; ".join(refused.get(operator, [])) if operator not in BODIES else f"takes {BODIES[operator]}"
            since = versions(rows, operator, domain) or "1–"
            out.append(f"| {name} | {since} | {types_text(operator, found, allowed) if not domain else ''} | {against} | {escape(limits)} |")
    known = {r[0] for r in rows if not r[3]} | set(BODIES)
    standard = {s.name: s for s in onnx.defs.get_all_schemas() if s.domain == ""}
    lacking = sorted(n for n, s in standard.items() if n not in known and not s.deprecated)
    reasons = {name: reason for reason, names in WITHOUT.items() for name in names.split()}
    unknown = [n for n in lacking if n not in reasons]
    if unknown:
        sys.exit(f"no row and no reason for {' '.join(unknown)}: add one to compiler/import/rows/table.cpp or to WITHOUT in {__file__}")
    out += ["", "## Not taken", "", "| operator | why |", "|---|---|"]
    out += [f"| {name} | {reasons[name]} |" for name in lacking]
    out += ["", "Other domains (`ai.onnx.ml`, `ai.onnx.preview`, training) are not taken, except for the functions that a model brings with it.", ""]
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text = page()
    if not options.check:
        PAGE.write_text(text)
    elif text != PAGE.read_text():
        old, new = PAGE.read_text().splitlines(), text.splitlines()
        for line in [f"- {l}" for l in old if l not in new] + [f"+ {l}" for l in new if l not in old]:
            print(line)
        sys.exit(f"{PAGE.relative_to(ROOT)} is out of date: build/venv/bin/python tools/operators.py writes it")


if __name__ == "__main__":
    main()
