#!/usr/bin/env python3
"""Times of torch for the workloads of the device check, in the same run: torch_peers.py INDEX RESULT [--eager]
[--seconds S] adds its figures to RESULT. With --eager nothing is compiled. After S seconds no further workload begins.

Each contender runs in a CUDA graph of many calls, after a warm-up. The calls take turns among up to 16 sets of arguments,
together about three times as large as the L2. A figure is the median over repeated graphs. cuBLAS and cuDNN are
measured as torch's matmul and convolution, to show the machine's rates."""

import argparse
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def inputs_of(row):
    dtype, shape = DTYPES[row["dtype"]], row["shape"]
    new = lambda *shape: torch.randn(*shape, device="cuda", dtype=dtype)
    if row["op"] in ("gemm", "gemm_nt", "gemm_tf32", "gemm_bias_gelu"):
        m, n, k = shape
        return [new(m, k), new(n, k) if row["op"] == "gemm_nt" else new(k, n), new(n)]
    if row["op"] == "convolution":  # images are already padded and have channels last
        batch, side, channels, filters, window = shape
        last = lambda x: x.to(memory_format=torch.channels_last)
        padded = side + window - 1
        return [last(new(batch, channels, padded, padded)), last(new(filters, channels, window, window))]
    if row["op"] in ("attention", "causal_attention"):
        return [new(1, *shape) for _ in range(3)]
    m, n = shape
    if row["op"] == "rotary":
        return [new(m, 32, 128), new(m, 128), new(m, 128)]
    return [new(m, n), new(m, n), new(n), new(n)]


def rotary(x, c, s):
    low, high = x[..., :64], x[..., 64:]
    return x * c[:, None] + torch.cat((-high, low), -1) * s[:, None]


def by_tf32(a, b, bias):
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        return a @ b
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


OPS = {
    "softmax": lambda x, z, g, b: F.softmax(x, -1),
    "log_softmax": lambda x, z, g, b: F.log_softmax(x, -1),
    "layer_norm": lambda x, z, g, b: F.layer_norm(x, x.shape[-1:], g, b),
    "residual_layer_norm": lambda x, z, g, b: F.layer_norm(x + z, x.shape[-1:], g, b),
    "rms_norm": lambda x, z, g, b: F.rms_norm(x, x.shape[-1:], g, 1e-5),
    "bias_gelu": lambda x, z, g, b: F.gelu(x + g),
    "rotary": rotary,
    "transpose_add": lambda x, z, g, b: x.t() + z,
    "gemm": lambda a, b, bias: a @ b,
    "gemm_nt": lambda a, b, bias: a @ b.t(),
    "gemm_tf32": by_tf32,
    "gemm_bias_gelu": lambda a, b, bias: F.gelu(torch.addmm(bias, a, b)),
    "convolution": lambda x, w: F.conv2d(x, w),
    "attention": lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
    "causal_attention": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
}


def median_ns(function, sets):
    """Returns the median ns of one call, from graphs whose calls use all argument sets in turn."""
    for arguments in sets:
        function(*arguments)
    torch.cuda.synchronize()
    rounds = max(1, 20 // len(sets))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(rounds):
            for arguments in sets:
                function(*arguments)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    samples = []
    for repeat in range(25):
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        if repeat >= 5:
            samples.append(begin.elapsed_time(end) * 1e6 / (rounds * len(sets)))
    return statistics.median(samples)


def measure(row, l2_bytes, compiled):
    one = inputs_of(row)
    size = sum(t.numel() * t.element_size() for t in one)
    sets = [one] + [inputs_of(row) for _ in range(min(15, 3 * l2_bytes // size))]
    function = OPS[row["op"]]
    figures = {}
    contenders = {
        "eager": lambda: function,
    }
    if compiled:
        contenders["max_autotune"] = lambda: torch.compile(function, mode="max-autotune-no-cudagraphs", dynamic=False)
    for name, make in contenders.items():
        try:
            torch._dynamo.reset()
            figures[name] = median_ns(make(), sets)
        except Exception as error:  # a contender that fails is reported, and the others continue
            figures[name] = None
            figures[f"{name}_error"] = str(error)[:300]
    return figures


def yardsticks():
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    x = torch.randn(32, 256, 56, 56, device="cuda", dtype=torch.bfloat16).to(memory_format=torch.channels_last)
    w = torch.randn(256, 256, 3, 3, device="cuda", dtype=torch.bfloat16).to(memory_format=torch.channels_last)
    matmul = median_ns(lambda p: p @ p, [[a]])
    convolution = median_ns(lambda p: F.conv2d(p, w, padding=1), [[x]])
    return {
        "cublas_bf16_8192_tflops": 2 * 8192**3 / matmul / 1e3,
        "cudnn_conv3x3_bf16_tflops": 2 * 32 * 256 * 256 * 9 * 56 * 56 / convolution / 1e3,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("index")
    parser.add_argument("result")
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    begun = time.monotonic()
    index, path = json.load(open(options.index)), options.result
    result = json.load(open(path))
    properties = torch.cuda.get_device_properties(0)
    l2 = getattr(properties, "L2_cache_size", 64 << 20)
    rows = {row["name"]: row for row in result["workloads"]}
    for row in index["workloads"]:
        if row["name"] not in rows or row["op"] not in OPS or time.monotonic() - begun > options.seconds:
            continue
        figures = measure(row, l2, not options.eager)
        rows[row["name"]]["torch_ns"] = figures
        print(row["name"], figures, file=sys.stderr, flush=True)
    result["torch"] = {"version": torch.__version__, "device": properties.name, **yardsticks()}
    with open(path, "w") as out:
        json.dump(result, out, indent=1)


if __name__ == "__main__":
    main()
