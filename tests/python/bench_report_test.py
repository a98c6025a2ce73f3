#!/usr/bin/env python3
"""The report of benchmarks (bench/report/everything.py): from the results of every suite it has each row once, marks the best contender and
computes the ratios. Files that are no results are refused."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET

from harness import SOURCE, Scratch, expect, tool

MACHINE = {"machine": {"cpu": "A CPU", "vector": "avx2"}, "threads": 2, "date": "2026-11-27T01:00:00"}
TIMES = {"warploom": {"median_ns": 2e6, "min_ns": 1e6}, "xla": {"median_ns": 6e6, "min_ns": 5e6}, "torch": {"median_ns": 5e6, "min_ns": 4e6}}
RESULTS = {
    "parts-peers.json": MACHINE | {"workloads": [{"title": "soft<max> & co", "contenders": TIMES}]},
    "products-peers.json": MACHINE | {"workloads": [{"title": "slow", "contenders": {"warploom": TIMES["torch"], "torch": TIMES["warploom"]}}]},
    "models.json": MACHINE | {
        "models": [
            {"model": "m", "warploom_ns": {"median": 1e6, "min": 1e6}, "openvino_ns": {"median": 2e6, "min": 1.5e6}},
            {"model": "failed", "error": "why"},
        ]
    },
    "torch.json": {"threads": 2, "rows": [{"name": "net", "contenders": {"warploom": {"failed": "why"}, "eager": {"median_ns": 1e6, "least_ns": 1e6}}}]},
}  # fmt: skip


def main():
    with Scratch() as scratch:
        files = [scratch.root / name for name in RESULTS]
        for file in files:
            file.write_text(json.dumps(RESULTS[file.name]))
        script = [sys.executable, SOURCE / "bench/report/everything.py", scratch.root / "out", "--from"]
        said = tool(*script, *files)
        expect("models: Geometric mean over the best other: 2.50 by medians, 4.00 by least samples; 0 of 1 below 1" in said, said)
        report = (scratch.root / "out/report.md").read_text()
        rows = (
            "| soft<max> & co | **2**, 1 | 5, 4 | 6, 5 | 2.50 | 4.00 |", "| slow | 5, 4 | **2**, 1 | 0.40 | 0.25 |", "| m | **1**, 1 | 2, 1.5 | 2.00 | 1.50 |",
            "| net | **1**, 1 | – | – |", "A CPU, avx2, 2 threads, 2026-11-27T01:00", "Nothing to compare.",
        )  # fmt: skip
        for row in rows:
            expect(report.count(row) == 1, f"{row}\n{report}")
        svg = {"s": "http://www.w3.org/2000/svg"}
        bars = ET.parse(scratch.root / "out/report.svg").findall(".//s:g", svg)
        shown = [(bar.find("s:title", svg).text, bar.find("s:rect", svg).get("class")) for bar in bars]
        expect([kind for _, kind in shown] == ["faster", "slower", "faster"] and "2.50 by medians" in shown[0][0], shown)
        wrong = scratch.root / "wrong.json"
        wrong.write_text("{}")
        done = subprocess.run([*script, wrong], capture_output=True, text=True, timeout=60, check=False)
        expect(done.returncode == 1 and "wrong.json: these are no results" in done.stderr, done.stderr)


if __name__ == "__main__":
    main()
