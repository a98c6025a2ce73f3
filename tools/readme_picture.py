#!/usr/bin/env python3
"""Makes docs/pictures/softmax.svg of the README: a graph with a kernel for each operation, beside the same graph in Warploom's kernels.

usage: readme_picture.py [--bin build/release/bin] [GRAPH [PICTURE]]
"""

import argparse
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
TITLE, GAP = 34, 60
STYLE = "<style>.wl-title{fill:#111}.wl-arrow{stroke:#555}@media(prefers-color-scheme:dark){.wl-title{fill:#eee}.wl-arrow{stroke:#bbb}}</style>"


def drawn(programs, graph, cover):
    """Returns the SVG of a cover, its width and height, and the number of its kernels."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "picture.svg"
        command = [programs / "warploom", "inspect", graph, "--stage", "plan", "--target", "cuda:sm_90", "--cover", cover, "--svg", file]
        command += ["--store", pathlib.Path(folder) / "a.db"]  # not what the user has tuned
        plan = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout
        text = file.read_text()
    width, height = map(int, re.search(r'width="(\d+)" height="(\d+)"', text).groups())
    return text, width, height, sum(map(int, re.findall(r"^# g\d+:.* occurs (\d+) times", plan, re.MULTILINE)))


def counted(kernels):
    return "one kernel" if kernels == 1 else f"{kernels} kernels"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    options.add_argument("graph", nargs="?", type=pathlib.Path, default=ROOT / "docs/pictures/softmax.graph")
    options.add_argument("picture", nargs="?", type=pathlib.Path, default=ROOT / "docs/pictures/softmax.svg")
    asked = options.parse_args()
    parts = [drawn(asked.bin.resolve(), asked.graph.resolve(), cover) for cover in ("one-per-op", "stitched")]
    left, right = parts[0][1], parts[0][1] + GAP
    width, height = right + parts[1][1], TITLE + max(part[2] for part in parts)
    middle = TITLE + height // 2
    out = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="14">\n{STYLE}\n'
    for at, (text, _, _, kernels) in zip((0, right), parts, strict=True):
        out += f'<text class="wl-title" x="{at + 20}" y="24" fill="#111">{counted(kernels)}</text>\n'
        out += text.replace("<svg ", f'<svg x="{at}" y="{TITLE}" ', 1)
    out += f'<path class="wl-arrow" fill="none" stroke="#555" stroke-width="2" d="M{left} {middle} H{right - 4} m-8 -6 l8 6 l-8 6"/>\n</svg>\n'
    asked.picture.write_text(out)


if __name__ == "__main__":
    main()
