#!/usr/bin/env python3
"""GPU kernels through the whole service path without a GPU: searched, verified, promoted and bundled on simulated lanes."""

import graphs
from harness import Scratch, expect


def main():
    with Scratch() as scratch:
        file = scratch.root / "softmax.graph"
        file.write_text(graphs.SOFTMAX)
        for target in ("sim:cuda", "sim:hip"):
            bundle = scratch.path(target.replace(":", "_"))
            report = scratch.run("warploom", "tune", file, "--target", target, "--trials", 6, "--out", bundle, "--json", "-").json()
            expect(report["target"]["name"] == target, f"{target}: {report}")
            plans = [group["plan"] for group in report["groups"]]
            expect(all(f"target={target} " in plan for plan in plans), f"{target}: {plans}")
            result = scratch.run("warploom", "run", bundle, "--check", "--repeat", 2, "--json", "-").json()
            expect(result["correct"], f"{target}: {result}")
            print(target, "ok", flush=True)


if __name__ == "__main__":
    main()
