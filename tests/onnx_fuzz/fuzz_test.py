#!/usr/bin/env python3
"""Random models of one node through the importer, the oracle and compiled kernels, compared with two peers: the reference implementation of
the onnx package and onnxruntime. A result is right if it agrees with one of them, or with a further way to compute it (exact.py).

    fuzz_test.py [--cases N] [--kernels N] [--seed S] [-k REGEX] [--keep DIR] [--report FILE]

`--kernels`: number of cases that also run through compiled kernels. rules.txt lists differences that are allowed, with reasons. Fails on every
other difference, and on a model that crashes a tool. A model that the importer refuses is counted and does not fail the test; docs/operators.md
lists what is refused."""
import argparse
import collections
import contextlib
import dataclasses
import functools
import multiprocessing
import multiprocessing.pool
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

try:
    import ml_dtypes
    import numpy as np
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401
    from onnx import helper
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "onnx_backend"))

import backend_test  # noqa: E402
import compare  # noqa: E402
import cases  # noqa: E402
import exact  # noqa: E402
import mutate  # noqa: E402
import peers  # noqa: E402
import values  # noqa: E402

BIN = pathlib.Path(os.environ.get("WARPLOOM_BIN_DIR", HERE / "../../build/release/bin"))
CHUNK = 100      # number of cases that one process makes and evaluates
SECONDS = 120  # time limit in seconds for CHUNK cases


def templates(folder):
    lines = subprocess.run([BIN / "eval_onnx", "--cases", folder], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return [line.split()[0] for line in lines]


def made(number, seed, paths, base):
    """Makes case `number`. Returns the name of the case's folder and what is known about the case; None if no peer computes it."""
    rng = np.random.default_rng([seed, number])
    path = paths[rng.integers(len(paths))]
    drawn = mutate.draw_case(rng, mutate.template(path))
    if drawn is None:
        return None
    model, arrays = drawn
    found, refused = peers.answers(model, arrays)
    if not found:
        return None
    node = model.graph.node[0]
    name = f"{seed}_{number}_{node.op_type}"
    # Shapes, axes and counts are inputs in ONNX. They become constants here, since the importer accepts them only as constants.
    case = cases.Case(name, "node", model, list(arrays.values()), [], 0, 0)
    few = cases.constant_sets(case, arrays)
    shutil.rmtree(base / name, ignore_errors=True)
    cases.write(case, base / name)
    write_given(base / name, model, arrays, few)
    further = functools.partial(exact.answers, model.SerializeToString(), arrays)
    return name, Known(node.op_type, found, described(model, arrays), types_of(model), further)


@dataclasses.dataclass
class Known:
    """What is known about a case: its operator, the peers' outputs, its node as text, the outputs' types by the standard (compare.py), and
    further ways to compute the outputs (exact.py)."""

    op: str
    found: dict
    text: str
    types: list
    exact: object

    def message(self, outputs):
        return compare.against(self.found, outputs, self.op, self.types, self.exact)


def types_of(model):
    """Returns the types of the outputs by the standard: the type of an input with the same type parameter, or else the inferred type; None
    if a type is unknown."""
    node, schema = model.graph.node[0], mutate.schema_of(model)
    if schema is None:
        return []
    given = {v.name: v.type.tensor_type.elem_type for v in model.graph.input} | {w.name: w.data_type for w in model.graph.initializer}
    of = {mutate.formal(schema, i).type_str: given[name] for i, name in reversed([*enumerate(node.input)]) if name in given}
    inferred = [0] * len(node.output)
    with contextlib.suppress(onnx.shape_inference.InferenceError):
        inferred = [o.type.tensor_type.elem_type for o in onnx.shape_inference.infer_shapes(model).graph.output]
    formal = [schema.outputs[min(i, len(schema.outputs) - 1)].type_str for i in range(len(node.output))]
    only = {c.type_param_str: mutate.TYPES.get(*c.allowed_type_strs, None) for c in schema.type_constraints if len(c.allowed_type_strs) == 1}
    kinds = [of.get(name, other) for name, other in zip(formal, inferred)]
    return [only.get(name) or (helper.tensor_dtype_to_np_dtype(kind) if kind else None) for name, kind in zip(formal, kinds)]


def described(model, arrays):
    """Returns the node as text for messages. The text names the kinds of special values in the inputs, which rules.txt matches."""
    node = model.graph.node[0]
    attributes = ", ".join(f"{a.name}={onnx.helper.get_attribute_value(a)}" for a in node.attribute)
    inputs = ", ".join(f"{n}: {a.dtype}{list(a.shape)}" for n, a in arrays.items())
    weights = ", ".join(f"{w.name}={onnx.numpy_helper.to_array(w).ravel()[:6].tolist()}" for w in model.graph.initializer)
    known = arrays | {w.name: onnx.numpy_helper.to_array(w) for w in model.graph.initializer}
    kinds = "".join(f"; {n} has {' and '.join(sorted(values.kinds(a)))}" for n, a in known.items() if values.kinds(a))
    return f"[{max(o.version for o in model.opset_import)}: {attributes}; {inputs}; {weights}{kinds}]"


def write_given(folder, model, arrays, few):
    """Writes folders for eval_onnx --given: one with the model as it is, and one for every set of inputs that become constants."""
    for level, names in enumerate([[], *few]):
        to = folder / f"given{level}"
        to.mkdir()
        fixed = cases.with_constants(cases.fixed_shapes(model, arrays), arrays, names)
        (to / "model.onnx").write_bytes(fixed.SerializeToString())
        kept = {n: a for n, a in arrays.items() if n not in names}
        (to / "names").write_text("".join(n + "\n" for n in kept))
        for number, array in enumerate(kept.values()):
            np.ascontiguousarray(cases.as_stored(array)).tofile(to / f"{number}.bin")


def evaluated(folders):
    """Returns a dict: folder -> the line of eval_onnx about it, split at tabs."""
    reports = {}
    while folders:
        run = subprocess.run([BIN / "eval_onnx", "--given", *folders], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=SECONDS)
        for line in run.stdout.splitlines():
            reports[pathlib.Path(line.split("\t")[0])] = line.split("\t")[1:]
        rest = [f for f in folders if f not in reports]
        if rest:
            reports[rest[0]] = [f"crashed with status {run.returncode}"]
        folders = rest[1:]
    return reports


def by_oracle(done, base):
    """Returns a dict: case -> message. The message is "" if the result is right, and "refused: ..." if the importer refuses the case."""
    messages, level, left = {}, 0, list(done)
    while left:
        folders = {case[0]: base / case[0] / f"given{level}" for case in left}
        there = [f for f in folders.values() if f.exists()]
        reports, again = evaluated(there), []
        for case in left:
            name, known = case
            folder = folders[name]
            if folder not in reports:
                continue
            report = reports[folder]
            if report[0] == "ok":
                (base / name / "oracle.txt").write_text("\n".join([str(folder), *report[1:]]))
                messages[name] = known.message(compare.from_oracle(folder, report[1:]))
            elif "crashed" in report[0]:
                messages[name] = report[0]
            else:
                messages.setdefault(name, f"refused: {report[0]}")
                again.append(case)
        left, level = again, level + 1
    return messages


def work(chunk, seed, paths, base, keeps, log, results):
    """Makes and evaluates cases; is run in a process of its own. log.value is the number of the case that is being made, -1 afterwards.
    `keeps`: the folders of the cases are kept."""
    try:
        done = []
        for number in chunk:
            log.value = number
            case = made(number, seed, paths, base)
            if case is not None:
                done.append(case)
        log.value = -1
        messages = by_oracle(done, base)
        results.send((messages, {name: known if keeps else dataclasses.replace(known, found={}, exact=None) for name, known in done}))
        for name in [] if keeps else messages:
            shutil.rmtree(base / name)
    except Exception:  # noqa: BLE001
        results.send(traceback.format_exc())


def run_chunk(chunk, seed, paths, base, keeps):
    """Runs a chunk of cases in a process of its own. If a case crashes a peer, the chunk is run again without this case."""
    while chunk:
        log, (mine, theirs) = multiprocessing.Value("q", -1), multiprocessing.Pipe(duplex=False)
        child = multiprocessing.Process(target=work, args=(chunk, seed, paths, base, keeps, log, theirs))
        child.start()
        theirs.close()
        answer = None
        with contextlib.suppress(EOFError):
            # The end of the child process is polled as well as its pipe, since other children may have inherited the pipe's writing end.
            end = time.monotonic() + SECONDS
            while time.monotonic() < end and not mine.poll(0.1) and child.is_alive():
                pass
            if mine.poll():
                answer = mine.recv()
        child.kill()
        child.join()
        if isinstance(answer, str):
            raise RuntimeError(f"case {log.value}: {answer}")
        if answer is not None:
            return answer
        chunk = [n for n in chunk if n != log.value] if log.value >= 0 else []
    return {}, {}


def kernels(chosen, base, options):
    """Runs cases through compiled kernels, and returns a message for each."""
    (base / "cases.txt").write_text("".join(name + "\n" for name in chosen))
    run = argparse.Namespace(cover="greedy", jobs=options.jobs, objects=None)
    messages = {}
    for name, state, rest in backend_test.run_tool(base, run):
        if state == "ok":
            files = dict(line.split("\t") for line in (base / name / "outputs.txt").read_text().splitlines())
            folder, *described = (base / name / "oracle.txt").read_text().splitlines()
            bounds = [bound for _, bound in compare.from_oracle(pathlib.Path(folder), described)]
            got = [backend_test.read_output(base / name / file) for file in files.values()]
            messages[name] = chosen[name].message([*zip(got, bounds, strict=True)])
        else:
            messages[name] = f"{state}: {rest}"
    return messages


def is_of_oracle(rules, message, known):
    """Returns whether a rule excuses a difference of the oracle; then kernels have to compute the case."""
    rule = compare.rule_of(rules, known.op, message, known.text) if message and not message.startswith("refused: ") else None
    return rule is not None and rule.of_oracle


def main():
    parser = argparse.ArgumentParser()
    scale = float(os.environ.get("WARPLOOM_TEST_SCALE", "1"))
    parser.add_argument("--cases", type=int, default=int(100000 if scale >= 10 else 6000 * scale))
    parser.add_argument("--kernels", type=int, default=int(4000 if scale >= 10 else 160 * scale))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("WARPLOOM_TEST_SEED", "1")))
    parser.add_argument("--jobs", type=int, default=min(2, len(os.sched_getaffinity(0))))
    parser.add_argument("-k", default="", help="only templates whose operator matches")
    parser.add_argument("--keep", type=pathlib.Path, help="leave the cases in this new folder")
    parser.add_argument("--report", type=pathlib.Path, help="file for all messages")
    options = parser.parse_args()
    start = time.monotonic()
    rules = compare.read_rules(HERE / "rules.txt")
    with tempfile.TemporaryDirectory() as scratch:
        (pathlib.Path(scratch) / "templates").mkdir()
        paths = [p for p in templates(f"{scratch}/templates") if re.search(options.k, pathlib.Path(p).stem.split("_", 1)[1])]
        base = options.keep or pathlib.Path(scratch) / "cases"
        base.mkdir()
        chunks = [range(i, min(i + CHUNK, options.cases)) for i in range(0, options.cases, CHUNK)]
        messages, facts = {}, {}
        with multiprocessing.pool.ThreadPool(options.jobs) as pool:
            for said, known in pool.imap(lambda chunk: run_chunk(list(chunk), options.seed, paths, base, bool(options.kernels or options.keep)), chunks):
                messages |= said
                facts |= known
        middle = time.monotonic()
        accepted = [n for n in messages if messages[n] == ""]
        some = accepted[:: max(1, len(accepted) // max(1, options.kernels))][: options.kernels]
        some += [n for n in messages if is_of_oracle(rules, messages[n], facts[n])]
        compiled = kernels({n: facts[n] for n in some}, base, options) if options.kernels else {}
    sys.exit(report(messages, compiled, facts, rules, options, (middle - start, time.monotonic() - middle)))


def report(messages, compiled, facts, rules, options, seconds):
    by_rule, refused, wrong, allowed = collections.Counter(), collections.Counter(), [], []
    for way, said in (("oracle", messages), ("kernel", compiled)):
        for name, message in sorted(said.items()):
            op, text = facts[name].op, facts[name].text
            if message.startswith("refused: "):
                refused[f"{op}: {message[9:][:110]}"] += 1
            elif message:
                rule = compare.rule_of(rules, op, message, text, way == "kernel")
                if rule:
                    by_rule[f"{rule.operators}: {rule.reason}"] += 1
                    allowed.append(f"by rule, {rule.reason[:40]}: {name} ({way}): {message} {text}")
                else:
                    wrong.append(f"{name} ({way}): {message} {text}")
    for line in wrong:
        print(line)
    for rule, count in by_rule.most_common():
        print(f"by rule {count:5}  {rule}")
    lines = [f"refused {count:5}  {what}" for what, count in refused.most_common()]
    if options.report:
        options.report.write_text("\n".join(wrong + allowed + lines) + "\n")
    ran = len(messages) - sum(refused.values())
    print(f"{options.cases} drawn, {len(messages)} that a peer computes, {sum(refused.values())} refused, {ran} compared, {len(compiled)} of them as kernels too, "
          f"{sum(by_rule.values())} differ by rule, {len(wrong)} wrong; seed {options.seed}; {seconds[0]:.0f} s and {seconds[1]:.0f} s")
    return 1 if wrong or not ran else 0


if __name__ == "__main__":
    main()
