#!/usr/bin/env python3
"""torch.compile with the backend of Warploom beside Inductor's modes (freezing on) and eager: whole models of PyTorch, on the CPU. Each
contender runs in a process of its own; they are timed in interleaved rounds of random order. Results are compared with eager's.

    build/venv-peers/bin/python bench/torch_backend/compare.py [--only NAME ...] [--trials 16] [--threads 2]

Needs the packages of tools/requirements-further.txt beside what `make bench-peers` installs. Writes bench/results/torch/DATE.json and prints a table.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import resource
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# last in sys.path, since `import models` must find models.py in this folder, not bench/models.py
sys.path.append(str(ROOT / "bench"))

RESULTS = ROOT / "bench/results/torch"
CONTENDERS = ("warploom", "inductor", "max_autotune", "eager")
BOUND = 1e-4  # tolerance, relative to the largest magnitude of an output


def results_file(prefix="", folder=RESULTS):
    """Returns a file for the results of a run that begins now, named by the time in UTC."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{prefix}{datetime.datetime.now(datetime.UTC):%Y%m%d-%H%M}.json"


def compiled(model, contender, trials):
    import torch

    if contender == "eager":
        return model
    if contender == "warploom":
        sys.path.insert(0, str(ROOT / "build/release/python"))
        return torch.compile(model, backend="warploom", dynamic=False, options={"tune": "first", "trials": trials})
    torch._inductor.config.freezing = True
    return torch.compile(model, dynamic=False, mode="max-autotune-no-cudagraphs" if contender == "max_autotune" else None)


def tensors_of(made):
    import torch

    return [one for one in (made if isinstance(made, (tuple, list)) else [made]) if isinstance(one, torch.Tensor)]


def difference(found, wanted):
    worst = 0.0
    for a, b in zip(tensors_of(found), tensors_of(wanted), strict=True):
        scale = max(float(b.abs().max()), 1e-30)
        apart = float((a.double() - b.double()).abs().max()) / scale
        worst = max(worst, apart if apart == apart else float("inf"))
    return worst


class Contender:
    """A compiled model with its inputs, in the form that peers.serve() needs."""

    def __init__(self, name, contender, threads, trials):
        import torch
        from models import MAKERS

        self.version = torch.__version__
        os.environ.pop("LD_PRELOAD", None)  # only this process uses the preloaded malloc; the compilers and the tuning that it starts do not
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        torch.manual_seed(0)
        model, self.inputs = MAKERS[name]()
        model.eval()
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        wanted = model(*self.inputs) if contender != "eager" else None
        self.function = compiled(model, contender, trials)
        start = time.perf_counter()
        made = self.function(*self.inputs)
        self.facts = {"first_call_s": round(time.perf_counter() - start, 2), "difference": difference(made, wanted) if wanted is not None else 0}
        for _ in range(3):
            self.call()
        if contender == "warploom":
            import warploom.torch

            reports = warploom.torch.report()
            self.facts["kernels"] = sum(report["kernels"] for report in reports)
            self.facts["eager"] = {why: n for report in reports for why, n in report["eager"].items()}
        self.facts["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

    def call(self):
        self.function(*self.inputs)


def child(name, contender, threads, trials):
    import peers

    replies = peers.begin(threads)
    made = Contender(name, contender, threads, trials)
    peers.serve(made, made.facts, replies)


def measure(name, options):
    import peers
    from run import Child

    row, running, samples = {"name": name, "contenders": {}}, {}, {}
    for contender in options.contenders:
        try:
            command = [sys.executable, __file__, contender, "--child", name, options.threads, options.trials]
            # All contenders use the same malloc, and a cache folder of this benchmark instead of the user's.
            environment = peers.environment("torch", options.threads) | {"XDG_CACHE_HOME": str(ROOT / "build/bench/cache")}
            started = Child(command, env=environment)
            row["contenders"][contender] = started.read()
            running[contender], samples[contender] = started, []
        except RuntimeError as error:
            row["contenders"][contender] = {"failed": str(error)[-300:]}
    order = list(running)
    for _ in range(options.rounds):
        random.shuffle(order)
        for contender in order:
            time.sleep(options.gap)
            samples[contender] += running[contender].ask(f"time {options.seconds}")["ns"]
    for contender, taken in samples.items():
        running[contender].close()
        row["contenders"][contender] |= {"median_ns": statistics.median(taken), "least_ns": min(taken), "samples": len(taken)}
    return row


def ratios(row):
    """Returns the best other contender's time divided by Warploom's: by medians and by least samples."""
    own, others = row["contenders"].get("warploom", {}), [one for name, one in row["contenders"].items() if name != "warploom"]
    if "median_ns" not in own:
        return None
    return tuple(min(one[key] for one in others if key in one) / own[key] for key in ("median_ns", "least_ns"))


def table(rows, contenders):
    lines = ["| model | " + " | ".join(contenders) + " | over the best, median | least | left to eager | largest difference |"]
    lines.append("|---" * (len(contenders) + 5) + "|")
    for row in rows:
        cells = []
        for contender in contenders:
            one = row["contenders"].get(contender, {})
            cells.append(f"{one['median_ns'] / 1e6:.3g}, {one['least_ns'] / 1e6:.3g}" if "median_ns" in one else "failed")
        own, ratio = row["contenders"].get("warploom", {}), ratios(row)
        cells += [f"{one:.2f}" for one in ratio] if ratio else ["–", "–"]
        cells += [str(sum(own.get("eager", {}).values())), f"{own.get('difference', float('nan')):.1g}"]
        lines.append(f"| {row['name']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--trials", type=int, default=16, help="per group, for Warploom's tuning")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="per contender and round")
    parser.add_argument("--gap", type=float, default=0.1, help="seconds between contenders")
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS)
    return parser.parse_args()


def main():
    if "--child" in sys.argv:
        return child(sys.argv[3], sys.argv[1], int(sys.argv[4]), int(sys.argv[5]))
    from models import MAKERS

    options = parsed()
    (ROOT / "build/bench").mkdir(parents=True, exist_ok=True)
    file = results_file(folder=options.out)
    rows = []
    for name in options.only or MAKERS:
        rows.append(measure(name, options))
        file.write_text(json.dumps({"threads": options.threads, "trials": options.trials, "rows": rows}, indent=1))
        print(table(rows[-1:], options.contenders), flush=True)
    print(table(rows, options.contenders))
    wrong = [row["name"] for row in rows if row["contenders"].get("warploom", {}).get("difference", 0) > BOUND]
    measured = [ratio for row in rows if (ratio := ratios(row))]
    if measured:
        print(f"geometric mean {statistics.geometric_mean(r for r, _ in measured):.2f} by medians, {statistics.geometric_mean(r for _, r in measured):.2f} by least samples")
    if wrong:
        sys.exit(f"other results than eager's: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
