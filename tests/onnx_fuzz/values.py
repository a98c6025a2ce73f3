"""Makes values with which arithmetic often goes wrong: zeros of both signs, ones, the types' limits, neighbours of powers of two,
infinities, NaN and denormals."""

import ml_dtypes
import numpy as np

FLOATS = {np.dtype(t) for t in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)}


def is_float(dtype):
    return np.dtype(dtype) in FLOATS


def special_floats(dtype):
    facts = ml_dtypes.finfo(dtype)
    largest, tiny, least, epsilon = (float(v) for v in (facts.max, facts.tiny, facts.smallest_subnormal, facts.eps))
    some = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, 1 + epsilon, 1 - epsilon / 2, largest, largest / 2, tiny, tiny - least, least, 3 * least]
    for power in (-3, 1, 4, 10, 23, 24, 31, 52, 53, 63):
        if 2.0**power < largest:
            some += [2.0**power, 2.0**power * (1 + epsilon), 2.0**power * (1 - epsilon / 2)]
    some += [v + 0.5 for v in (0.0, 1.0, 2.0, 7.0)] + [float("inf"), float("nan")]
    return some + [-v for v in some]


def special_integers(dtype):
    facts = np.iinfo(dtype)
    some = {0, 1, 2, 3, 7, -1, -2, -3, -7, facts.min, facts.max, facts.min + 1, facts.max - 1, facts.max // 2, facts.max // 2 + 1}
    for power in range(1, 64):
        some |= {2**power - 1, 2**power, 2**power + 1, -(2**power) - 1, -(2**power), -(2**power) + 1}
    return sorted(v for v in some if facts.min <= v <= facts.max)


def kinds(array):
    """Returns the kinds of special values in an array, for the patterns of rules: NaN, infinities, large and small numbers, large integers."""
    if not is_float(array.dtype):
        wide = array.dtype.kind in "iu" and array.dtype.itemsize == 8
        return {"integers beyond 2^53"} if wide and array.size and max(abs(int(array.min())), int(array.max())) > 2**53 else set()
    facts, found = ml_dtypes.finfo(array.dtype), set()
    size = np.abs(array.astype(np.float64))
    if np.isnan(size).any():
        found.add("NaN")
    if np.isinf(size).any():
        found.add("infinities")
    finite = size[np.isfinite(size)]
    if (finite > float(facts.max) ** 0.25).any():  # sums of squares and of fourth powers of numbers above this limit may overflow
        found.add("large numbers")
    if ((finite > 0) & (finite < float(facts.tiny) ** 0.25)).any():
        found.add("small numbers")
    return found


def draw(rng, dtype, shape, low=-10, high=10, mean=0.0, stddev=1.0, tame=False):
    """Returns a random array of a type. `tame`: only ordinary values, that is integers in [low, high) or floats around their mean."""
    dtype, count = np.dtype(dtype), int(np.prod(shape))
    kind = "usual" if tame else rng.choice(["usual", "special", "mixed", "small", "wide"])
    if dtype == bool:
        return rng.integers(0, 2, shape).astype(bool)
    if is_float(dtype):
        usual = rng.normal(mean, stddev, count)
        if kind == "small":
            usual = rng.integers(-4, 5, count) / rng.choice([1, 2])
        if kind == "wide":
            usual = rng.choice([-1, 1], count) * 2.0 ** rng.uniform(-40, 40, count)
        if kind in ("special", "mixed"):
            special = rng.choice(special_floats(dtype), count)
            usual = special if kind == "special" else np.where(rng.random(count) < 0.3, special, usual)
        with np.errstate(all="ignore"):
            return usual.reshape(shape).astype(dtype)
    facts = np.iinfo(dtype) if dtype not in (ml_dtypes.int4, ml_dtypes.uint4) else ml_dtypes.iinfo(dtype)
    if kind in ("special", "mixed", "wide") and dtype not in (ml_dtypes.int4, ml_dtypes.uint4):
        return rng.choice(np.array(special_integers(dtype), dtype=dtype), shape)
    low, high = max(low, int(facts.min)), min(high, int(facts.max) + 1)
    return rng.integers(low, max(high, low + 1), shape).astype(dtype)
