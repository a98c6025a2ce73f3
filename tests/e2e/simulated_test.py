#!/usr/bin/env python3
"""GPU kernels go through the whole service without a GPU: they are searched, verified, promoted and bundled on simulated GPUs. Short runs
search each graph for one target, and each target once."""

import graphs
from harness import WHOLE, Scratch, expect


def main():
    with Scratch() as scratch:
        for name, text, targets in (
            ("softmax", graphs.SOFTMAX, ("sim:hip", "sim:cuda")),
            ("feed_forward", graphs.FEED_FORWARD, ("sim:cuda", "sim:hip")),
        ):
            file = scratch.root / f"{name}.graph"
            file.write_text(text)
            for target in targets if WHOLE else targets[:1]:
                where = f"{name} on {target}"
                bundle = scratch.path(f"{name}_{target.replace(':', '_')}")
                # The greedy cover makes each matrix product a kernel of its own. Which kernels the default cover has depends on measured times.
                command = ("tune", file, "--target", target, "--trials", 6 if WHOLE else 3, "--cover", "greedy", "--out", bundle, "--json", "-")
                report = scratch.run("warploom", *command).json()
                expect(report["target"]["name"] == target, f"{where}: {report}")
                plans = [group["plan"] for group in report["groups"]]
                expect(all(f"target={target} " in plan for plan in plans), f"{where}: {plans}")
                if name == "feed_forward":
                    expect(sum("class=contract" in plan for plan in plans) == 2, f"{where}: {plans}")
                result = scratch.run("warploom", "run", bundle, "--check", "--repeat", 2, "--json", "-").json()
                expect(result["correct"], f"{where}: {result}")
                print(where, "ok", flush=True)


if __name__ == "__main__":
    main()
