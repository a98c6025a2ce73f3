#!/usr/bin/env python3
"""Generated chains of operators through torch.compile(.., backend="warploom"), against eager: values, dtypes, shapes and strides.

    build/venv-peers/bin/python tests/python/torch_fuzz.py --child [--seed 1] [--programs 20] [--seconds 60] [--turns 8]

A case is a program with one set of arguments. A result may differ from eager's if eager's own result depends on roundings: by as much as
results of eager differ among each other when every value is moved by a few units in the last place, and signs of zeros and NaN are changed.
"""

import argparse
import sys
import time
import warnings

from harness import BIN, WHOLE, Scratch, expect, torch_child, torch_python

FEW, MANY = 6, 60  # numbers of further runs, with slightly changed values: FEW for every case; MANY more before a case counts as wrong


class Expected:
    """Eager's results of a case, and the ranges that the results have when values are moved by roundings."""

    def __init__(self, torch, program, given, seed):
        self._torch, self._program, self._given = torch, program, given
        self._generator, self._negative = torch.Generator().manual_seed(seed), 0.5
        self.values = program.run(given, by_rule=True)
        self._ranges, self._alike = None, None
        self.look(FEW)

    def _moved(self, value, by_units_of=None):
        torch = self._torch
        if not value.dtype.is_floating_point or value.numel() == 0:
            return value
        info = torch.finfo(by_units_of or value.dtype)
        by = torch.rand(value.shape, generator=self._generator, dtype=torch.float64) * 8 - 4
        signs = torch.rand(value.shape, generator=self._generator) < self._negative
        at = torch.where(value.isnan(), torch.where(signs, -value.abs(), value.abs()), value).double()  # a NaN's sign is undefined
        moved = torch.where(torch.isfinite(at), at * (1 + by * info.eps) + by * info.tiny * info.eps * (at != 0), at)
        moved = torch.where(at == 0, torch.copysign(torch.zeros((), dtype=torch.float64), by), moved).to(value.dtype)
        if value.dtype is not torch.bfloat16:
            return moved
        bits = moved.view(torch.int16)  # A conversion to bf16 loses the signs of NaN, so they are set here.
        return torch.where(value.isnan(), torch.where(signs, bits | -32768, bits & 32767), bits).view(torch.bfloat16)

    def look(self, runs):
        """Makes further runs with moved values, which widen the ranges of results."""
        torch = self._torch
        if self._ranges is None:
            self._ranges = [(value.double(), value.double()) for value in self.values]
            self._alike = [torch.ones_like(value, dtype=torch.bool) for value in self.values]
        for number in range(runs):
            # The fraction of NaNs that are negative. If it is small, a program that searches for the first negative NaN gets late positions
            # as results.
            self._negative = (0.5, 1 / 8, 1 / 64)[number % 3]
            made = self._program.run([self._moved(x) for x in self._given], self._moved, by_rule=True)
            for i, (value, wanted) in enumerate(zip(made, self.values)):
                value, exact = value.double(), wanted.double()
                low, high = self._ranges[i]
                self._ranges[i] = torch.minimum(low, value), torch.maximum(high, value)
                same = (value.isnan() == exact.isnan()) & (value.isinf() == exact.isinf()) & (value.isfinite() | exact.isnan() | (value == exact))
                if not wanted.dtype.is_floating_point:
                    same &= value == exact
                self._alike[i] &= same

    def nearer(self, i, got):
        """Returns which elements agree with a run in f64, or are in the range of such runs with values moved by units of the narrowest
        type. This allows results that overflow at other places because sums have another order, or do not overflow because intermediate
        values are wider."""
        torch, usual = self._torch, self._torch.get_default_dtype()
        floats = [x.dtype for x in self._given if x.dtype.is_floating_point]
        narrowest = max(floats, key=lambda dtype: torch.finfo(dtype).eps, default=torch.float32)
        wide = [x.double() if x.dtype.is_floating_point else x for x in self._given]
        try:
            torch.set_default_dtype(torch.float64)  # PyTorch then computes f64 where it computes floats from integers
            exact = self._program.run(wide)[i]
            moved = [self._program.run([self._moved(x, narrowest) for x in wide], lambda x: self._moved(x, narrowest))[i].double() for _ in range(FEW)]
        except RuntimeError:
            return torch.zeros_like(got, dtype=torch.bool)
        finally:
            torch.set_default_dtype(usual)
        low, high = torch.stack(moved).amin(0), torch.stack(moved).amax(0)
        among = got.isfinite() & ((got.double() - exact.double()).abs() <= 4 * (high - low))
        exact = exact.to(got.dtype)
        if not got.dtype.is_floating_point:
            return got == exact
        info = torch.finfo(got.dtype)
        same = (got == exact) | (got.isnan() & exact.isnan()) | ((got - exact).abs() <= 16 * info.eps * exact.abs() + 4 * info.tiny * info.eps)
        return same | (among & ~self.values[i].isfinite())

    def wrong(self, i, got):
        """Returns which elements of a result differ from eager's by more than roundings explain."""
        torch, wanted = self._torch, self.values[i]
        if not wanted.dtype.is_floating_point:
            return (got != wanted) & self._alike[i]
        info = torch.finfo(wanted.dtype)
        exact, at, (low, high) = wanted.double(), got.double(), self._ranges[i]
        near = (at - exact).abs() <= 4 * (high - low) + 16 * info.eps * exact.abs() + 4 * info.tiny * info.eps
        return ~(near | (at == exact) | (at.isnan() & exact.isnan())) & self._alike[i]


def tame(torch, x, products, integers):
    """Returns a tensor in which finite numbers are limited to 8 in magnitude; with `products`, all numbers to 1, since products of several
    elements may overflow or underflow on the way. `integers`: integers are limited as well, since floats may be computed from them."""
    if not x.dtype.is_floating_point:
        return x.clamp(max=1 if products else 8).clamp(min=-1 if x.dtype.is_signed else 0) if integers and x.dtype is not torch.bool else x
    return x.nan_to_num(0, 1, -1).clamp(-1, 1) if products else torch.where(x.isfinite(), x.clamp(-8, 8), x)


def layout(tensor):
    """Returns the strides without those of axes of extent 1, which have no meaning."""
    return [step for step, extent in zip(tensor.stride(), tensor.shape) if extent != 1] if tensor.numel() > 0 else []


def faults(torch, compiled, program, given, seed):
    """Returns a message about a wrong result, or None. Sums in another order may overflow at other places, so a program with sums is wrong
    only if it is also wrong without large numbers."""
    try:
        expected = Expected(torch, program, given, seed)
    except (RuntimeError, ValueError):  # eager may raise, for example on an integer division by zero or a negative variance
        return None
    try:
        got = compiled(*given)
    except Exception as error:  # noqa: BLE001: any exception is wrong, since eager raised none
        return f"{type(error).__name__}: {str(error)[:300]}"
    for i, (ours, theirs) in enumerate(zip(got, expected.values, strict=True)):
        if (ours.dtype, ours.shape, layout(ours)) != (theirs.dtype, theirs.shape, layout(theirs)):
            return f"result {i} is {ours.dtype} {list(ours.shape)} at {ours.stride()}, not {theirs.dtype} {list(theirs.shape)} at {theirs.stride()}"
        if not bool(expected.wrong(i, ours).any()):
            continue
        expected.look(MANY)
        wrong = expected.wrong(i, ours) & ~expected.nearer(i, ours)
        if not bool(wrong.any()):
            continue
        smaller = [tame(torch, x, program.products, ours.dtype.is_floating_point) for x in given]
        if program.sums and any(not torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(given, smaller)):
            return faults(torch, compiled, program, smaller, seed)
        place = tuple(wrong.nonzero()[0].tolist())
        arguments = [x[tuple(p % n for p, n in zip(place[-x.dim() :] if x.dim() else (), x.shape))] if x.dim() <= len(place) else "" for x in given]
        return f"result {i}, {int(wrong.sum())} of {wrong.numel()} elements, at {place}: {ours[place]}, not {theirs[place]}; near {arguments}"
    return None


def child(options):
    sys.path.insert(0, str(BIN.parent / "python"))
    import torch
    import warploom.torch
    from torch_programs import Program

    warnings.simplefilter("ignore")
    torch.set_grad_enabled(False)
    torch.set_num_threads(options.threads)
    begin, cases, bad = time.monotonic(), 0, []
    for seed in range(options.seed * 1_000_000, options.seed * 1_000_000 + options.programs):
        if time.monotonic() - begin > options.seconds:
            break
        program = Program(seed)
        torch._dynamo.reset()
        compiled = torch.compile(lambda *given: program.run(given), backend="warploom", dynamic=False, options={"tune": "first", "trials": 1, "kernels_alone": True})  # noqa: B023
        for turn in range(options.turns):
            cases += 1
            found = faults(torch, compiled, program, program.arguments(turn), seed + turn)
            if found:
                bad.append(seed)
                print(f"program {seed}, turn {turn}: {found}\n  {program}", flush=True)
                break
    entries = warploom.torch.report()
    print(f"{seed - options.seed * 1_000_000 + 1} programs, {cases} cases, {len(bad)} programs wrong, {time.monotonic() - begin:.0f} s; "
          f"{sum(e['kernels'] for e in entries)} kernels, {sum(sum(e['eager'].values()) for e in entries)} of {sum(e['nodes'] for e in entries)} operators left to eager")  # fmt: skip
    return len(bad) > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=100_000 if WHOLE else 3)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--turns", type=int, default=8, help="sets of arguments for each program")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--child", action="store_true", help="in this process, whose Python has PyTorch")
    options = parser.parse_args()
    if options.child:
        return child(options)
    torch_python()
    with Scratch() as scratch:
        done = torch_child(scratch, __file__, *sys.argv[1:], timeout=options.seconds + 900)
        print(done.stdout[-6000:])
        expect(done.returncode == 0, f"{done.returncode}: {done.stderr[-3000:]}")


if __name__ == "__main__":
    sys.exit(main())
