#!/usr/bin/env python3
"""What the tests cost: seconds by label, by program, and of the slowest tests, from the last runs of ctest in a build.

    tools/test_costs.py [--preset release] [--most 25]

ctest remembers the mean time of every test in Testing/Temporary/CTestCostData.txt. Tests that never ran have no time and are left out.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def costs_of(build):
    """Returns the seconds of each test that has run. Lines are NAME RUNS SECONDS, and names may contain spaces."""
    file = build / "Testing/Temporary/CTestCostData.txt"
    if not file.exists():
        sys.exit(f"test_costs: there is no {file}; run the tests of this preset first")
    costs = {}
    for line in file.read_text().split("---")[0].splitlines():
        name, runs, seconds = line.rsplit(" ", 2)
        if int(runs) > 0:
            costs[name] = float(seconds)
    return costs


def facts_of(build):
    """Returns the label and the program of every test in the build."""
    listed = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, capture_output=True, text=True, check=True)
    facts = {}
    for test in json.loads(listed.stdout)["tests"]:
        labels = next((entry["value"] for entry in test.get("properties", ()) if entry["name"] == "LABELS"), ["none"])
        command = test.get("command", ["?"])
        script = next((word for word in command if word.endswith(".py")), command[0])
        facts[test["name"]] = " ".join(labels), pathlib.Path(script).name
    return facts


def show(title, seconds, counts, total, most):
    print(f"\n{'seconds':>9}  {'share':>6}  {'tests':>5}  {title}")
    for name, value in sorted(seconds.items(), key=lambda item: -item[1])[:most]:
        print(f"{value:9.1f}  {100 * value / total:5.1f}%  {counts[name]:5}  {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="release")
    parser.add_argument("--most", type=int, default=25, help="rows of each table")
    options = parser.parse_args()
    build = ROOT / "build" / options.preset
    costs, facts = costs_of(build), facts_of(build)
    costs = {name: seconds for name, seconds in costs.items() if name in facts}
    total = sum(costs.values())
    print(f"{len(costs)} of {len(facts)} tests have run, {total:.0f} s of processes in all")
    for title, part in ("label", 0), ("program", 1):
        seconds, counts = collections.Counter(), collections.Counter()
        for name, value in costs.items():
            seconds[facts[name][part]] += value
            counts[facts[name][part]] += 1
        show(title, seconds, counts, total, options.most)
    show("test", costs, collections.Counter(costs.keys()), total, options.most)


if __name__ == "__main__":
    main()
