#!/usr/bin/env python3
"""The onnx package's own backend tests with Warploom as the backend: every case is imported, covered, lowered with
the default schedule, compiled and run. Its outputs must be the expected ones, within the package's tolerances.

    backend_test.py [-k REGEX] [--all] [--cover single] [--keep DIR] [--objects DIR] [--floor N] [--report FILE]

Short runs try a part of the cases (cases.drawn). Prints "passed / in scope / total". Fails if a smaller share than FLOOR of the cases in
scope passes, or if a case crashes the tool. excluded.txt lists cases out of scope, with the reasons.

The package's expected results have errors too: those of f16 are rounded after every operation, and some are small numbers instead of 0. If a
result is outside of the tolerances, the case still passes if both the package's results and Warploom's are within the oracle's bounds, which
follow from the roundings of the types. Such cases are counted separately."""
import argparse
import collections
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import types

try:
    import ml_dtypes
    import numpy as np
    import onnx

    import cases

    sys.path.insert(0, str(pathlib.Path(__file__).parent / "../tools"))
    import onnx_coverage
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

HERE = pathlib.Path(__file__).parent
FLOOR = 0.985  # smallest share of the cases in scope that must pass


def read_output(path):
    """Reads an array that run_onnx wrote. A .npy file does not distinguish the float types of ml_dtypes, so they are told apart here."""
    data = path.read_bytes()
    if b"'|f1'" in data[:128]:  # ml_dtypes writes float8_e5m2 as '|f1', which NumPy cannot read, so it is read as bytes
        return np.load(io.BytesIO(data.replace(b"'|f1'", b"'|u1'", 1))).view(ml_dtypes.float8_e5m2)
    array = np.load(io.BytesIO(data))
    if array.dtype.kind == "V":
        array = array.view(ml_dtypes.bfloat16 if array.dtype.itemsize == 2 else ml_dtypes.float8_e4m3fn)
    return array


def difference(got, expected, rtol, atol):
    """Returns "" when `got` is as expected."""
    if got.dtype != expected.dtype:
        return f"is {got.dtype}, expected {expected.dtype}"
    if got.shape != expected.shape:
        return f"has shape {list(got.shape)}, expected {list(expected.shape)}"
    if got.dtype.kind in "iub":
        wrong = got != expected
    else:
        if got.dtype == ml_dtypes.bfloat16:
            rtol = max(rtol, 2**-6)  # the onnx package's own backend tests allow this relative error for bfloat16 as well
        got, expected = got.astype(np.float64), expected.astype(np.float64)
        with np.errstate(all="ignore"):
            wrong = ~((np.abs(got - expected) <= atol + rtol * np.abs(expected)) | (got == expected)
                      | (np.isnan(got) & np.isnan(expected)))
    if not wrong.any():
        return ""
    first = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
    at = lambda a: np.atleast_1d(a)[first]
    return f"{int(wrong.sum())} of {wrong.size} elements wrong; {list(first)} is {at(got)}, expected {at(expected)}"


def compare(case, folder):
    files = dict(line.split("\t") for line in (folder / "outputs.txt").read_text().splitlines())
    for value, expected in zip(case.model.graph.output, case.outputs):
        if expected is None:
            continue
        if value.name not in files:
            return f"wrong: no output {value.name}"
        got = read_output(folder / files[value.name])
        wrong = difference(got, expected, case.rtol, case.atol)
        if wrong:
            return f"wrong: output {value.name} {wrong}"
    return ""


def within_bounds(case, variant, folder):
    """Returns whether both the package's results and Warploom's are within the oracle's bounds. `variant`: number of the set of inputs that
    were constants."""
    arrays = onnx_coverage.given_arrays(case)
    known = [[], *cases.constant_sets(case, arrays)][variant]
    model = cases.with_constants(cases.fixed_shapes(case.model, arrays), arrays, known)
    base = folder / "oracle"
    onnx_coverage.write(base / case.name, model, {name: array for name, array in arrays.items() if name not in known})
    said = onnx_coverage.evaluate([case], base)[case.name]
    files = dict(line.split("\t") for line in (folder / case.name / "outputs.txt").read_text().splitlines())
    got = [None if want is None else read_output(folder / case.name / files[value.name])
           for value, want in zip(case.model.graph.output, case.outputs)]
    ours = types.SimpleNamespace(outputs=got, rtol=0, atol=0)
    return said.split("\t")[1] == "ok" and not any(onnx_coverage.compare(each, base / case.name, said) for each in (case, ours))


def run_tool(folder, options):
    tool = pathlib.Path(os.environ.get("WARPLOOM_BIN_DIR", "build/release/bin")) / "run_onnx"
    command = [tool, "--cover", options.cover, "--jobs", str(options.jobs)]
    if options.objects:
        options.objects.mkdir(parents=True, exist_ok=True)
        command += ["--objects", options.objects.resolve()]
    done = subprocess.run([*command, folder], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"run_onnx failed with status {done.returncode}")
    return [line.split("\t", 3) for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-k", default="", help="only cases whose name matches")
    parser.add_argument("--all", action="store_true", help="the slow cases too")
    parser.add_argument("--cover", default="greedy", choices=("greedy", "single"))
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--keep", type=pathlib.Path, help="leave the cases in this new folder")
    parser.add_argument("--objects", type=pathlib.Path, help="compiled kernels, kept for the next run")
    parser.add_argument("--report", type=pathlib.Path, help="file for every case's result")
    parser.add_argument("--floor", type=float, default=None)
    options = parser.parse_args()

    start = time.monotonic()
    rows = cases.read_excluded(HERE / "excluded.txt")
    every = [case for case in cases.load()
             if re.search(options.k, case.name) and (options.all or case.name not in cases.SLOW)]
    every = every if options.k or options.all else cases.drawn(every)
    for case in every:
        case.excluded = cases.why_excluded(case, rows)
    chosen = [case for case in every if not case.excluded]
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or pathlib.Path(scratch) / "cases"
        folder.mkdir(parents=True)
        for case in chosen:
            cases.write(case, folder / case.name)
        (folder / "cases.txt").write_text("".join(case.name + "\n" for case in chosen))
        written = time.monotonic()
        results = {name: (state, rest) for name, state, *rest in run_tool(folder, options)}
        ran = time.monotonic()
        failures, crashes, kernels, variants = {}, 0, 0, collections.Counter()
        for case in chosen:
            state, rest = results[case.name]
            if state == "ok":
                variant, launched = map(int, rest[0].split())
                message = compare(case, folder / case.name)
                kernels += launched
                if re.match("wrong: output .* elements wrong", message) and within_bounds(case, variant, folder):
                    message = ""
                    variants["within the bounds of rounding, outside of the package's tolerances"] += 1
                elif not message:
                    variants["at import" if launched == 0 else "some inputs known" if variant else "as it is"] += 1
            else:
                message = rest[0]
                crashes += state == "crashed"
            if message:
                failures[case.name] = message
    report(every, chosen, failures, crashes, variants, options)
    print(f"{kernels} launches; {written - start:.0f} s to write the cases, {ran - written:.0f} s to compile and run")
    share = 1 - len(failures) / max(1, len(chosen))
    floor = options.floor if options.floor is not None else 0 if options.k else cases.least(FLOOR)
    if crashes or share < floor:
        sys.exit(f"failed: {crashes} crashes, {share:.2%} of the cases in scope pass, {floor:.2%} must")


def report(every, chosen, failures, crashes, variants, options):
    lines = [f"{name}: {message}" for name, message in sorted(failures.items())]
    excluded = collections.Counter(case.excluded for case in every if case.excluded)
    summary = [f"excluded {count:4}  {reason}" for reason, count in excluded.most_common()]
    summary += [f"passed {count:4}  {what}" for what, count in variants.most_common()]
    kinds = collections.Counter(case.kind for case in chosen)
    passed = kinds - collections.Counter(case.kind for case in chosen if case.name in failures)
    summary += [f"{kind}: {passed[kind]} / {kinds[kind]}" for kind in kinds]
    total = len(chosen) - len(failures)
    summary.append(f"passed / in scope / total: {total} / {len(chosen)} / {len(every)} ({crashes} crashed)")
    print("\n".join(lines + summary))
    if options.report:
        options.report.write_text("\n".join(summary + lines) + "\n")


if __name__ == "__main__":
    main()
