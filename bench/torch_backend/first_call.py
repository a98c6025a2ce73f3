#!/usr/bin/env python3
"""How long the first call of a compiled module takes with empty caches: the backend of Warploom beside Inductor, each with its defaults, and
how fast the calls after it are. Each model and contender has a process of its own.

    build/venv-peers/bin/python bench/torch_backend/first_call.py [--only NAME ...] [--threads 2]

Needs the packages of tools/requirements-further.txt beside what `make bench-peers` installs. Prints a line for each process, and the ratios."""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CALLS = 30  # calls that are timed after the first one


def measure(name, contender, threads):
    """Compiles and calls a model in this process, and prints the times in seconds as JSON."""
    import models
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model, inputs = models.MAKERS[name]()
    model.eval()
    if contender == "warploom":
        sys.path.insert(0, str(ROOT / "build/release/python"))
        import warploom.torch  # noqa: F401  registers the backend, as importing torch registers Inductor
    with torch.no_grad():
        wanted = model(*inputs)
        begin = time.perf_counter()
        compiled = torch.compile(model, backend=contender, dynamic=False)
        found = compiled(*inputs)
        first = time.perf_counter() - begin

        def least(function):
            times = []
            for _ in range(CALLS):
                begin = time.perf_counter()
                function(*inputs)
                times.append(time.perf_counter() - begin)
            return min(times)

        pairs = zip(tensors(found), tensors(wanted), strict=True)
        apart = max(float((a.double() - b.double()).abs().max() / b.double().abs().max().clamp(min=1e-30)) for a, b in pairs)
        print(json.dumps({"first_s": first, "then_s": least(compiled), "eager_s": least(model), "difference": apart}))
        sys.stdout.flush()
        os._exit(0)  # a search in the background need not end


def tensors(made):
    return list(made) if isinstance(made, (tuple, list)) else [made]


def run(name, contender, threads):
    with tempfile.TemporaryDirectory() as caches:
        environment = dict(os.environ, XDG_CACHE_HOME=caches, TORCHINDUCTOR_CACHE_DIR=f"{caches}/inductor", HOME=caches)
        command = [sys.executable, __file__, "--process", name, contender, "--threads", str(threads)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=1800)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", metavar="NAME", help="these models of models.py")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--process", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.process:
        return measure(*asked.process, asked.threads)
    import models

    ratios = []
    for name in asked.only or models.MAKERS:
        rows = {contender: run(name, contender, asked.threads) for contender in ("warploom", "inductor")}
        for contender, row in rows.items():
            print(
                f"{name:14} {contender:9} first {row['first_s']:6.2f} s, then {1e3 * row['then_s']:8.3f} ms, eager {1e3 * row['eager_s']:8.3f} ms, "
                f"difference {row['difference']:.1e}",
                flush=True,
            )
        ratios.append([rows["warploom"][key] / rows["inductor"][key] for key in ("first_s", "then_s")])
    means = [math.exp(sum(math.log(row[i]) for row in ratios) / len(ratios)) for i in range(2)]
    print(f"of Inductor's time, geometric means: first call {means[0]:.2f} (at most {max(row[0] for row in ratios):.2f}), later calls {means[1]:.2f}")


if __name__ == "__main__":
    main()
