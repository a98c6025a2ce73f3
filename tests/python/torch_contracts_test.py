#!/usr/bin/env python3
"""torch.compile(.., backend="warploom") keeps the contracts on which AOTAutograd and users rely: results, strides, dtypes and aliases are
those of eager mode, whatever the form of the weights; and one warning names the operators that are left to eager mode, with the reason."""

import logging
import math
import sys

from harness import BIN, expect, torch_test


def attention(torch, run):
    """Attention rows without a key are 0, so padding does not spread NaN to other tokens."""
    attend = torch.nn.functional.scaled_dot_product_attention
    q, none = torch.randn(2, 2, 5, 16), torch.tensor([[True] * 5] * 3 + [[False] * 5] * 2)
    yield run(lambda q, m: attend(q, q, q, attn_mask=m))(q, none)
    left = torch.zeros(2, 1, 1, 5).masked_fill(torch.tensor([0, 1])[:, None, None, None] > torch.arange(5), -math.inf)

    def two_layers(x, m):
        causal = torch.full((5, 5), -math.inf).triu(1)
        for _ in range(2):
            x = attend(x, x, x, attn_mask=m + causal)
        return x

    yield run(two_layers)(q, left)


def written_weights(torch, run):
    layers = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3)).eval()
    compiled, x = run(layers), torch.randn(2, 6)
    torch.nn.init.constant_(layers[0].weight, 0.1)
    yield compiled(x).clone()
    layers[0].weight.data.mul_(0.5)
    yield compiled(x).clone()
    layers[2].weight.detach().numpy()[0, 0] = 7
    yield compiled(x).clone()
    layers[2].bias.data = torch.tensor([1.0, 2.0, 3.0])
    yield compiled(x).clone()
    layers[0].weight.data = layers[0].weight.data.t().contiguous().t()  # the same weights with other strides
    yield compiled(x).clone()


def one_function_of_two_modules(torch, run):
    """A graph that several modules share is computed with the weights of the module that calls it."""
    layers = [torch.nn.Linear(4, 4).eval() for _ in range(3)]
    for number, layer in enumerate(layers):
        torch.nn.init.constant_(layer.weight, number + 1.0), torch.nn.init.zeros_(layer.bias)
    block = run(lambda x, w, b: torch.nn.functional.linear(x, w, b).relu())
    for layer in (*layers, *layers):
        yield block(torch.ones(2, 4), layer.weight, layer.bias)


def inference_mode(torch, run):
    with torch.inference_mode():
        layer = torch.nn.Linear(4, 2).eval()
        torch.nn.init.constant_(layer.weight, 1), torch.nn.init.zeros_(layer.bias)
        yield run(layer)(torch.ones(1, 4))


def strides(torch, run):
    """The strides of results are eager's, for inputs that are channels last, transposed, sliced or expanded, and for results that are views
    of others."""
    x = torch.randn(2, 3, 4, 5)
    layer = torch.nn.Conv2d(3, 8, 3, padding=1).eval().to(memory_format=torch.channels_last)
    y = run(layer)(x.to(memory_format=torch.channels_last))
    yield y, y.permute(0, 2, 3, 1).view(-1, 8)
    makers = (
        lambda t: t, lambda t: t.permute(3, 1, 0, 2), lambda t: t[:, :, ::2, 1:], lambda t: t[:1].expand(4, 3, 4, 5), lambda t: t.flatten()[7:67].view(3, 4, 5),
        lambda t: t.to(memory_format=torch.channels_last), lambda t: t.mT,
    )  # fmt: skip
    for make in makers:
        yield run(lambda t: (t * 2 + 1, t.relu().transpose(0, -1), t.exp()[..., 1:], t.sum(0), torch.cat([t, t]), t.abs().unsqueeze(0)))(make(x))
    yield run(lambda t: (t.relu().as_strided((3, 4), (1, 2), 5), t[1].mul(2).mT.as_strided((5, 2), (2, 1)), t.tanh()[1:].as_strided((2, 2), (1, 1), 0)))(x)
    yield run(lambda t: t.as_strided((2, 3), (3, 1), 2) * 2)(x[1:])
    yield run(lambda t: (torch.nn.functional.logsigmoid(t), torch.nn.functional.logsigmoid(t[0]), 2.0**t))(x.mT)
    y = torch.arange(1, x.mT.numel() + 1).reshape(x.mT.shape)
    yield run(lambda t, u: (t // u, torch.div(t, 2, rounding_mode="floor"), t.copysign(u[0, 0]), t.logaddexp(u.float()[:1]), t.logical_and(u[:1]), t.xlogy(u)))(x.mT, y)
    yield run(lambda t: (t.exp()[:, -1], t.exp()[:, :1].expand(2, 3, 4, 5)))(x)
    last = torch.randn(2, 4, 3, 5).to(memory_format=torch.channels_last)
    yield run(lambda t: (torch.nn.functional.channel_shuffle(t, 2), t.roll(1, 0), t.roll(0, 2), t.roll((1, 2), (1, 3)), t.roll(5)))(last)


def aliases(torch, run):
    """Functions that write into their inputs, inputs that share memory, and results that are inputs work as in eager mode."""

    def mutate(a, b):
        a.mul_(2)
        b[1:].add_(a[:-1])
        return a + b, a, b.view(-1), a.t()

    base = torch.arange(12.0).view(3, 4)
    yield *run(mutate)(base, torch.ones(3, 4)), base
    memory = torch.arange(12.0)
    yield *run(lambda a, b: (a.add_(1), b * 2))(memory[:8], memory[4:]), memory
    x = torch.randn(3, 3)
    y, z = run(lambda t: (t.view(9), t.detach().t()))(x)
    yield y, z, torch.tensor(y.data_ptr() == x.data_ptr() == z.data_ptr())
    yield run(lambda t, e: (t.sum() + e.sum(), e * 2, torch.cat([t, e[:, :3]]), t[:0] + 1))(x, torch.empty(0, 4))
    yield run(lambda t: (t.real * 2, t.imag + 1, t.conj().imag * 3))(torch.randn(3, dtype=torch.complex64))
    yield run(lambda t: t * 2)(torch.randn(3, dtype=torch.complex64).conj().imag)


def promotion(torch, run):
    t = torch.tensor
    pairs = (
        (t([200, 255], dtype=torch.uint8), t([-56, -1], dtype=torch.int8)), (t([True, False]), 2), (t([0.1, 0.2]), t(0.1, dtype=torch.float64)),
        (t([1.001, 2.001], dtype=torch.float16), t([1.0, 2.0], dtype=torch.bfloat16)), (t([1, 2]), 1.5), (t(3), t([2.5], dtype=torch.float16)),
        (t([200, 3], dtype=torch.uint8), 300), (t([16777217, 3]), t([16777216.0, 3.0])), (t([True, False]), t([0.5, 1.5])),
    )  # fmt: skip
    for a, b in pairs:
        torch._dynamo.reset()  # without a reset, Dynamo stops compiling a function after a few dtypes
        yield run(lambda a, b: (a == b, a != b, a < b, a >= b, a + b, a * b, torch.where(a == b, a, b) if isinstance(b, torch.Tensor) else a))(a, b)


def sizes(torch, run):
    """Functions that make tensors of sizes which vary between calls."""
    made = run(lambda x: x + torch.arange(x.shape[0])[:, None] * torch.ones(x.shape[1]).cumsum(0))
    for rows in (3, 4, 5, 4):
        yield made(torch.zeros(rows, 2))
    counted = run(lambda x: x[x > 0] * 2)
    for rows in (3, 4, 5):
        yield counted(torch.randn(rows))


def random_numbers(torch, run):
    """Random numbers are eager's, and so is the state of the generator afterwards."""
    torch.manual_seed(3)
    dropout = torch.nn.Dropout(0.5)
    yield run(lambda x: (dropout(x) + 1, torch.rand_like(x) * 2, torch.randn(3).exp(), torch.bernoulli(x.sigmoid())))(torch.ones(4, 5))
    yield torch.rand(2)


def functions(torch, run):
    """Functions have eager's results for large, infinite and NaN arguments, and so do indices of extremes if elements are NaN."""
    t, inf, nan = torch.tensor, math.inf, math.nan
    x = t([88.9, -89.2, inf, -inf, nan, 0.0, 1e-30, -3e38, 3e38, 2.0])
    yield run(lambda x, y: (x.cosh(), x.sinh(), x.asinh(), x.acosh(), x.atanh(), torch.hypot(x, y), torch.atan2(x, y), torch.atan2(y, y)))(x, x.flip(0))
    yield run(lambda x: (x.max(0)[1], x.argmin(), x.view(2, 5).max(1), x.view(2, 5).amin(0)))(x)
    pool = torch.nn.functional.max_pool2d
    image = t([[[[1.0, nan, 2, nan], [-inf, -inf, -inf, 3]]]])
    yield run(lambda x: pool(x, (1, 3), 1, (0, 1), return_indices=True))(image)


def arithmetic(torch, run):
    """Quotients, signs, interpolation, powers and variances have eager's results at arguments where simple formulas would give others."""
    t, inf, nan = torch.tensor, math.inf, math.nan
    a, b = t([nan, inf, -inf, 1, -1, 5, 0.9, -7]), t([1, -inf, 2, inf, inf, 0, 0.3, 2])
    yield run(lambda a, b: (a.sign(), torch.lerp(a, b, 0.5), torch.lerp(a, b, 0.25), a // b, a // 0.3, torch.div(a, b, rounding_mode="trunc"), a % b))(a, b)
    yield run(lambda h: (h.var(), h.std(0), torch.addcmul(h, h, h, value=0.1), h * 0.1))(t([300.0, -300, 10, 250], dtype=torch.float16))
    for narrow in (torch.float16, torch.bfloat16):  # eager rounds the scalar to the tensor's type, except in products and quotients
        yield run(lambda h: (h % 0.1, torch.fmod(h, 0.1), h**0.1, h + 0.1, 0.1 - h, h * 0.1, h / 0.1, h // 0.1))(t([-1, 2, 3.5, -0.25, 7], dtype=narrow))
    i = t([7, -7, 2**31 - 1, -(2**31), -3], dtype=torch.int32)
    yield run(lambda i: (i**3, i // 7, i // -7, i % -3, torch.fmod(i, 4), i.round(), i.trunc(), i.maximum(i.flip(0)), i.long() ** 3))(i)
    yield run(lambda b: (b.maximum(b.flip(0)), b.amax(), b.sum(), b.logical_xor(b.flip(0))))(i > 0)
    x = torch.randn(4, 4)
    with torch.autocast("cpu", torch.bfloat16):
        yield run(lambda x: ((x @ x).float() * 0, (x @ x).relu().argmax(0) * 0, (x @ x).softmax(0).sum(0).round()))(x)
    small = torch.tensor([0, 7, 200], dtype=torch.uint8)  # bounds of clamp that are outside of the range of uint8 saturate
    yield run(lambda t: (t.clamp(min=-1), t.clamp(max=300), torch.clamp(t, -5, 300), torch.nn.functional.hardtanh(t, -1, 300)))(small)


def encoder_layers(torch, run):
    """Operators that compute a whole encoder layer, with masks of each kind."""
    nn, x = torch.nn, torch.randn(2, 5, 16)
    padding, causal = torch.arange(5) > torch.tensor([[4], [2]]), torch.ones(5, 5, dtype=torch.bool).triu(1)
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()
    yield run(layer)(x), run(lambda x: layer(x, src_mask=causal, src_key_padding_mask=padding))(x)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True, activation="gelu").eval()
    yield run(lambda x: layer(x, src_mask=causal))(x), run(lambda x: layer(x, src_key_padding_mask=padding))(x)
    heads = nn.MultiheadAttention(16, 4, batch_first=True).eval()
    weights = (16, 4, heads.in_proj_weight, heads.in_proj_bias, heads.out_proj.weight, heads.out_proj.bias)
    yield run(lambda x: heads(x, x, x, key_padding_mask=padding))(x)
    yield run(lambda x: torch._native_multi_head_attention(x, x.relu(), x.relu(), *weights, padding, True, False, 1))(x)


CASES = (attention, written_weights, one_function_of_two_modules, inference_mode, strides, aliases, promotion, sizes, random_numbers, functions, arithmetic, encoder_layers)


def results(torch, case, backend):
    torch._dynamo.reset()
    torch.manual_seed(0)

    def run(function):
        return torch.compile(function, backend="warploom", options={"tune": "first", "trials": 1}) if backend else function

    with torch.no_grad():
        return [torch.utils._pytree.tree_leaves(made) for made in case(torch, run)]


def difference(torch, got, wanted):
    """Returns a message about a wrong result, or None."""
    if (got.dtype, got.shape, got.stride()) != (wanted.dtype, wanted.shape, wanted.stride()):
        return f"{got.dtype} {tuple(got.shape)} at {got.stride()}, not {wanted.dtype} {tuple(wanted.shape)} at {wanted.stride()}"
    near = torch.allclose(got.double(), wanted.double(), 1e-5, 1e-6, equal_nan=True) if not got.is_complex() else torch.equal(got, wanted)
    return None if near else f"{got} is not {wanted}"


class Said(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def check_warnings(torch):
    """One warning names the operators that are left to eager mode, with the reason. It is not repeated, and appears even if all operators
    are left to eager mode."""
    said = Said()
    logging.getLogger("warploom").addHandler(said)
    x = torch.randn(4, 4)
    for _ in range(2):
        torch._dynamo.reset()
        torch.compile(lambda x: x.logcumsumexp(0), backend="warploom")(x)
    expect(len(said.lines) == 1 and "logcumsumexp" in said.lines[0] and "1 of 1" in said.lines[0], said.lines)
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(torch.nn.LSTM(4, 4).eval(), backend="warploom")(torch.randn(3, 2, 4))
    expect(len(said.lines) == 2 and "LSTM" in said.lines[1], said.lines)


def check_errors(torch):
    """Errors that eager mode raises are raised as well."""
    wrong = ((lambda a: a // (a - a), "ZeroDivisionError"), (lambda a: a % 0, "ZeroDivisionError"), (lambda a: a**-1, "negative integer powers"))
    for function, message in wrong:
        try:
            torch._dynamo.reset()
            torch.compile(function, backend="warploom", options={"tune": "first", "trials": 1})(torch.tensor([1, 2]))
        except RuntimeError as error:
            expect(message in str(error), f"{error}")
        else:
            expect(False, f"nothing is raised, not {message}")


def child(*names):
    sys.path.insert(0, str(BIN.parent / "python"))
    import torch
    import warploom.torch

    wrong = []
    for case in CASES:
        if names and case.__name__ not in names:
            continue
        wanted, got = results(torch, case, None), results(torch, case, "warploom")
        for number, (theirs, ours) in enumerate(zip(wanted, got, strict=True)):
            for place, (a, b) in enumerate(zip(ours, theirs, strict=True)):
                found = difference(torch, a, b) if isinstance(b, torch.Tensor) else None
                if found:
                    wrong.append(f"{case.__name__} {number}, result {place}: {found}")
    expect(not wrong, "\n".join(wrong))
    unusable = [reason for part in warploom.torch.report() for reason in part["eager"] if "cannot be used" in reason]
    expect(not unusable, f"left to eager, but not by a rule: {unusable}")
    if not names:
        check_warnings(torch)
        check_errors(torch)


if __name__ == "__main__":
    sys.exit(torch_test(__file__, child, timeout=600))
