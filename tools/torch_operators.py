#!/usr/bin/env python3
"""Writes docs/torch-operators.md: which of PyTorch's operators the backend of torch.compile computes by kernels, for which types, and
which are left to eager and why. It lowers the samples of PyTorch's own tests (OpInfo); nothing is compiled or run.

    build/venv-peers/bin/python tools/torch_operators.py [--check]

Needs a build of the Python package and the package expecttest (tools/requirements-further.txt). --check: exit code 1 if the page differs.
"""

import collections
import pathlib
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/torch-operators.md"
TYPES = {
    "f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8", "b1": "bool",
}  # fmt: skip
SAMPLES = 1
HEAD = """# Operators of PyTorch

Which of PyTorch's operators `torch.compile(.., backend="warploom")` computes by kernels, by the names of its tests (OpInfo); what is not listed stays with eager. Written by
`tools/torch_operators.py`, which asks the backend with the first sample of each operator and type; those of {version} are meant. In brackets: types that PyTorch has for the operator and
that stay with eager, or of which a sample does. What stays with eager has eager's results, and is said in a warning.

What this page says is what the backend takes, not that results were compared. `bench/torch_backend/operators.py` compares those in its scope with eager, with f32, also with extremes among the
values and at other strides; `tests/python/torch_fuzz.py` chains of those in `tests/python/torch_programs.py`, with all types. Where results differ is in [numerics](numerics.md#where-torchcompile-differs-from-eager).

Of {all} operators {whole} have kernels for each of their types here, {some} for some, {none} for none.
"""


def samples_of(torch, one, dtype):
    torch.manual_seed(0)
    made = []
    for sample in one.sample_inputs("cpu", dtype, requires_grad=False):
        leaves = torch.utils._pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
        if all(x.numel() > 0 for x in leaves if isinstance(x, torch.Tensor)):
            made.append(sample)
        if len(made) == SAMPLES:
            break
    return made


def why_eager(torch, one, sample):
    """Returns the reason why a sample is not computed by kernels alone, or None if it is."""
    from torch.fx.experimental.proxy_tensor import make_fx
    from warploom.torch._decompositions import decompositions
    from warploom.torch._lower import support_of

    flat, spec = torch.utils._pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
    places = [i for i, leaf in enumerate(flat) if isinstance(leaf, torch.Tensor)]

    def function(*tensors):
        leaves = list(flat)
        for place, tensor in zip(places, tensors):
            leaves[place] = tensor
        arguments, named = torch.utils._pytree.tree_unflatten(leaves, spec)
        return torch.utils._pytree.tree_leaves(one.op(*arguments, **named))

    try:
        traced = make_fx(torch.func.functionalize(function), decomposition_table=decompositions(), tracing_mode="fake")(*(flat[i] for i in places))
    except Exception as error:  # noqa: BLE001: torch.compile does not call a backend for functions that cannot be traced
        return f"not traced: {type(error).__name__}"
    reasons = [reason for reason in support_of(traced.graph).values() if reason is not None and "node that is not taken" not in reason]
    return reasons[0] if reasons else None


def rows(torch):
    """Returns for each operator the types with kernels, the types that are left to eager, and the most common reason for that."""
    from torch.testing._internal.common_methods_invocations import op_db

    found = {}
    for one in sorted(op_db, key=lambda one: (one.name, one.variant_test_name)):
        name = f"{one.name}/{one.variant_test_name}" if one.variant_test_name else one.name
        kernels, eager, why = [], [], collections.Counter()
        for ours, theirs in TYPES.items():
            dtype = getattr(torch, theirs)
            if dtype not in one.supported_dtypes("cpu"):
                continue
            try:
                samples = samples_of(torch, one, dtype)
            except Exception:  # noqa: BLE001: some samples need packages that are not installed
                samples = []
            reasons = [why_eager(torch, one, sample) for sample in samples]
            left = [reason for reason in reasons if reason is not None]
            (eager if left or not samples else kernels).append(ours)
            why.update(left[:1] if samples else ["no samples"])
        found[name] = kernels, eager, why.most_common(1)[0][0] if why else ""
    return found


def page(torch):
    found = rows(torch)
    whole = sum(1 for kernels, eager, _ in found.values() if kernels and not eager)
    some = sum(1 for kernels, eager, _ in found.values() if kernels and eager)
    head = HEAD.format(version=f"PyTorch {torch.__version__.split('+')[0]}", all=len(found), whole=whole, some=some, none=len(found) - whole - some)
    lines = [head, "| operator | types | why not more |", "|---|---|---|"]
    for name, (kernels, eager, why) in found.items():
        types = " ".join(kernels) + (f" ({' '.join(eager)})" if eager else "")
        reason = " ".join(why.splitlines()[0].split())[:90].replace("|", "\\\\|") if eager and why else ""
        lines.append(f"| `{name}` | {types.strip()} | {reason} |")
    return "\n".join(lines) + "\n"


def main():
    sys.path.insert(0, str(ROOT / "build/release/python"))
    import torch
    import warploom.torch  # noqa: F401

    warnings.simplefilter("ignore")
    torch.set_grad_enabled(False)
    made = page(torch)
    if "--check" in sys.argv:
        if PAGE.read_text() == made:
            return 0
        print("docs/torch-operators.md is not what tools/torch_operators.py writes")
        return 1
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
