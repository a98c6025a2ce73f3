"""Compares results with those of the peers, onnx's reference implementation and onnxruntime."""

import pathlib
import re

import ml_dtypes
import numpy as np

import values

# Allowed error of a peer (another implementation of ONNX) in one operation, in units in the last place. It is this large because peers use
# functions of the C library, or faster and less exact ones.
ULPS = 16
# Operators whose results are sums of large terms or of terms of both signs. A peer's results have the rounding errors of these terms, so
# the allowed error is relative to the largest element.
MIXING = "DFT|STFT|(Batch|Group|Instance|Layer|MeanVariance)Normalization|(Blackman|Hann|Hamming)Window"
DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f8e4m3fn": ml_dtypes.float8_e4m3fn,
          "f8e5m2": ml_dtypes.float8_e5m2, "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8, "u64": np.uint64,
          "u32": np.uint32, "u16": np.uint16, "u8": np.uint8, "b1": np.bool_}


def from_oracle(folder, described):
    """Returns (values as doubles with their type, bounds) of every output."""
    outputs = []
    for number, text in enumerate(described):
        dtype, extents = text.split(":")
        shape = tuple(int(e) for e in extents.split(",") if e)
        got, bound = np.fromfile(folder / f"out.{number}.bin", dtype=np.float64).reshape((2, *shape))
        outputs.append((Typed(got, np.dtype(DTYPES[dtype])), bound))
    return outputs


class Typed:
    """Values of a type, stored as doubles, and the type."""

    def __init__(self, doubles, dtype):
        self.doubles, self.dtype, self.shape = doubles, dtype, doubles.shape


class Difference:
    """How a result is wrong: a message, and, if the result has the expected shape, the mask of wrong elements."""

    def __init__(self, message, places=None):
        self.message, self.places = message, places


def difference(got, bound, want, mixes, rounding=None):
    """Returns None if a result is as expected, else a Difference. `mixes`: elements are sums over the tensor, so the allowed error is
    relative to the largest element. `rounding`: the type to which the expected values were rounded, if it is not the type of the result."""
    if got.shape != want.shape:
        return Difference(f"has shape {list(got.shape)}, expected {list(want.shape)}")
    mine = got.doubles if isinstance(got, Typed) else got
    with np.errstate(all="ignore"):
        if not values.is_float(want.dtype):
            if isinstance(got, Typed) and want.dtype.itemsize == 8:  # an integer of 64 bits may not fit the 53 bits of a double
                wrong = np.abs(mine - want.astype(np.float64)) > np.abs(mine) * 2.0**-52
            else:
                wrong = mine.astype(want.dtype) != want
            # An integer whose error is within `bound` counts as right, since it may be the result of rounding or comparing floats that have
            # errors.
            if bound is not None:
                wrong &= ~(np.abs(mine - want.astype(np.float64)) <= bound)
        else:
            mine, theirs = mine.astype(np.float64), want.astype(np.float64)
            facts = ml_dtypes.finfo(rounding or want.dtype)
            of = np.max(np.abs(theirs), where=np.isfinite(theirs), initial=0) if mixes else np.abs(theirs)
            slack = ULPS * float(facts.eps) * of + 4 * float(facts.tiny)
            if bound is not None:  # the peer may compute by another formula, so its error may exceed `bound`
                slack = slack + 4 * bound
            near = np.abs(mine - theirs) <= slack
            wrong = ~(near | (mine == theirs) | (np.isnan(mine) & np.isnan(theirs)))
            if bound is not None:
                wrong &= np.isfinite(bound)
    if not np.any(wrong):
        return None
    first = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
    at = lambda a: np.atleast_1d(a)[first]  # noqa: E731
    off = parts_off(mine[wrong], want[wrong])
    return Difference(f"{int(np.sum(wrong))} of {want.size} {want.dtype} wrong; {list(first)} is {at(mine)}, expected {at(want)}{off}", wrong)


def parts_off(mine, theirs):
    """Returns the difference that a message names after "off by", for the patterns of rules: the largest relative difference of floats, or
    the largest difference of integers; "" if a number is not finite."""
    exact = not values.is_float(theirs.dtype)
    mine, theirs = (np.asarray(a, dtype=np.float64) for a in (mine, theirs))
    if not (np.isfinite(mine).all() and np.isfinite(theirs).all()):
        return ""
    if exact:
        return f" (off by at most {np.max(np.abs(mine - theirs)):.0f})"
    with np.errstate(all="ignore"):
        return f" (off by {np.nanmax(np.abs(mine - theirs) / np.maximum(np.abs(mine), np.abs(theirs))):.0e})"


def as_typed(want, dtype, known):
    """Returns the expected values converted to the type of the result, if this is the type that the standard infers (`known`): peers return
    some integers and floats in other types."""
    return want.astype(dtype) if known == dtype and bool not in (want.dtype, dtype) else want


def differences(outputs, expected, op, types, rounding=None):
    """Returns for each output its Difference from one peer's output, or None if there is none. Returns a text if the outputs cannot be
    compared."""
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs, expected {len(expected)}"
    found = []
    for number, ((got, bound), want) in enumerate(zip(outputs, expected)):
        if want is None:
            found.append(None)
            continue
        known = types[number] if number < len(types) else None
        if known is not None and got.dtype != known:
            return f"output {number} is {got.dtype}, expected {known}"
        with np.errstate(all="ignore"):
            want = as_typed(np.asarray(want), got.dtype, known)
        if got.dtype != want.dtype:
            return f"output {number} is {got.dtype}, expected {want.dtype}"
        found.append(difference(got, bound, want, rounding is not None or bool(re.fullmatch(MIXING, op)), rounding))
    return found


def text_of(found):
    """Returns the message of the first difference, or ""."""
    if isinstance(found, str):
        return found
    return next((f"output {number} {one.message}" for number, one in enumerate(found) if one is not None), "")


def both(found, others):
    """Returns whether an element is wrong in both comparisons. A difference without a mask of elements counts as one in all elements."""
    if isinstance(found, str) or isinstance(others, str):
        return True
    pairs = [(a, b) for a, b in zip(found, others) if a is not None and b is not None]
    return any(a.places is None or b.places is None or np.any(a.places & b.places) for a, b in pairs)


def against(found, outputs, op, types, exact):
    """Returns "" if the outputs agree with one peer, or if a further way of computing agrees in all elements that differ from a peer;
    otherwise the differences. `types`: types of the outputs by the standard. `exact`: yields (name, outputs, rounding) of each further
    way."""
    by_peer = {peer: differences(outputs, expected, op, types) for peer, expected in found.items()}
    messages = {peer: text_of(said) for peer, said in by_peer.items()}
    if not all(messages.values()):
        return ""
    for name, expected, rounding in exact([got.dtype for got, _ in outputs]):
        if len(expected) != len(outputs):
            continue
        with np.errstate(all="ignore"):  # doubles are rounded to the type of the result
            typed = [None if e is None else np.asarray(e).astype(got.dtype) for e, (got, _) in zip(expected, outputs)]
        said = differences(outputs, typed, op, types, rounding)
        messages.setdefault(name, text_of(said))
        if not messages[name] or not all(both(said, others) for others in by_peer.values()):
            return ""
    return "; ".join(f"{peer}: {message}" for peer, message in messages.items())


class Rule:
    """A line of rules.txt. `of_oracle`: the line excuses results of the oracle, but not results of kernels for the same case."""

    def __init__(self, line, of_oracle):
        self.operators, self.patterns, self.reason = (part.strip() for part in line.split(" | ", 2))
        self.of_oracle = of_oracle

    def fits(self, op, message, node):
        return bool(re.fullmatch(self.operators, op)) and all(re.search(p, message) or re.search(p, node) for p in self.patterns.split(" & "))


def read_rules(path):
    rules, of_oracle = [], False
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith("# Of "):
            of_oracle = line.startswith("# Of the oracle")
        elif line.strip() and not line.startswith("#"):
            rules.append(Rule(line, of_oracle))
    return rules


def rule_of(rules, op, message, node, kernel=False):
    """Returns the first rule that excuses a result of the oracle or, if `kernel`, of kernels; None if no rule does."""
    return next((rule for rule in rules if not (kernel and rule.of_oracle) and rule.fits(op, message, node)), None)
