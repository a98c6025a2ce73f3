#!/usr/bin/env python3
"""Whole models: every ONNX file of a folder is tuned, run, checked against the oracle, compared with onnxruntime on the
same inputs, and timed in interleaved rounds with two other tuned plans of Warploom (BASELINES), with onnxruntime and
with torch.compile (build/venv-peers). Kernels and the bytes they move are counted for each plan and for torch.compile.

    bench/models.py [FOLDER] [--trials 30] [--only NAME ...] [--peers NAME ...]
    bench/models.py --further [--trials 30] [--only NAME ...]

The first form compares with onnxruntime and torch.compile unless --peers names others. The second exports ten models that the project was
not developed with (further/export.py), and compares with OpenVINO and XLA too, but not with other plans. Writes
bench/results/models/DATE.json and .md (with --further: bench/results/further/DATE.json, and prints the table), anew after each model. If a
step fails on a model, the model's row says so.
"""

import argparse
import datetime
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx
import run as bench
from run import ROOT, Child

WORK = ROOT / "build" / "bench" / "models"
PEERS = ("onnxruntime", "torch_compile")
ALL_PEERS = ("onnxruntime", "openvino", "torch_compile", "xla")
# Covers with which the chosen plan is compared. "around" is greedy fusion with every contraction a kernel of its own,
# as compilers around kernel libraries fuse (design figures call it greedy). "greedy" is this compiler's greedy fusion, which also fuses
# contractions.
BASELINES = {"around": "contractions-alone", "greedy": "greedy"}
BOUND = 1e-4  # tolerance, relative to the largest magnitude of an output: Warploom and onnxruntime compute in f32 but add in different orders


def warploom(*arguments, deadline=3600):
    done = subprocess.run([bench.BIN / "warploom", *map(str, arguments)], capture_output=True, text=True, timeout=deadline)
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()[-1:]
        raise RuntimeError(f"{arguments[0]} exited {done.returncode}: {' '.join(said)[-300:]}")
    return json.loads(done.stdout)


def differences(ours, theirs):
    """Returns the largest difference of any output, relative to the largest magnitude of that output in the reference."""
    worst = 0.0
    for path in sorted(theirs.glob("*.npy")):
        expected, found = np.load(path).astype("f8"), np.load(ours / path.name).astype("f8")
        scale = max(float(np.abs(expected).max(initial=0)), 1e-30)
        difference = float(np.abs(found - expected).max(initial=0)) / scale
        worst = max(worst, difference if difference == difference else float("inf"))
    return worst


class Warploom:
    def __init__(self, bundle, weights, best_ns, seconds):
        self.bundle, self.weights, self.calls = bundle, weights, max(3, min(200, int(seconds * 1e9 / max(1.0, best_ns))))

    def time(self, threads):
        options = ["--repeat", self.calls, "--threads", threads, *self.weights]
        return warploom("run", self.bundle, *options, "--json", "-")["time"]["samples_ns"]

    def close(self):
        pass


class Peer:
    def __init__(self, name, model, inputs, options):
        python = ROOT / "build" / "venv-peers" / "bin" / "python"
        if not python.exists():
            python = pathlib.Path(sys.executable)
        command = [python, ROOT / "bench" / "model_peers.py", name, model, inputs, options.threads]
        self.seconds = options.seconds
        self.child = Child(command, env=bench.peers.environment(name, options.threads))
        self.counted = self.child.read()

    def time(self, _):
        return self.child.ask(f"time {self.seconds}")["ns"]

    def close(self):
        self.child.close()


def tune(model, options, row, cover):
    """Tunes with `cover` as the first cover. Returns the bundle, and the records of its kernels with their counts. All covers
    share one store, so that no group is tuned twice."""
    bundle = WORK / model.stem / f"bundle-{cover}"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    report = warploom(
        "tune", model, "--store", WORK / "store.db", "--trials", options.trials, "--cover", cover, "--out", bundle, "--json", "-"
    )
    totals = report["totals"]
    row |= {
        "tune_s": round(time.perf_counter() - start, 1),
        "groups": len(report["groups"]),
        "trials_run": report["job"]["trials_run"],
        **{key: totals[key] for key in ("kernels_default", "kernels", "default_ns", "default_estimated", "best_ns", "bytes_default", "bytes")},
    }
    return bundle, sorted((group["record"], group["count"]) for group in report["groups"])


def weights_of(model, bundle):
    """Returns options for `warploom run`: --weights if the file has values of graph inputs, besides constants. The program generates the
    values of other inputs, and the other frameworks get the same values."""
    manifest = json.loads((bundle / "manifest.json").read_text())
    graphs = [(bundle / manifest["graph"]["file"]).read_text(), *(folded["graph"] for folded in manifest["folded"])]
    inputs = set(re.findall(r' = input "([^"]*)"', "".join(graphs)))
    stored = {tensor.name for tensor in onnx.load(model).graph.initializer}
    return ["--weights", model] if stored & inputs else []


def check(model, bundle, row):
    values = WORK / model.stem / "values"
    start = time.perf_counter()
    checked = warploom("run", bundle, "--check", "--json", "-", "--output-dir", values, "--save-inputs", *weights_of(model, bundle))
    row |= {
        "check_s": round(time.perf_counter() - start, 1),
        "check_by": checked["check_by"],
        "steps_make_graph": checked.get("steps_make_graph"),
        "correct": checked["correct"],
        "samples": sum(c["samples"] for c in checked["check"]),
        "arena_bytes": checked["arena_bytes"],
        **{f"{key}_bytes": checked["memory"][key] for key in ("intermediates", "live")},
    }
    return values


def one(model, options):
    row = {"model": model.stem}
    running = {}
    try:
        bundle, chosen = tune(model, options, row, options.cover)
        weights = weights_of(model, bundle)
        for name, cover in options.baselines.items():
            row[name] = {}
            other, of_other = tune(model, options, row[name], cover)
            row[name]["same_kernels"] = chosen == of_other
            running[name] = Warploom(other, weights, row["best_ns"], options.seconds)
        values = check(model, bundle, row)
        running["warploom"] = Warploom(bundle, weights, row["best_ns"], options.seconds)
        for name in options.peers:
            try:
                running[name] = Peer(name, model, values / "inputs", options)
                row[f"{name}_counted"] = {k: running[name].counted[k] for k in ("generated", "calls", "bytes") if k in running[name].counted}
                row[f"{name}_difference"] = differences(values, values / name)
            except Exception as error:  # noqa: BLE001: a framework that fails for any reason is left out
                row[f"{name}_error"] = str(error)[-200:]
        collected = bench.take_turns(running, options, options.threads)
        for name, rounds in collected.items():
            samples = [sample for samples in rounds for sample in samples]
            row[f"{name}_ns"] = {"median": statistics.median(samples), "min": min(samples), "calls": len(samples)}
        for name in options.baselines:
            ratios = [statistics.median(a) / statistics.median(b) for a, b in zip(collected[name], collected["warploom"])]
            row[name]["gain"] = statistics.median(ratios)
            row[name]["undisturbed_gain"] = row[f"{name}_ns"]["min"] / row["warploom_ns"]["min"]
    except (RuntimeError, subprocess.TimeoutExpired, KeyError, OSError) as error:
        row["error"] = str(error)
    finally:
        for contender in running.values():
            contender.close()
    return row


def milliseconds(row, name):
    return f"{row[f'{name}_ns']['median'] / 1e6:.3g}" if f"{name}_ns" in row else "–"


def megabytes(counted):
    return f"{counted['bytes'] / 1e6:.1f}" if counted and "bytes" in counted else "–"


def gains_over(rows, baseline, statistic):
    """Returns how many times as fast as a baseline the chosen plan is, for each model; 1 where both have the same kernels."""
    return {
        r["model"]: 1.0 if r[baseline]["same_kernels"] else r[baseline][statistic]
        for r in rows
        if statistic in r.get(baseline, {})
    }


def table(rows, options):
    lines = [
        f"Every model tuned with {options.trials} trials per distinct group; {options.threads} threads; medians in ms of the same "
        "interleaved rounds.",
        "*difference*: largest of any output from onnxruntime's, relative to its largest magnitude. *around*: greedy fusion around "
        "contractions, each a kernel of its own, as compilers around kernel libraries fuse; *greedy*: Warploom's own greedy plan; both "
        "of Warploom's kernels, tuned with as many trials.",
        "*MB*: what all kernels read and write, each tensor of a kernel once. Of torch.compile: kernels that it generates + calls of "
        "libraries.",
        "",
        "| model | kernels: ops → ours (around; greedy; torch.compile) | MB: ops → ours (around; greedy; torch.compile) | check "
        "| difference | Warploom ms | around ms | greedy ms | onnxruntime ms | torch.compile ms | tuned in |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if "kernels" not in row:
            lines.append(f"| {row['model']} | {row['error'][:160]} | | | | | | | | | |")
            continue
        said = "–"
        if "correct" in row:
            said = f"{'ok' if row['correct'] else 'WRONG'} by {row['check_by']}, {row['check_s']} s"
        difference = row.get("onnxruntime_difference")
        differs = "–" if difference is None else f"{difference:.1e}" + ("" if difference <= BOUND else " **too large**")
        torch, around, greedy = row.get("torch_compile_counted"), row.get("around", {}), row.get("greedy", {})
        torch_kernels = f"{torch['generated']}+{torch['calls']}" if torch else "–"
        lines.append(
            f"| {row['model']} | {row['kernels_default']} → {row['kernels']} "
            f"({around.get('kernels', '–')}; {greedy.get('kernels', '–')}; {torch_kernels}) "
            f"| {row['bytes_default'] / 1e6:.1f} → {megabytes(row)} ({megabytes(around)}; {megabytes(greedy)}; {megabytes(torch)}) "
            f"| {said} | {differs} | {milliseconds(row, 'warploom')} | {milliseconds(row, 'around')} | {milliseconds(row, 'greedy')} "
            f"| {milliseconds(row, 'onnxruntime')} | {milliseconds(row, 'torch_compile')} "
            f"| {row['tune_s']} + {around.get('tune_s', 0)} + {greedy.get('tune_s', 0)} s |"
        )
    for name in BASELINES:
        means = []
        for statistic, words in (("gain", "medians of rounds"), ("undisturbed_gain", "least samples (other load only adds time)")):
            if gains := gains_over(rows, name, statistic):
                least = min(gains, key=gains.get)
                mean = statistics.geometric_mean(gains.values())
                means.append(f"by {words} {mean:.3f} (geometric mean), least {gains[least]:.3f} ({least})")
        same = sum(r.get(name, {}).get("same_kernels", False) for r in rows)
        if means:
            lines += ["", f"Time of the plan *{name}* over the chosen one: {'; '.join(means)}. {same} models have the same kernels (1)."]
    return "\n".join(lines) + "\n"


def over_best(row, statistic):
    """Returns the fastest other framework, and the ratio of its time to Warploom's."""
    others = {name: row[f"{name}_ns"][statistic] for name in ALL_PEERS if f"{name}_ns" in row}
    if not others:
        return None, float("nan")
    best = min(others, key=others.get)
    return best, others[best] / row["warploom_ns"][statistic]


def peers_table(rows, options):
    """Returns the lines of a table in Markdown: the times of every model in all frameworks, and the ratio of the best other framework's
    time to Warploom's."""
    titles = [bench.peers.TITLES[name] for name in ALL_PEERS]
    lines = [
        f"Every model tuned with {options.trials} trials per distinct group; {options.threads} threads; ms of the same interleaved "
        "rounds, median (least). *difference*: largest of any output from onnxruntime's, relative to its largest magnitude.",
        "",
        f"| model | kernels: ops → ours | check | difference | Warploom | {' | '.join(titles)} | over the best, median | least | tuned in |",
        "|---|---|---|---|---|" + "---|" * (len(titles) + 3),
    ]
    for row in rows:
        if "warploom_ns" not in row:
            lines.append(f"| {row['model']} | {row.get('error', '–')[:160]} |" + " |" * (len(titles) + 6))
            continue
        times = [row.get(f"{name}_ns") for name in ("warploom", *ALL_PEERS)]
        said = " | ".join(f"{t['median'] / 1e6:.3g} ({t['min'] / 1e6:.3g})" if t else "–" for t in times)
        (best, ratio), (_, least) = over_best(row, "median"), over_best(row, "min")
        lines.append(
            f"| {row['model']} | {row['kernels_default']} → {row['kernels']} | {'ok' if row['correct'] else 'WRONG'} by {row['check_by']} "
            f"| {row.get('onnxruntime_difference', float('nan')):.1e} | {said} | {ratio:.2f} ({bench.peers.TITLES[best] if best else '–'}) | {least:.2f} "
            f"| {row['tune_s']} s |"
        )
    timed = [row for row in rows if "warploom_ns" in row and over_best(row, "min")[0]]
    if timed:
        means = (statistics.geometric_mean(over_best(row, of)[1] for row in timed) for of in ("median", "min"))
        lines += ["", "Geometric mean over the best other: {:.3f} by medians, {:.3f} by least samples.".format(*means)]
    return "\n".join(lines) + "\n"


def exported(folder):
    """Returns the folder of the ten further models; exports them with the Python of build/venv-peers if it does not exist."""
    if not folder.exists():
        python = ROOT / "build" / "venv-peers" / "bin" / "python"
        made = folder.with_name(f"{folder.name}-unfinished")
        subprocess.run([python, ROOT / "bench" / "further" / "export.py", made], check=True)
        made.rename(folder)
    return folder


def write(stem, rows, begun, options):
    facts = {
        "date": begun.isoformat(timespec="seconds"),
        "machine": bench.machine(),
        "trials": options.trials,
        "cover": options.cover,
        "threads": options.threads,
        "rounds": options.rounds,
        "seconds": options.seconds,
        "models": rows,
    }
    stem.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n")
    if not options.further:
        stem.with_suffix(".md").write_text(f"{table(rows, options)}\n{peers_table(rows, options)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, help="default: ../shared/data/models, or build/bench/further")
    parser.add_argument("--further", action="store_true", help="ten other models, which are exported to FOLDER if there is none")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="files whose name begins so")
    parser.add_argument("--trials", type=int, default=30, help="per distinct group")
    parser.add_argument("--peers", nargs="+", choices=ALL_PEERS, help="other frameworks to compare with")
    parser.add_argument("--cover", default="stitched", help="the first cover to try (warploom tune --cover)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="per contender and round")
    parser.add_argument("--gap", type=float, default=0.1, help="seconds between contenders")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    if options.further:
        options.baselines, options.peers, show, kind = {}, options.peers or ALL_PEERS, peers_table, "further/"
        options.folder = exported(options.folder or ROOT / "build" / "bench" / "further")
    else:
        options.baselines, options.peers, show, kind = BASELINES, options.peers or PEERS, table, "models/"
        options.folder = options.folder or ROOT.parent / "shared" / "data" / "models"
    models = sorted(options.folder.glob("*.onnx"))
    if options.only:
        models = [m for m in models if any(m.stem.startswith(name) for name in options.only)]
    if not models:
        parser.error(f"no models in {options.folder}")
    WORK.mkdir(parents=True, exist_ok=True)
    rows = []
    begun = datetime.datetime.now(datetime.timezone.utc)
    stem = options.out / f"{kind}{begun:%Y%m%d-%H%M}"
    stem.parent.mkdir(parents=True, exist_ok=True)
    for model in models:
        rows.append(one(model, options))
        print(next(line for line in show(rows[-1:], options).splitlines() if line.startswith(f"| {model.stem} ")), flush=True)
        write(stem, rows, begun, options)
    print(f"{show(rows, options)}Written to {stem}.json" if options.further else f"Written to {stem}.json and .md")
    bad = [r["model"] for r in rows if "error" in r or not r.get("correct") or r.get("onnxruntime_difference", 0) > BOUND]
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
