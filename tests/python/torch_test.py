#!/usr/bin/env python3
"""torch.compile(model, backend="warploom"): results are eager's, the report names what is left to eager mode, a second process tunes
nothing, changes of weights are noticed, sizes may vary, and training works. Needs PyTorch, which `tools/setup.sh peers` installs in
build/venv-peers."""

import sys
import time

from harness import BIN, Scratch, expect, torch_child, torch_python


def models(torch):
    nn, functional = torch.nn, torch.nn.functional

    class Convolutions(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.norm = nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16)
            self.grouped, self.last = nn.Conv2d(16, 16, 3, padding=1, groups=4), nn.Linear(16, 10)

        def forward(self, x):
            x = functional.max_pool2d(torch.relu(self.norm(self.first(x))), 2)
            return self.last(functional.silu(self.grouped(x)).mean((2, 3)))

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.norm = nn.Embedding(50, 24), nn.LayerNorm(24)
            self.attention, self.last = nn.MultiheadAttention(24, 4, batch_first=True), nn.Linear(24, 24)

        def forward(self, indices):
            x = self.norm(self.words(indices))
            return x + functional.gelu(self.last(self.attention(x, x, x, need_weights=False)[0]))

    class Mixed(nn.Module):
        def forward(self, x):
            halves = (x * 2).logcumsumexp(1).chunk(2, dim=1)  # the backend does not support logcumsumexp, so PyTorch runs it
            return torch.where(halves[0] > halves[1], halves[0].exp(), halves[1]), x.t().amax(0)

    class Stacked(nn.Module):
        def forward(self, x, cache):
            for layer in cache:
                x = torch.cat([layer, x]).softmax(0)[-2:]
            return x

    class Rows(nn.Module):
        """Operators that are lowered to several ops, or in several ways."""

        def __init__(self):
            super().__init__()
            self.spread = nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)

        def forward(self, x, places):
            pooled, at = functional.max_pool2d(x, 3, stride=2, padding=1, ceil_mode=True, return_indices=True)
            mean = functional.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)
            greatest, where = x.max(1)
            angles = torch.atan2(x, mean.mean()) + x.sinh() + torch.copysign(x, x.sin()) + torch.hypot(x, x + 1)
            rows = x.flatten(1)
            picked = rows[places, places.flip(0)], rows.diagonal(1), rows.unfold(1, 3, 2), rows.repeat(1, 2)
            whole = (places * 7 - 9) // 4, torch.div(places - 9, 4, rounding_mode="trunc")
            updated = rows.index_copy(1, places[:2], rows[:, :2]).cumsum(1), rows.scatter_add(1, rows.long() % 9, rows)
            return *updated, self.spread(x), pooled, at, mean, greatest, where, angles, x.argmin(), *picked, *whole

    return {
        "convolutions": (Convolutions().eval(), (torch.randn(2, 3, 32, 32),)),
        "attention": (Attention().eval(), (torch.randint(0, 50, (2, 7)),)),
        "mixed": (Mixed(), (torch.randn(6, 8),)),
        "rows": (Rows().eval(), (torch.randn(2, 4, 6, 7), torch.tensor([1, 0, -1, 1]))),
        "stacked": (Stacked(), (torch.randn(2, 8), torch.randn(3, 2, 8))),
    }


def trained(torch):
    nn, functional = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.taken, self.last = nn.Linear(12, 36), nn.Linear(12, 5)

        def forward(self, x):
            q, k, v = self.taken(x).view(1, 9, 3, 2, 6).permute(2, 0, 3, 1, 4)
            return self.last(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(9, 12))

    layers = nn.Sequential(nn.Linear(12, 20), nn.GELU(), nn.LayerNorm(20), nn.Linear(20, 5))
    return {"layers": (layers, torch.randn(9, 12)), "attention": (Attention(), torch.randn(9, 12))}


def same(torch, got, wanted):
    pairs = zip(got, wanted) if isinstance(wanted, tuple) else [(got, wanted)]
    return all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) and a.dtype == b.dtype for a, b in pairs)


def check_sizes(torch, backend, options):
    """A function that is called with several sizes has kernels for the first size, and right results for all sizes."""
    layers = torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.GELU(), torch.nn.LayerNorm(12))
    compiled = torch.compile(lambda x: layers(x).flatten() * x.shape[0], backend="warploom", options=options)
    backend._sizes.MOST_SIZES = 2  # number of sizes, after the first one, for each of which PyTorch makes a graph of its own
    before, kernels = len(backend.report()), []
    with torch.no_grad():
        for rows in (3, 5, 6, 5, 3, 7, 9):
            x = torch.randn(rows, 8)
            expect(same(torch, compiled(x), layers(x).flatten() * rows), f"{rows} rows: wrong results")
            kernels.append(sum(entry["kernels"] for entry in backend.report()[before:]))
    expect(kernels == [1, 2, 3, 3, 3, 3, 3], f"sizes: {kernels}, {backend.report()[before:]}")
    expect(all(not entry["eager"] for entry in backend.report()[before:]), f"sizes: {backend.report()[before:]}")


def child():
    sys.path.insert(0, str(BIN.parent / "python"))
    import torch
    import warploom.torch

    torch.manual_seed(0)
    options = {"tune": "first", "trials": 1}
    for name, (model, inputs) in models(torch).items():
        before = len(warploom.torch.report())
        with torch.no_grad():
            wanted = model(*inputs)
            compiled = torch.compile(model, backend="warploom", options=options)
            start = time.perf_counter()
            expect(same(torch, compiled(*inputs), wanted), f"{name}: wrong results")
            print(f"{name}: first call {time.perf_counter() - start:.2f} s")
            expect(same(torch, compiled(*inputs), wanted), f"{name}: wrong results of the second call")
            for parameter in model.parameters():
                parameter.mul_(1.5)
            expect(same(torch, compiled(*inputs), model(*inputs)), f"{name}: weights that changed were not noticed")
        taken = warploom.torch.report()[before]
        left = {"aten.logcumsumexp.default": 1} if name == "mixed" else {}
        expect(taken["kernels"] > 0 and taken["eager"] == left, f"{name}: {taken}")
        # Dynamo may pass one parameter as two inputs, and also passes the running statistics of a norm as inputs.
        expect(taken["weights"] >= len(list(model.parameters())), f"{name}: weights are no constants: {taken}")

    check_sizes(torch, warploom.torch, options)
    for name, (layer, x) in trained(torch).items():
        gradients = []
        for function in (layer, torch.compile(layer, backend="warploom", options=options)):
            layer.zero_grad()
            torch.nn.functional.mse_loss(function(x), torch.ones(9, 5)).backward()
            gradients.append(tuple(parameter.grad.clone() for parameter in layer.parameters()))
        expect(same(torch, gradients[1], gradients[0]), f"{name}: gradients differ from eager's")


def main():
    if "--child" in sys.argv:
        return child()
    torch_python()
    with Scratch() as scratch:
        for turn in "tuned", "known":
            start = time.perf_counter()
            done = torch_child(scratch, __file__, timeout=800)
            expect(done.returncode == 0, f"{turn}: {done.stdout}{done.stderr[-3000:]}")
            print(turn, f"{time.perf_counter() - start:.1f} s:", done.stdout.replace("\n", "; "))
        bundles = list((scratch.root / "cache/warploom/torch").glob("*/bundle"))
        expect(len(bundles) >= 7, f"{bundles}")
        texts = [bundle.with_name("model.graph").read_text() for bundle in bundles]
        stacked = [text for text in texts if text.count(': f32[2,8]') > 2]
        expect(len(stacked) == 1 and "f32[3,2,8]" not in stacked[0], "layers of a stack are not inputs of their own")


if __name__ == "__main__":
    sys.exit(main())
