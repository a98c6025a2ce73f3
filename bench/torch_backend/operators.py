#!/usr/bin/env python3
"""PyTorch's own samples of its operators (OpInfo, forward) through the backend, then with extreme values among their floats and with other
strides: which operators give eager's results, dtypes and strides, which are computed by kernels alone, and what is left to eager and why.
Checks correctness and measures no times.

    build/venv-peers/bin/python bench/torch_backend/operators.py [--only WORD ...] [--dtype float32] [--samples 1] [--jobs 2]

Needs the packages of tools/requirements-further.txt. Prints a table and writes bench/results/torch/operators-DATE.json.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings

from compare import ROOT, results_file

AT_ONCE = 12  # number of operators that one process checks

# Reason -> names of operators that this project's kernels do not support for that reason: operators on tensors that are not dense or not of
# real numbers, operators whose shapes depend on values or whose result is not determined, and sorting, factorisations and special functions.
OUTSIDE = {
    "random numbers": r"cauchy|exponential|geometric|log_normal|normal(/.*)?|uniform|rand.*|multinomial|bernoulli|.*dropout.*|.*rrelu|.*fractional_max.*",
    "results of any value": r"(new_)?empty.*|resize_.*",
    "complex numbers": r"fft\..*|stft|.*complex.*|cdouble|cfloat|chalf|polar",
    "factorisations, and what they solve": r"linalg\.(matrix_sqrth|cholesky.*|cond|det|eig.*|householder.*|inv.*|ldl.*|lstsq.*|lu.*|matrix_rank.*|norm/nuc|pinv.*"
    r"|polar|qr|slogdet|solve.*|svd.*|tensor.*)|cholesky.*|geqrf|lu.*|ormqr|pinverse|.*svd.*|pca_lowrank|triangular_solve|logdet|matrix_exp|norm/nuc",
    "special functions": r"special\.(airy.*|bessel.*|.*polynomial.*|erfcx|log_ndtr|ndtri|i0e|i1.*|.*bessel.*|polygamma.*|zeta)|polygamma.*|mvlgamma.*|i0|igammac?|digamma"
    r"|lgamma|erfinv|nextafter|frexp",
    "sorting": r"(arg|m)?sort|topk|kthvalue|(nan)?median|mode|(nan)?quantile|searchsorted|bucketize|masked\.median|unique.*|hist.*",
    "shapes that depend on values": r"nonzero.*|argwhere|masked_select|combinations|repeat_interleave|item|equal|allclose",
    "sparse tensors, and other devices": r"sparse\..*|to_sparse|jiterator.*|hash_tensor|bmm/triton.*",
}


def outside(name):
    return next((why for why, names in OUTSIDE.items() if re.fullmatch(names, name)), None)


def operators(dtype="float32"):
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    found = {f"{one.name}/{one.variant_test_name}" if one.variant_test_name else one.name: one for one in op_db if getattr(torch, dtype) in one.supported_dtypes("cpu")}
    return {name: one for name, one in found.items() if outside(name) is None}


def samples_of(one, count, dtype):
    """Returns the first `count` samples that have no empty tensors; if all samples have some, the first `count` of these."""
    import torch

    def is_full(sample):
        made = (sample.input, sample.args, sample.kwargs, one.op(sample.input, *sample.args, **sample.kwargs))
        return all(t.numel() > 0 for t in torch.utils._pytree.tree_leaves(made) if isinstance(t, torch.Tensor))

    torch.manual_seed(0)
    made = list(one.sample_inputs("cpu", getattr(torch, dtype), requires_grad=False))
    return ([sample for sample in made[:20] if is_full(sample)] or made)[:count]


class Sample:
    """A sample of an operator in the form of a program of tests/python/torch_fuzz.py: a function of its tensors."""

    def __init__(self, one, sample):
        import torch

        self._flat, self._spec = torch.utils._pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
        self._one, self._torch = one, torch
        self.sums = not hasattr(one, "ref") or one.ref is None or not type(one).__name__.endswith("UfuncInfo")
        self.products = "prod" in one.name
        self.places = [i for i, leaf in enumerate(self._flat) if isinstance(leaf, torch.Tensor)]
        self.given = [self._flat[i] for i in self.places]

    def by_rule(self, given, got, want):
        """Returns which elements of a result may differ from eager's by the rules of tests/python/torch_rules.py."""
        from torch_rules import excused

        name = f"{self._one.name}/{self._one.variant_test_name}" if self._one.variant_test_name else self._one.name
        return excused(name, given, got, want)

    def run(self, given, after=lambda value: value, by_rule=False):
        """Returns the results. `after` and `by_rule` are not used; they belong to the interface of programs of tests/python/torch_programs.py."""
        leaves = list(self._flat)
        for place, tensor in zip(self.places, given):
            leaves[place] = tensor
        arguments, named = self._torch.utils._pytree.tree_unflatten(leaves, self._spec)
        made = self._torch.utils._pytree.tree_leaves(self._one.op(*arguments, **named))
        return tuple(value for value in made if isinstance(value, self._torch.Tensor))


def variants(sample):
    """Yields the sample's tensors three times: as they are, with extreme values among their floats, and with other strides."""
    from torch_programs import Chooser, laid_out, values

    yield sample.given
    for wild in (0.1, 0.5):
        choose = Chooser(int(wild * 10))
        yield [values(choose, x.shape, x.dtype, wild) if x.dtype.is_floating_point else x for x in sample.given]
    for how in ("transposed", "permuted", "sliced", "channels last", "offset"):
        moved = [laid_out(x, how) if x.numel() > 0 else x for x in sample.given]
        if any(a.stride() != b.stride() or a.storage_offset() != b.storage_offset() for a, b in zip(moved, sample.given)):
            yield moved


def tried(one, sample):
    import torch
    import warploom.torch
    from torch_fuzz import faults

    before = len(warploom.torch.report())
    torch._dynamo.reset()
    program = Sample(one, sample)
    compiled = torch.compile(lambda *given: program.run(given), backend="warploom", dynamic=False, options={"tune": "first", "trials": 1, "kernels_alone": True})
    for number, given in enumerate(variants(program)):
        found = faults(torch, compiled, program, given, number)
        if found:
            return "wrong", {f"variant {number}: {found}": 1}
    entries = warploom.torch.report()[before:]
    left = collections.Counter()
    for entry in entries:
        left.update(entry["eager"])
    if left:
        return "left to eager", dict(left)
    return ("kernels" if any(entry["kernels"] for entry in entries) else "nothing to compute"), {}


def child(names, samples, dtype):
    warnings.simplefilter("ignore")
    sys.path[:0] = [str(ROOT / folder) for folder in ("build/release/python", "tests/python", "tests/e2e")]
    import torch

    torch.set_grad_enabled(False)
    torch.set_num_threads(2)
    known = operators(dtype)
    for name in names:
        outcomes = []
        try:
            outcomes = [tried(known[name], sample) for sample in samples_of(known[name], samples, dtype)]
        except Exception as error:  # noqa: BLE001: any exception makes the operator's outcome "failed"
            outcomes = [("failed", {f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"[:200]: 1})]
        order = ["failed", "wrong", "left to eager", "kernels", "nothing to compute"]
        worst = min(outcomes, key=lambda outcome: order.index(outcome[0])) if outcomes else ("failed", {"no samples": 1})
        print(json.dumps({"name": name, "outcome": worst[0], "why": worst[1]}), flush=True)


def run(names, samples, dtype, cache):
    """Returns the outcomes of some operators, which run in a process of their own. An operator that ends the process has failed, and a
    new process continues after it."""
    outcomes, left = [], list(names)
    while left:
        command = [sys.executable, __file__, "--child", ",".join(left), "--samples", str(samples), "--dtype", dtype]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"XDG_CACHE_HOME": cache})
        made = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        outcomes += made
        left = left[len(made) :]
        if left and done.returncode != 0:
            outcomes.append({"name": left.pop(0), "outcome": "failed", "why": {f"the process ended: {done.returncode}, {done.stderr[-150:]}": 1}})
        elif left and not made:
            break
    return outcomes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="operators whose names have one of these words")
    parser.add_argument("--samples", type=int, default=1, help="samples of each operator")
    parser.add_argument("--dtype", default="float32", help="of the samples")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child.split(","), options.samples, options.dtype)
    names = [name for name in operators(options.dtype) if not options.only or any(word in name for word in options.only)]
    parts = [names[i : i + AT_ONCE] for i in range(0, len(names), AT_ONCE)]
    with tempfile.TemporaryDirectory() as cache, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        outcomes = [one for part in pool.map(lambda part: run(part, options.samples, options.dtype, cache), parts) for one in part]
    counts = collections.Counter(one["outcome"] for one in outcomes)
    for one in outcomes:
        if one["outcome"] in ("failed", "wrong", "left to eager"):
            print(f"{one['outcome']}: {one['name']}: {'; '.join(one['why'])[:300]}")
    asked = sum(counts.values()) - counts["nothing to compute"]
    print(", ".join(f"{count} {what}" for what, count in counts.most_common()))
    if asked:
        print(f"of {asked} operators {counts['kernels']} ({100 * counts['kernels'] / asked:.1f} %) are computed by kernels alone, and right")
    if not options.only:
        results_file("operators-").write_text(json.dumps(outcomes, indent=1) + "\n")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
