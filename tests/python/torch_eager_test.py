#!/usr/bin/env python3
"""torch.compile(.., backend="warploom") gives eager's results even where PyTorch's decompositions of operators differ from eager: with
infinities and NaN in a few elements, and in the strides of results."""

import sys

from harness import expect, python_package, torch_test


def permuted(x):
    return x.movedim(0, -1).contiguous().movedim(-1, 0)


def gapped(torch, x):
    return torch.stack([x, x], -1)[..., 0]


def cases(torch):
    """Returns a dict: name -> a function and its arguments."""
    F, inf, nan = torch.nn.functional, float("inf"), float("nan")
    last = {"memory_format": torch.channels_last}
    line = torch.tensor([[[1.0, 2.0, inf, inf, 3.0, -inf, nan, 4.0]]])
    square = torch.stack([line, line * 2, line + 1], dim=-2)
    image = torch.arange(1.0, 25.0).view(1, 1, 4, 6).clone()
    image[0, 0, 0, 0] = inf
    grid = torch.tensor([[nan, 0.1], [0.2, 0.3], [5.0, 5.0], [inf, 0.2], [-1.1, 0.5], [0.4, nan], [-0.9, -0.7], [-7.0, 0.1]]).view(1, 2, 4, 2)
    normal, wide = torch.randn(4, 3, 5), torch.randn(2, 8, 5, 7)
    batch = torch.zeros(3), torch.ones(3), torch.randn(3), torch.randn(3)
    updates = torch.tensor([[1.0, inf], [2.0, 3.0], [nan, -inf]])
    keys = torch.full((1, 1, 4, 8), -inf)
    found = {
        "batch_norm": (lambda x: F.batch_norm(x, *batch), permuted(normal)),
        "batch_norm of a batch": (lambda x: F.batch_norm(x, None, None, training=True), permuted(normal)),
        "batch_norm, channels last": (lambda x: F.batch_norm(x, torch.zeros(8), torch.ones(8)), wide.contiguous(**last)),
        "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (3, 4)), wide.contiguous(**last)),
        "adaptive_avg_pool1d": (lambda x: F.adaptive_avg_pool1d(x, 2), normal.mT.contiguous().mT),
        "area": (lambda x: F.interpolate(x, size=3, mode="area"), normal.mT.contiguous().mT),
        "select_scatter": (lambda x, y: torch.select_scatter(x, y, 1, -2), permuted(normal), torch.randn(4, 5)),
        "select_scatter, gaps": (lambda x, y: x.select_scatter(y, 0, 1), gapped(torch, normal), torch.randn(3, 5)),
        "nearest": (lambda x: F.interpolate(x, scale_factor=2), permuted(normal)),
        "nearest-exact": (lambda x: F.interpolate(x, scale_factor=(2.0, 1.5), mode="nearest-exact"), wide.contiguous(**last)),
        "bilinear": (lambda x: F.interpolate(x, scale_factor=(2.0, 1.5), mode="bilinear"), square.view(1, 1, 3, 8)),
        "bilinear of bytes": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), torch.randint(0, 256, (1, 3, 7, 9), dtype=torch.uint8)),
        "bilinear, channels last": (lambda x: F.interpolate(x, size=(9, 8), mode="bilinear"), wide.contiguous(**last)),
        "index_put": (lambda x, y: x.index_put((torch.tensor([3, 0, 3]),), y, accumulate=True), torch.zeros(5, 2), updates),
        "index_add": (lambda x, y: x.index_add(0, torch.tensor([3, 0, 3]), y), torch.zeros(5, 2), updates),
        "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), torch.ones(1, 1, 3, 8), keys, torch.randn(1, 1, 4, 8)),
    }
    for size, corners in ((16, False), (8, False), (13, True)):
        found[f"linear {size} {corners}"] = (lambda x, size=size, corners=corners: F.interpolate(x, size=size, mode="linear", align_corners=corners), line)
    for number, mode in enumerate(("bilinear", "nearest", "bicubic")):
        for padding in ("zeros", "border", "reflection"):
            function = lambda x, g, mode=mode, padding=padding, corners=number == 1: F.grid_sample(x, g, mode, padding, corners)  # noqa: E731
            found[f"grid_sample {mode} {padding}"] = (function, image, grid)
    found["grid_sample, transposed"] = (lambda x, g: F.grid_sample(x, g, align_corners=False), image.mT.contiguous().mT, grid)
    return found


def difference(torch, got, want):
    if [n for n, e in zip(got.stride(), got.shape) if e != 1] != [n for n, e in zip(want.stride(), want.shape) if e != 1]:
        return f"strides {got.stride()}, not {want.stride()}"
    near = torch.isclose(got, want, rtol=1e-5, atol=1e-5, equal_nan=True)
    return "" if near.all() else f"{got[~near][:5].tolist()}, not {want[~near][:5].tolist()}, at {(~near).nonzero()[:5].tolist()}"


def child():
    sys.path.insert(0, str(python_package()))
    import torch
    import warploom.torch

    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    wrong = []
    for name, (function, *given) in cases(torch).items():
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="warploom", options={"tune": "first", "trials": 1, "kernels_alone": True}, dynamic=False)
        found = difference(torch, compiled(*given), function(*given))
        if found:
            wrong.append(f"{name}: {found}")
    expect(not wrong, "\n".join(wrong))
    left = set().union(*(entry["eager"] for entry in warploom.torch.report()))
    expect(left == {"aten.upsample_bilinear2d.default"}, f"left to eager: {left}")
    print("as eager ok")


if __name__ == "__main__":
    sys.exit(torch_test(__file__, child, timeout=600))
