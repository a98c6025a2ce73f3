#!/usr/bin/env python3
"""Twelve groups of several loop nests, each as one kernel: what searching the levels of values gains on this CPU.

Tunes each group with the programs of two builds (a tree without the choice `level`, and this one), with as many trials, and runs
both bundles in turns. Prints for each group the time before by the time now: above 1, the search of levels gained. Also says which
levels the kernel has that was found, and how many points its space has. Takes about a minute for a group; the machine should do nothing else.

    bench/search/levels.py BUILD_BEFORE/bin build/release/bin [--trials 48] [--rounds 7] [--only GROUP]
"""

import argparse
import json
import math
import pathlib
import re
import statistics
import subprocess
import tempfile


class Text:
    """A graph in text form. Values are the numbers of its lines."""

    def __init__(self):
        self.lines, self.shapes = [], []

    def add(self, what, shape, dtype="f32"):
        self.shapes.append(shape)
        self.lines.append(f"  %{len(self.lines)} = {what} : {dtype}[{','.join(map(str, shape))}]")
        return len(self.lines) - 1

    def input(self, *shape):
        return self.add(f'input "x{len(self.lines)}"', list(shape))

    def op(self, name, *values):
        return self.add(f"{name} {' '.join(f'%{v}' for v in values)}", self.shapes[values[0]])

    def number(self, value, like):
        return self.add(f"constant {value}", self.shapes[like])

    def product(self, x, w, letters="mk,kn->mn"):
        extent = dict(zip(letters.replace(",", "").split("->")[0], self.shapes[x] + self.shapes[w]))
        return self.add(f'contract %{x} %{w} "{letters}"', [extent[c] for c in letters.split("->")[1]])

    def across(self, name, x):
        """A reduction over the last axis, broadcast to the shape of x."""
        shape = self.shapes[x]
        reduced = self.add(f"reduce_{name} %{x} axes=[{len(shape) - 1}]", shape[:-1])
        return self.spread(reduced, shape)

    def spread(self, x, shape, dims=None):
        dims = dims if dims is not None else range(len(self.shapes[x]))
        return self.add(f"broadcast %{x} dims=[{','.join(map(str, dims))}]", list(shape))

    def softmax(self, x):
        e = self.op("exp", self.op("sub", x, self.across("max", x)))
        return self.op("div", e, self.across("sum", e))

    def norm(self, x):
        """A root-mean-square norm of rows, with a weight for each column."""
        squares = self.op("mul", x, x)
        mean = self.op("mul", self.across("sum", squares), self.number(1 / self.shapes[x][-1], x))
        scaled = self.op("mul", x, self.op("rsqrt", self.op("add", mean, self.number(1e-5, x))))
        return self.op("mul", scaled, self.spread(self.input(self.shapes[x][-1]), self.shapes[x], [len(self.shapes[x]) - 1]))

    def text(self, value):
        return "graph {\n" + "\n".join(self.lines) + f'\n  output "y" %{value}\n}}\n'


def norm_product(t):
    return t.product(t.norm(t.input(512, 1024)), t.input(1024, 1024))


def softmax_product(t):
    return t.product(t.softmax(t.input(512, 512)), t.input(512, 256))


def product_norm(t):
    return t.norm(t.product(t.input(512, 512), t.input(512, 512)))


def attention_odd(t):
    scores = t.product(t.input(6, 197, 40), t.input(6, 197, 40), "bmk,bnk->bmn")
    scaled = t.op("mul", scores, t.number(0.158, scores))
    return t.product(t.softmax(scaled), t.input(6, 197, 40), "bmk,bkn->bmn")


def gated_unit(t):
    x = t.input(256, 512)
    gate = t.op("sigmoid", t.product(x, t.input(512, 512)))
    return t.product(t.op("mul", t.product(x, t.input(512, 512)), gate), t.input(512, 256))


def group_norm_convolution(t):
    x = t.input(64, 8, 1024)  # images, groups, values of a group
    flat = t.add(f"reshape %{t.norm(x)}", [64, 8192])
    return t.product(flat, t.input(8192, 128))


def chain(t):
    x = t.op("tanh", t.input(1024, 768))
    centred = t.op("sub", x, t.across("max", x))
    y = t.op("mul", t.op("exp", centred), t.op("sigmoid", x))
    return t.op("div", t.op("add", y, x), t.across("sum", y))


def feed_forward(t):
    hidden = t.product(t.input(256, 256), t.input(256, 1024))
    return t.product(t.op("mul", hidden, t.op("sigmoid", hidden)), t.input(1024, 256))


def attention_wide(t):
    return t.product(t.softmax(t.product(t.input(384, 64), t.input(64, 1024))), t.input(1024, 64))


def norm_two_products(t):
    x = t.norm(t.input(512, 768))
    return t.op("mul", t.product(x, t.input(768, 256)), t.op("tanh", t.product(x, t.input(768, 256))))


def residual_norm_product(t):
    x = t.input(512, 768)
    return t.product(t.norm(t.op("add", t.op("tanh", x), t.input(512, 768))), t.input(768, 384))


def product_log_softmax(t):
    scores = t.product(t.input(512, 256), t.input(256, 1000))
    shifted = t.op("sub", scores, t.across("max", scores))
    return t.op("sub", shifted, t.op("log", t.across("sum", t.op("exp", shifted))))


GROUPS = (norm_product, softmax_product, product_norm, attention_odd, gated_unit, group_norm_convolution, chain, feed_forward, attention_wide,
          norm_two_products, residual_norm_product, product_log_softmax)


def output_of(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout[-500:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def tuned(bins, graph, out, trials):
    """Returns the plan that a search finds, and leaves the bundle in `out`."""
    output_of(bins / "warploom", "tune", graph, "--cover", "one-kernel", "--trials", trials, "--store", f"{out}.db", "--out", out)
    (group,) = json.loads((out / "report.json").read_text())["groups"]
    return group["plan"]


def run(bins, bundle, repeat):
    """Returns the least and the median time of a run, in microseconds."""
    found = re.search(r"median ([0-9.]+) (\S+), min ([0-9.]+) (\S+) of", output_of(bins / "warploom", "run", bundle, "--repeat", repeat))
    unit = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}
    return float(found[3]) * unit[found[4]], float(found[1]) * unit[found[2]]


def written(make, bins, folder):
    """Writes a group, rewritten as a graph of its own is, and returns its file."""
    text, graph = Text(), folder / f"{make.__name__}.graph"
    value = make(text)
    graph.write_text(text.text(value))
    graph.write_text(output_of(bins / "warploom", "inspect", graph, "--simplify-only"))
    return graph


def measure(make, args, folder):
    """Returns the ratios of least and of median times, before by now, the size of the space, and the levels that were found."""
    graph = written(make, args.now, folder)
    space = output_of(args.now / "warploom", "inspect", graph, "--cover", "one-kernel", "--stage", "space")
    assignments = math.prod(len(values.split(",")) for values in re.findall(r"^  v\d+\.level=\{(.*?)\}", space, re.MULTILINE))
    plan = tuned(args.now, graph, folder / "now", args.trials)
    tuned(args.before, graph, folder / "before", args.trials)
    times = {"now": [], "before": []}
    repeat = max(20, int(200_000 / run(args.now, folder / "now", 20)[0]))
    for turn in range(args.rounds):
        for name in ("now", "before") if turn % 2 == 0 else ("before", "now"):
            times[name].append(run(args.now, folder / name, repeat))
    least = [min(t for t, _ in times[name]) for name in ("before", "now")]
    median = [statistics.median(t for _, t in times[name]) for name in ("before", "now")]
    return least[0] / least[1], median[0] / median[1], assignments, least[1], " ".join(re.findall(r"v\d+\.level=\S+", plan))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("now", type=pathlib.Path)
    parser.add_argument("--trials", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", help="the name of one group")
    args = parser.parse_args()
    print("| group | assignments | us now | before / now, least | before / now, median | found |\n|---|---|---|---|---|---|")
    ratios = []
    for make in GROUPS:
        if args.only not in (None, make.__name__):
            continue
        with tempfile.TemporaryDirectory() as folder:
            least, median, assignments, us, found = measure(make, args, pathlib.Path(folder))
        ratios.append(least)
        print(f"| {make.__name__} | {assignments} | {us:.0f} | {least:.3f} | {median:.3f} | {found} |", flush=True)
    print(f"\ngeometric mean of the least times: {math.exp(statistics.fmean(map(math.log, ratios))):.3f}, least ratio: {min(ratios):.3f}")


if __name__ == "__main__":
    main()
