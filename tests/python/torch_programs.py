"""Programs for the differential test of torch.compile's backend: chains of 2 to 8 operators on inputs of all types, strides and odd
extents, with extreme values among them. A seed determines everything."""

import math

import numpy as np
import torch

F = torch.nn.functional
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
TYPES = (torch.float32,) * 8 + FLOATS + INTEGERS + (torch.int64, torch.int32, torch.bool)
EXTENTS = (1, 1, 2, 3, 5, 7, 13, 63, 64, 65)
MOST = 1 << 14  # largest number of elements of a value

REAL = (
    "abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan tanh sigmoid erf erfc atan asin acos sinh cosh asinh acosh atanh "
    "floor ceil round trunc sign relu square frac isnan isinf signbit isfinite sgn deg2rad logit nan_to_num"
).split()
ACTIVATIONS = "gelu silu softplus hardswish hardsigmoid leaky_relu elu relu6 softsign mish selu hardtanh logsigmoid hardshrink softshrink tanhshrink celu".split()
WHOLE = "abs neg sign square relu bitwise_not".split()
PAIRS = "add sub mul div maximum minimum fmax fmin pow remainder fmod atan2 hypot copysign eq ne lt le gt ge floor_divide true_divide xlogy heaviside".split()
PAIRS_OF_INTEGERS = "add sub mul maximum minimum eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor true_divide logical_and logical_or".split()
PAIRS_OF_BOOLS = "logical_and logical_or logical_xor eq ne bitwise_and bitwise_or bitwise_xor maximum mul add".split()


class Chooser:
    """Random choices that depend only on a seed."""

    def __init__(self, seed):
        self._generator = torch.Generator().manual_seed(seed)

    def below(self, count):
        return int(torch.randint(count, (), generator=self._generator))

    def one(self, of):
        return of[self.below(len(of))]

    def chance(self, part):
        return float(torch.rand((), generator=self._generator)) < part

    def tensor(self, shape):
        return torch.randn(shape, generator=self._generator, dtype=torch.float64)

    def mask(self, shape, part):
        return torch.rand(shape, generator=self._generator) < part

    def indices(self, count, shape):
        return torch.randint(count, shape, generator=self._generator)


def extremes(dtype):
    if dtype is torch.bool:
        return [0, 1]
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        powers = [2**n + d for n in (3, 7, 8, 15, 24, 31, 53) for d in (-1, 0, 1)]
        return [n for n in (0, 1, -1, 2, info.min, info.max, info.min + 1, info.max - 1, *powers) if info.min <= n <= info.max]
    info = torch.finfo(dtype)
    powers = [2.0**n * (1 + d * info.eps) for n in (-3, 0, 1, 4, 10) for d in (-1, 0, 1)]
    return [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -3.0, info.max, -info.max, info.tiny, info.tiny / 8, -info.tiny / 8, math.inf, -math.inf, math.nan, 88.9, -104.0, *powers]


def values(choose, shape, dtype, wild):
    """Returns a random tensor. `wild`: the share of its elements that are extreme values."""
    if dtype is torch.bool:
        return choose.mask(shape, 0.5)
    made = choose.tensor(shape) * choose.one((1, 1, 3, 30))
    made = made.to(dtype) if dtype.is_floating_point else (made * 5).abs().to(dtype) if dtype is torch.uint8 else (made * 5).to(dtype)
    if wild:
        known = torch.tensor(extremes(dtype), dtype=dtype)
        made = torch.where(choose.mask(shape, wild), known[choose.indices(len(known), shape)], made)
    return made


def laid_out(x, how):
    """Returns the same values with other strides; `how` is one of LAYOUTS."""
    if how == "transposed" and x.dim() > 1:
        return x.mT.contiguous().mT
    if how == "sliced" and x.dim() > 0:
        wider = torch.stack([x, x.flip(0)], dim=-1).flatten(-2)  # x is every second element of the longer tensor
        return torch.cat([wider[:1], wider])[1:][..., ::2]
    if how == "permuted" and x.dim() > 2:
        return x.movedim(0, -1).contiguous().movedim(-1, 0)
    if how == "channels last" and x.dim() in (4, 5):
        return x.contiguous(memory_format=torch.channels_last if x.dim() == 4 else torch.channels_last_3d)
    if how == "offset" and x.dim() > 0:
        return torch.cat([x.flatten()[:3], x.flatten()])[min(3, x.numel()) :].view(x.shape)
    return x


LAYOUTS = ("contiguous", "transposed", "permuted", "sliced", "channels last", "offset", "expanded")


def elementwise(program, x):
    if x.dtype is torch.bool:
        return "logical_not", torch.logical_not, ()
    if x.dtype.is_floating_point and program.choose.chance(0.25):
        name = program.choose.one(ACTIVATIONS)
        return name, getattr(F, name), ()
    name = program.choose.one(REAL if x.dtype.is_floating_point else WHOLE + REAL if program.choose.chance(0.2) else WHOLE)
    return name, getattr(torch, name, None) or getattr(F, name), ()


def pair(program, x):
    other = program.other(x)
    y = program.known[other]
    kinds = {x.dtype, y.dtype}
    if kinds == {torch.bool}:
        name = program.choose.one(PAIRS_OF_BOOLS)
    else:
        name = program.choose.one(PAIRS_OF_INTEGERS if not any(kind.is_floating_point for kind in kinds) else PAIRS)
    return name, getattr(torch, name), (other,)


def with_number(program, x):
    names = ("add", "sub", "mul", "div", "pow", "eq", "lt", "ge", "remainder", "fmod", "floor_divide", "rsub")
    name, number = program.choose.one(names), program.number(x)
    if not x.dtype.is_floating_point and name in ("remainder", "fmod", "floor_divide", "div") and number == 0:
        number = 4
    function = getattr(torch, name)
    return f"{name} {number}", lambda a: function(a, number), ()


def bounded(program, x):
    low, high = program.number(x), program.number(x)
    kind = program.choose.below(4)
    if kind == 0:
        return f"clamp {low} {high}", lambda a: torch.clamp(a, low, high), ()
    if kind == 1:
        return f"clamp min {low}", lambda a: torch.clamp(a, min=low), ()
    if kind == 2:
        return f"masked_fill {low}", lambda a: a.masked_fill(a > high, low), ()
    other = program.other(x)
    return "where", lambda a, b: torch.where(a > low, a, b), (other,)


def of_three(program, x):
    other, third, scale = program.other(x), program.other(x), program.choose.one((1, 2, 0.5))
    name = program.choose.one(("lerp", "addcmul", "addcdiv", "add alpha", "lerp number"))
    addcdiv = torch.ops.aten.addcdiv.default  # Dynamo turns torch.addcdiv into value * (a / b), which overflows elsewhere than eager's value * a / b
    functions = {
        "lerp": torch.lerp, "addcmul": lambda a, b, c: torch.addcmul(a, b, c, value=scale), "addcdiv": lambda a, b, c: addcdiv(a, b, c, value=scale),
        "add alpha": lambda a, b, c: torch.add(a, b, alpha=scale) - c, "lerp number": lambda a, b, c: torch.lerp(a, b, scale) * c,
    }  # fmt: skip
    return f"{name} {scale}", functions[name], (other, third)


def axis_of(program, x):
    return program.choose.below(x.dim()) - x.dim() * program.choose.below(2)


def reduced(program, x):
    dim, keep = axis_of(program, x), program.choose.chance(0.5)
    names = "sum mean amax amin prod argmax argmin any all max min cumsum".split()
    if x.dtype.is_floating_point:
        names += ["var", "std", "logsumexp", "norm", "max", "argmax"]
    name = program.choose.one(names)
    if name in ("max", "min"):
        return f"{name} {dim}", lambda a: getattr(a, name)(dim, keep)[1 if keep else 0], ()
    if name == "cumsum":
        return f"cumsum {dim}", lambda a: a.cumsum(dim), ()
    if name == "norm":
        return f"norm {dim}", lambda a: torch.linalg.vector_norm(a, dim=dim, keepdim=keep), ()
    if program.choose.chance(0.15) and name in ("sum", "mean", "amax", "any", "prod", "argmax"):
        return f"{name} of all", lambda a: getattr(a, name)(), ()
    return f"{name} {dim} {keep}", lambda a: getattr(a, name)(dim=dim, keepdim=keep), ()


def along(program, x):
    """A softmax, a norm or another operator along an axis."""
    if not x.dtype.is_floating_point:
        return reduced(program, x)
    dim, other = axis_of(program, x), program.other(x)
    names = {
        "softmax": lambda a, b: a.softmax(dim), "log_softmax": lambda a, b: a.log_softmax(dim), "layer_norm": lambda a, b: F.layer_norm(a, a.shape[-1:]),
        "glu": lambda a, b: F.glu(torch.cat([a, a], -1)), "normalize": lambda a, b: F.normalize(a, dim=dim), "rms_norm": lambda a, b: F.rms_norm(a, a.shape[-1:]),
        "mse_loss": lambda a, b: F.mse_loss(a, b), "cosine": lambda a, b: F.cosine_similarity(a, b, dim=dim),
    }  # fmt: skip
    name = program.choose.one(sorted(names))
    return f"{name} {dim}", names[name], (other,)


def viewed(program, x):
    choose = program.choose
    dim = axis_of(program, x)
    extent = x.shape[dim]
    start, step = choose.below(extent), 1 + choose.below(3)
    order = torch.randperm(x.dim(), generator=choose._generator).tolist()
    names = {
        "mT": lambda a: a.mT, f"permute {order}": lambda a: a.permute(order), "unsqueeze": lambda a: a.unsqueeze(dim), "squeeze": lambda a: a.squeeze(),
        "flatten": lambda a: a.flatten(), f"select {dim} {start}": lambda a: a.select(dim, start), "reshape": lambda a: a.reshape(-1, a.shape[0]),
        f"narrow {dim} {start}": lambda a: a.narrow(dim, start, extent - start), f"step {step}": lambda a: a[..., ::step], f"flip {dim}": lambda a: a.flip(dim),
        f"roll {start}": lambda a: a.roll(start, dim), "cat": lambda a: torch.cat([a, a], dim), "stack": lambda a: torch.stack([a, a], dim),
        "chunk": lambda a: a.chunk(2, dim)[-1], "expand": lambda a: a.unsqueeze(0).expand(2, *a.shape), "diagonal": lambda a: a.diagonal(dim1=0, dim2=-1),
        "repeat": lambda a: a.repeat(2, *[1] * (a.dim() - 1)), "pad": lambda a: F.pad(a, (1, 2)), "tril": lambda a: a.tril(), "triu": lambda a: a.triu(1),
        "unfold": lambda a: a.unfold(dim, min(3, extent), 2), "clone": lambda a: a.clone(), "contiguous": lambda a: a.contiguous(),
        "movedim": lambda a: a.movedim(0, -1), "view_as": lambda a: a.contiguous().view(-1), "swap": lambda a: a.transpose(0, -1), "detach": lambda a: a.detach(),
        "as_strided": lambda a: a.as_strided((2, 2), (1, 1)), "strided copy": lambda a: a.contiguous().as_strided((2,), (1,)) + 0,
    }  # fmt: skip
    name = choose.one(sorted(names))
    return name, names[name], ()


def indexed(program, x):
    choose, dim = program.choose, axis_of(program, x)
    index = choose.indices(x.shape[dim], (choose.one((1, 3, 5)),))
    at = choose.indices(x.shape[dim], tuple(x.shape))
    names = {
        "index_select": lambda a: a.index_select(dim, index), "gather": lambda a: a.gather(dim, at), "take_along": lambda a: torch.take_along_dim(a, at, dim),
        "index": lambda a: a[index % a.shape[0]], "index_add": lambda a: a.index_add(dim, index, a.index_select(dim, index)),
        "scatter": lambda a: a.scatter(dim, at.select(dim, 0).unsqueeze(dim), a.narrow(dim, 0, 1)), "index_fill": lambda a: a.index_fill(dim, index, 1),
        "embedding": lambda a: F.embedding(index % a.shape[0], a.flatten(1)) if a.dim() > 1 and a.is_floating_point() else a[0:1],
    }  # fmt: skip
    name = choose.one(sorted(names))
    return f"{name} {dim}", names[name], ()


def cast(program, x):
    dtype = program.choose.one(TYPES)
    # PyTorch does not define casts to an integer type of numbers that are outside its range.
    if x.dtype.is_floating_point and not dtype.is_floating_point and dtype is not torch.bool:
        return f"clamped to {dtype}", lambda a: a.nan_to_num(0.0, 100.0, 0.0).clamp(0, 100).to(dtype), ()
    return f"to {dtype}", lambda a: a.to(dtype), ()


def multiplied(program, x):
    if not x.dtype.is_floating_point:
        return pair(program, x)
    if x.dim() == 4 and program.choose.chance(0.7):
        kind = program.choose.below(3)
        if kind == 0:
            return "conv", lambda a: F.conv2d(a, a[:1, :, :1, :1].expand(2, -1, 2, 1), padding=1), ()
        if kind == 1:
            return "max_pool", lambda a: F.max_pool2d(a, 2, 1, 1), ()
        return "avg_pool", lambda a: F.avg_pool2d(a, 2, 1, 1), ()
    if program.choose.chance(0.2):
        return "attention", lambda a: F.scaled_dot_product_attention(*[a.flatten(1)[None, None, :16, :16]] * 3, attn_mask=(a.flatten(1)[:16, :1] > 0).mT[None, None]), ()
    return "product", lambda a: (a @ a.mT) if a.dim() > 1 else a @ a, ()


KINDS = (elementwise,) * 5 + (pair,) * 4 + (with_number,) * 2 + (bounded, of_three) + (reduced,) * 2 + (along, viewed, viewed, viewed, indexed, cast, multiplied)


# Operators that compute each element without adding up several elements.
_ONE_BY_ONE = {*REAL, *ACTIVATIONS, *WHOLE, *PAIRS, *PAIRS_OF_INTEGERS, *PAIRS_OF_BOOLS, "clamp", "where", "masked_fill", "clamped", "to", "amax", "amin", "max", "min"}


def _exact_where_nan(name, value, x, y):
    """Returns a remainder that is exact where eager's quotient overflows and its result is therefore NaN."""
    y = y if isinstance(y, torch.Tensor) else torch.tensor(y)
    with np.errstate(invalid="ignore"):
        # NumPy computes the remainder in f64, since eager computes the quotient in f64 too.
        rest = torch.from_numpy(np.asarray(np.fmod(x.double().numpy(), y.double().numpy())))
    if name == "remainder":
        rest = torch.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)
    return torch.where(value.isnan() & rest.isfinite(), rest.to(value.dtype), value)


def _attention_by_rule(value, x):
    """Returns attention as docs/numerics.md defines it. Rows with a score of NaN or infinity are NaN, where eager returns 0. Rows without a
    key are 0, where eager multiplies values that are not finite by 0."""
    x = x.flatten(1)[:16, :16].double()
    scores = (x @ x.mT).float() + torch.zeros(1, len(x)).masked_fill(~(x[:, :1] > 0).mT, -math.inf)
    bad, alone = (scores.isnan() | (scores == math.inf)).any(-1, keepdim=True), (scores == -math.inf).all(-1, keepdim=True)
    return value.where((value != 0) | ~bad, math.nan).where(~(value.isnan() & alone), 0)


class Program:
    """A chain of operators. inputs: shape and dtype of each argument; two arguments are of one shape and dtype, and a third one
    broadcasts."""

    def __init__(self, seed):
        self.choose, self._seed = Chooser(seed), seed
        choose = self.choose
        shape = tuple(choose.one(EXTENTS) for _ in range(choose.one((1, 2, 2, 3, 4))))
        while math.prod(shape) > MOST:
            shape = shape[1:]
        dtype = choose.one(TYPES)
        smaller = tuple(1 if choose.chance(0.3) else n for n in shape)[choose.below(2) :]
        self.inputs = [(shape, dtype), (shape, dtype), (smaller, dtype if choose.chance(0.6) else choose.one(TYPES))]
        self.known = [values(choose, *kind, 0) for kind in self.inputs]
        self.steps, self.names = [], []
        length, tries = 2 + choose.below(7), 0
        while len(self.steps) < length and tries < 60:
            tries += 1
            self._grow()

    @property
    def products(self):
        """Returns whether an operator multiplies several elements of one tensor, so that numbers above 1 may overflow."""
        return any(name.startswith(("prod ", "cumprod")) for name in self.names)

    @property
    def sums(self):
        """Returns whether an operator may add up several elements, in an order that may differ from eager's."""
        return any(name.split()[0] not in _ONE_BY_ONE for name in self.names)

    def other(self, x):
        """Returns the number of a value that can be the second operand with x as the first."""
        places = [i for i, y in enumerate(self.known) if y.shape == x.shape and (y.dtype == x.dtype or self.choose.chance(0.3))]
        return 2 if self.choose.chance(0.3) else self.choose.one(places)

    def number(self, x):
        if not x.dtype.is_floating_point:
            return self.choose.one((0, 1, -1, 2, 3, 7, 255, 1.5)) if x.dtype is not torch.bool else 1
        return self.choose.one((0.0, 1, 2, -1.5, 0.1, 3, 1e-3, 100, math.inf))

    def _grow(self):
        at = len(self.known) - 1 if self.steps and self.choose.chance(0.8) else self.choose.below(len(self.known))
        x = self.known[at]
        if x.dim() == 0:
            at, x = 0, self.known[0]
        name, function, others = self.choose.one(KINDS)(self, x)
        operands = (at, *others)
        try:
            made = function(*(self.known[i] for i in operands))
        except (RuntimeError, TypeError, IndexError, ValueError):  # PyTorch does not support the function for these operands
            return
        if not 0 < made.numel() <= MOST or made.dtype.is_complex:
            return
        self.steps.append((function, operands))
        self.names.append(f"{name} {operands}")
        self.known.append(made)

    def run(self, given, after=None, by_rule=False):
        """Returns the values that no operator uses. after: a function that changes each result. by_rule: results that docs/numerics.md
        defines otherwise than eager mode are computed as it defines them."""
        known = list(given)
        for name, (function, operands) in zip(self.names, self.steps, strict=True):
            value = function(*(known[i] for i in operands))
            if by_rule and name.startswith(("remainder", "fmod")) and value.dtype.is_floating_point:
                word, *number = name.split()
                value = _exact_where_nan(word, value, known[operands[0]], known[operands[1]] if len(operands) > 1 else float(number[0]))
            if by_rule and name.startswith("attention"):
                value = _attention_by_rule(value, known[operands[0]])
            if by_rule and name.startswith("layer_norm"):  # the result for equal elements is 0, even if their squares overflow
                x = known[operands[0]]
                value = value.where(~(value.isnan() & x.isfinite() & (x.amax(-1, keepdim=True) == x.amin(-1, keepdim=True))), 0)
            if after is not None:
                # The terms 1 + erf(x) and 1 - tanh(x) / x have rounding errors relative to 1, also where their results are small.
                if name.startswith(("gelu", "tanhshrink")):
                    x = known[operands[0]]
                    value = value + torch.where(x.abs() < 20, x, 0) * (after(torch.ones_like(x)) - 1) / 2
                if name.startswith(("sigmoid", "mish", "silu", "glu")):  # 1 / (1 + exp(-x)) becomes 0 where exp(-x) overflows
                    info, x = torch.finfo(torch.promote_types(value.dtype, torch.float32)), known[operands[0]].clamp(-1000, 1000).nan_to_num(0)
                    by = (after(torch.ones_like(value)) - 1) / torch.finfo(value.dtype).eps
                    value = value + (1 if name.startswith("sigmoid") else x) * by * (info.tiny / 16)
                # Alpha * b and the sum may be rounded separately, so the error of one rounding of x is added.
                if name.startswith("add alpha"):
                    x = known[operands[0]]
                    value = value + (after(x) - x).nan_to_num(0, 0, 0) if x.dtype.is_floating_point else value
                # The squares of small values may underflow, so an error of the smallest normal number is added.
                if name.startswith(("std", "var")):
                    info = torch.finfo(value.dtype)
                    value = value + (after(torch.ones_like(value)) - 1) / info.eps * info.tiny
                if name.startswith("log_softmax"):  # a result near 0 has the error of log(sum), which is relative to 1
                    value = value + (after(torch.ones_like(value)) - 1)
                # The error of a difference from the mean is relative to the largest difference. A difference that is as small as this error
                # may become 0.
                if name.startswith("layer_norm"):
                    by, largest = after(torch.ones_like(value)) - 1, value.nan_to_num(0, 0, 0).abs().max()
                    value = torch.where((by > 0) & (value.abs() <= 8 * torch.finfo(value.dtype).eps * largest), 0, value + by * largest)
                value = after(value)
            known.append(value)
        used = {i for _, operands in self.steps for i in operands}
        return tuple(value for i, value in enumerate(known[3:], 3) if i not in used)

    def arguments(self, turn):
        """Returns the arguments for a turn. In each block of four turns, extreme values become more frequent; in the first four turns, all
        arguments are contiguous."""
        choose = Chooser(self._seed * 1000 + turn)
        how = LAYOUTS[0] if turn < 4 else LAYOUTS[1 + (self._seed + turn // 4) % (len(LAYOUTS) - 1)]
        made = [values(choose, *kind, (0, 0.1, 0.4, 0.9)[turn % 4]) for kind in self.inputs]
        if how == "expanded" and made[0].dim() > 0:
            made[0] = made[0][:1].expand(made[0].shape)
        return [laid_out(x, how) for x in made]

    def __str__(self):
        return f"{[(list(shape), str(dtype)[6:]) for shape, dtype in self.inputs]}: {'; '.join(self.names)}"
