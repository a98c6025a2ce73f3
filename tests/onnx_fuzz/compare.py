"""Compares results with those of the peers."""

import pathlib
import re

import ml_dtypes
import numpy as np

import values

# Units in the last place that peers may be off by in one operation: their functions are those of the C library, or faster ones.
ULPS = 16
MIXING = {"DFT", "STFT", "BatchNormalization", "GroupNormalization", "InstanceNormalization", "LayerNormalization", "MeanVarianceNormalization"}
DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f8e4m3fn": ml_dtypes.float8_e4m3fn,
          "f8e5m2": ml_dtypes.float8_e5m2, "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8, "u64": np.uint64,
          "u32": np.uint32, "u16": np.uint16, "u8": np.uint8, "b1": np.bool_}


def from_oracle(folder, described):
    """(values as doubles, bounds) of every output, with its type."""
    outputs = []
    for number, text in enumerate(described):
        dtype, extents = text.split(":")
        shape = tuple(int(e) for e in extents.split(",") if e)
        got, bound = np.fromfile(folder / f"out.{number}.bin", dtype=np.float64).reshape((2, *shape))
        outputs.append((Typed(got, np.dtype(DTYPES[dtype])), bound))
    return outputs


class Typed:
    """Doubles that stand for values of a type."""

    def __init__(self, doubles, dtype):
        self.doubles, self.dtype, self.shape = doubles, dtype, doubles.shape


def difference(got, bound, want, mixes):
    """"" where a result is as expected. `mixes`: its elements are sums of all, so a peer's error is that of the largest."""
    if got.dtype != want.dtype:
        return f"is {got.dtype}, expected {want.dtype}"
    if got.shape != want.shape:
        return f"has shape {list(got.shape)}, expected {list(want.shape)}"
    exact = not values.is_float(want.dtype)
    mine = got.doubles if isinstance(got, Typed) else got
    with np.errstate(all="ignore"):
        if exact:
            if isinstance(got, Typed) and want.dtype.itemsize == 8:  # doubles have 53 bits
                wrong = np.abs(mine - want.astype(np.float64)) > np.abs(mine) * 2.0**-52
            else:
                wrong = mine.astype(want.dtype) != want
            if bound is not None:  # the neighbour that a rounding or a comparison before it may give
                wrong &= ~(np.abs(mine - want.astype(np.float64)) <= bound)
        else:
            mine, theirs = mine.astype(np.float64), want.astype(np.float64)
            facts = ml_dtypes.finfo(want.dtype)
            of = np.max(np.abs(theirs), where=np.isfinite(theirs), initial=0) if mixes else np.abs(theirs)
            slack = ULPS * float(facts.eps) * of + 4 * float(facts.tiny)
            if bound is not None:  # that of one computation, of which the peer's is another
                slack = slack + 4 * bound
            near = np.abs(mine - theirs) <= slack
            wrong = ~(near | (mine == theirs) | (np.isnan(mine) & np.isnan(theirs)))
            if bound is not None:
                wrong &= np.isfinite(bound)
    if not np.any(wrong):
        return ""
    first = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
    at = lambda a: np.atleast_1d(a)[first]  # noqa: E731
    return f"{int(np.sum(wrong))} of {want.size} {want.dtype} wrong; {list(first)} is {at(mine)}, expected {at(want)}"


def against(found, outputs, op):
    """"" where the outputs are those of one peer; else how they differ from each."""
    messages = []
    for peer, expected in found.items():
        message = f"{len(outputs)} outputs, expected {len(expected)}" if len(outputs) != len(expected) else ""
        for number, ((got, bound), want) in enumerate(zip(outputs, expected)):
            if want is not None and not message:
                message = difference(got, bound, want, op in MIXING)
                message = message and f"output {number} {message}"
        if not message:
            return ""
        messages.append(f"{peer}: {message}")
    return "; ".join(messages)


def read_rules(path):
    """(operators, pattern of the message, reason) of each line."""
    lines = [line for line in pathlib.Path(path).read_text().splitlines() if line.strip() and not line.startswith("#")]
    return [tuple(part.strip() for part in line.split(" | ", 2)) for line in lines]


def rule_of(rules, op, message, node):
    for operators, pattern, reason in rules:
        if re.fullmatch(operators, op) and any(re.search(pattern, text) for text in (message, node)):
            return f"{operators}: {reason}"
    return ""
