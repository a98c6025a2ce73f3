#!/usr/bin/env python3
"""The device check, built and run as on another machine: without a GPU it reports that there is no GPU; on a fake GPU every part of it
works."""

import json
import os
import subprocess
import sys

from fakes import FAKE
from harness import BIN, SOURCE, Scratch, expect, has_sanitizer, skip


def run(scratch, command, code, **environment):
    done = subprocess.run(
        [str(part) for part in command],
        env={**scratch.environment, "WARPLOOM_BIN_DIR": str(BIN), **environment},
        cwd=scratch.root,
        capture_output=True,
        text=True,
        timeout=600,
    )
    expect(done.returncode == code, f"{command}: exit code {done.returncode}, expected {code}\n{done.stdout}\n{done.stderr}")
    return done


def main():
    if has_sanitizer(BIN / "device_check"):
        skip("a sanitizer's libraries do not travel")
    with Scratch() as scratch:
        folder = scratch.path("check")
        # The fake NVRTC compiles the kernels, because the fake driver can run only code of the fake NVRTC.
        done = run(scratch, [sys.executable, SOURCE / "tools/device_check.py", "build", folder, "--quick", "--random", "1:3"], 0, LD_LIBRARY_PATH=str(FAKE))
        expect("MiB, for cuda:sm_90a" in done.stdout, done.stdout)

        absent = {"LD_LIBRARY_PATH": str(FAKE), "WARPLOOM_FAKE_ABSENT": "1"}
        run(scratch, [f"{folder}/run.sh", scratch.path("none.json")], 3, **absent)
        none = json.load(open(scratch.path("none.json")))
        expect(none["status"] == "no device for cuda:sm_90a here" and "libcuda" in none["missing"][0], none)

        # The folder is moved out of the source tree's reach, so that it cannot use anything of the tree.
        elsewhere = scratch.path("elsewhere")
        os.rename(folder, elsewhere)
        run(scratch, [f"{elsewhere}/run.sh", scratch.path("fake.json")], 0, LD_LIBRARY_PATH=str(FAKE))
        result = json.load(open(scratch.path("fake.json")))
        expect(result["status"] == "measured", result["status"])
        expect(result["device"]["name"] == "Fake GPU" and result["copy_gb_per_s"] > 0, result)
        ops = {row["op"] for row in result["workloads"]}
        expected = {"softmax", "log_softmax", "layer_norm", "rms_norm", "residual_layer_norm", "bias_gelu", "rotary", "transpose_add"}
        expect(expected | {"gemm", "gemm_tf32", "gemm_bias_gelu", "convolution", "causal_attention", "random"} == ops, ops)
        for row in result["workloads"]:
            expect(not row["failed"] and row["values_checked"] > 0 and row["best"]["of_copy"] > 0, row)
            expect(" class=cublaslt " not in row["best"]["plan"], row)
        of_library = {row["op"] for row in result["workloads"] if row.get("library", {}).get("ns", 0) > 0}
        expect(of_library == {"gemm", "gemm_tf32"}, of_library)
        print("ok")


if __name__ == "__main__":
    main()
