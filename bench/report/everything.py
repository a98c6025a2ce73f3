#!/usr/bin/env python3
"""All workloads beside every other framework, in one report: parts of models, products, whole ONNX models, and models of PyTorch.

    bench/report/everything.py [FOLDER] [--suites NAME ...] [--only NAME ...] [--trials 16] [--rounds 4] [--threads 2]
    bench/report/everything.py FOLDER --from RESULTS.json ...

The first form runs run.py, models.py and torch_backend/compare.py, which takes hours, and writes their results, report.md and report.svg to
FOLDER (build/bench/everything). The second makes the report from existing results. Times are of interleaved rounds within one run; nothing
else should run on the machine. Needs the packages that `make bench-peers` installs, and for PyTorch those of tools/requirements-further.txt.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parents[2]
OURS = "warploom"
PEERS = ("onnxruntime", "openvino", "torch_compile", "xla")
# Name of a suite -> its title, its script with options, and the virtual environment in build/ that runs it.
SUITES = {
    "parts": ("Memory-bound parts of models", ["run.py", "--parts", "--peers"], "venv"),
    "products": ("Products, convolutions and attention", ["run.py", "--products", "--peers"], "venv"),
    "models": ("Whole models in ONNX", ["models.py", "--peers", *PEERS], "venv"),
    "torch": ("Models of PyTorch, compiled in place", ["torch_backend/compare.py"], "venv-peers"),
}
ROW, LEFT, WIDTH, TOP = 18, 330, 960, 40  # sizes in the bar chart, in pixels
FROM, TO = 0.25, 8.0  # range of the chart's axis, which shows ratios of times


def suite_of(file, results):
    """Returns the suite of results, and its rows: (name, {contender: (median, least) in ns})."""
    if "models" in results:
        named = {row["model"]: {name: row[f"{name}_ns"] for name in (OURS, *PEERS) if f"{name}_ns" in row} for row in results["models"]}
        return "models", [(model, {name: (one["median"], one["min"]) for name, one in timed.items()}) for model, timed in named.items()]
    if "workloads" in results:
        suite = "products" if file.name.startswith("products") else "parts"
        return suite, [(row["title"], times_of(row["contenders"], "min_ns")) for row in results["workloads"]]
    if "rows" in results and all("contenders" in row for row in results["rows"]):
        return "torch", [(row["name"], times_of(row["contenders"], "least_ns")) for row in results["rows"]]
    sys.exit(f"{file}: these are no results of run.py, models.py or torch_backend/compare.py")


def times_of(contenders, least):
    return {name: (one["median_ns"], one[least]) for name, one in contenders.items() if "median_ns" in one}


def over_best(times, which):
    """Returns the ratio of the best other contender's time to Warploom's; None if Warploom or all others were not measured. `which`: 0 for
    medians, 1 for least samples."""
    others = [time[which] for name, time in times.items() if name != OURS]
    return min(others) / times[OURS][which] if others and OURS in times else None


def ratios_of(rows, which):
    return [ratio for _, times in rows if (ratio := over_best(times, which)) is not None]


def summary(rows):
    medians, leasts = ratios_of(rows, 0), ratios_of(rows, 1)
    if not medians:
        return "Nothing to compare."
    below = sum(ratio < 1 for ratio in medians)
    return (
        f"Geometric mean over the best other: **{statistics.geometric_mean(medians):.2f}** by medians, "
        f"{statistics.geometric_mean(leasts):.2f} by least samples; {below} of {len(medians)} below 1 by medians."
    )


def table(rows):
    contenders = sorted({name for _, times in rows for name in times}, key=lambda name: (name != OURS, name))
    lines = [f"| | {' | '.join(contenders)} | over the best, median | least |", "|---" * (len(contenders) + 3) + "|"]
    for name, times in rows:
        best = min(times, key=lambda contender: times[contender][0]) if times else None
        cells = []
        for contender in contenders:
            cell = "–"
            if contender in times:
                median, least = (f"{value / 1e6:.3g}" for value in times[contender])
                cell = f"**{median}**, {least}" if contender == best else f"{median}, {least}"
            cells.append(cell)
        cells += ["–" if (ratio := over_best(times, which)) is None else f"{ratio:.2f}" for which in (0, 1)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def report(suites, about):
    parts = [f"# Beside other frameworks\n\n{about}\n\nMilliseconds: median, least. The best median of a row is bold.\n\n![Ratios](report.svg)"]
    for suite, rows in suites.items():
        parts.append(f"## {SUITES[suite][0]}\n\n{summary(rows)}\n\n{table(rows)}")
    return "\n\n".join(parts) + "\n"


def across(ratio):
    """Returns the x coordinate of a ratio in pixels, on a logarithmic axis from FROM to TO."""
    part = math.log(min(max(ratio, FROM), TO) / FROM) / math.log(TO / FROM)
    return LEFT + part * (WIDTH - LEFT - 60)


def picture(suites):
    """Returns an SVG: for each row, a bar for the ratio of the best other contender's median to Warploom's, with a tick for least
    samples."""
    out, y = [], TOP
    for suite, rows in suites.items():
        out.append(f'<text class="title" x="10" y="{y}">{escape(SUITES[suite][0])}</text>')
        y += 8
        for name, times in rows:
            if (ratio := over_best(times, 0)) is None:
                continue
            begin, end = sorted((across(1), across(ratio)))
            least, kind = across(over_best(times, 1)), "faster" if ratio >= 1 else "slower"
            out.append(
                f'<g><title>{escape(name)}: {ratio:.2f} by medians, {over_best(times, 1):.2f} by least samples</title>'
                f'<text class="name" x="{LEFT - 8}" y="{y + 12}">{escape(name[:52])}</text>'
                f'<rect class="{kind}" x="{begin:.1f}" y="{y + 2}" width="{max(end - begin, 1):.1f}" height="{ROW - 6}"/>'
                f'<line class="least" x1="{least:.1f}" x2="{least:.1f}" y1="{y}" y2="{y + ROW - 2}"/>'
                f'<text class="value" x="{max(end, least) + 5:.1f}" y="{y + 12}">{ratio:.2f}</text></g>'
            )
            y += ROW
        y += 30
    out.append(f'<text x="{LEFT}" y="{y - 4}">how many times as fast as the best other framework: bars by medians, ticks by least samples</text>')
    axis = "".join(
        f'<line class="{"one" if mark == 1 else "mark"}" x1="{across(mark):.1f}" x2="{across(mark):.1f}" y1="22" y2="{y - 26}"/>'
        f'<text class="value" x="{across(mark) - 6:.1f}" y="16">{mark:g}x</text>'
        for mark in (0.5, 1, 2, 4, 8)
    )
    style = (
        "text{font:12px sans-serif;fill:#222}.title{font-weight:bold}.name{text-anchor:end}.faster{fill:#2b7a4b}.slower{fill:#b5482f}"
        ".least{stroke:#222;stroke-width:1.5}.one{stroke:#222}.mark{stroke:#ccc}.paper{fill:#fff}"
        "@media(prefers-color-scheme:dark){text{fill:#ddd}.least,.one{stroke:#ddd}.mark{stroke:#444}.paper{fill:#181818}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img" aria-label="The time of the best other framework over Warploom\'s">'
        f'<style>{style}</style><rect class="paper" width="{WIDTH}" height="{y}"/>{axis}{"".join(out)}</svg>\n'
    )


def measure(options):
    """Runs the suites one after the other, and returns the files that they wrote."""
    results = options.folder / "results"
    before = set(results.rglob("*.json"))
    for suite in options.suites:
        title, (script, *arguments), environment = SUITES[suite]
        print(f"== {title}", flush=True)
        command = [ROOT / "build" / environment / "bin/python", ROOT / "bench" / script, *arguments, "--out", results]
        command += ["--only", *options.only] if options.only else []
        command += ["--trials", options.trials, "--rounds", options.rounds, "--threads", options.threads]
        # The report also includes suites of which a part failed, since such a suite has written what it measured before.
        if subprocess.run(list(map(str, command)), check=False).returncode != 0:
            print(f"{title}: failed in part; see above", file=sys.stderr)
    return sorted(set(results.rglob("*.json")) - before)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=ROOT / "build/bench/everything")
    parser.add_argument("--from", nargs="+", type=pathlib.Path, metavar="RESULTS", dest="given")
    parser.add_argument("--suites", nargs="+", choices=SUITES, default=list(SUITES))
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these workloads or models of each suite, as its script takes them")
    parser.add_argument("--trials", type=int, default=16, help="per group, for Warploom's tuning")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    (options.folder / "results").mkdir(parents=True, exist_ok=True)
    files = options.given or measure(options)
    suites, machines = {}, {}
    for file in files:
        results = json.loads(file.read_text())
        suite, rows = suite_of(file, results)
        suites.setdefault(suite, []).extend(rows)
        if "machine" in results:
            machines[f"{results['machine']['cpu']}, {results['machine']['vector']}, {results['threads']} threads, {results['date'][:16]}"] = None
    if not suites:
        sys.exit("there are no results to report")
    suites = {suite: suites[suite] for suite in SUITES if suite in suites}
    (options.folder / "report.md").write_text(report(suites, "; ".join(machines) or "Machine not known."))
    (options.folder / "report.svg").write_text(picture(suites))
    for suite, rows in suites.items():
        print(f"{SUITES[suite][0]}: {summary(rows).replace('**', '')}")
    print(f"{options.folder / 'report.md'}, report.svg")


if __name__ == "__main__":
    main()
