#!/usr/bin/env python3
"""GPU kernels through the whole service without a GPU: searched, verified, promoted and bundled on simulated lanes."""

import graphs
from harness import Scratch, expect


def main():
    with Scratch() as scratch:
        for name, text in (("softmax", graphs.SOFTMAX), ("feed_forward", graphs.FEED_FORWARD)):
            file = scratch.root / f"{name}.graph"
            file.write_text(text)
            for target in ("sim:cuda", "sim:hip"):
                where = f"{name} on {target}"
                bundle = scratch.path(f"{name}_{target.replace(':', '_')}")
                # Measured times would decide which cover wins, and this test needs separate products.
                command = ("tune", file, "--target", target, "--trials", 6, "--cover", "greedy", "--out", bundle, "--json", "-")
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
