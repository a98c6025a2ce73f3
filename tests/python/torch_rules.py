"""Rules by which results of torch.compile(.., backend="warploom") may differ from eager's, with the reasons, which docs/numerics.md gives
too. A rule is for operators with certain names of OpInfo, and returns a mask of the elements that it excuses. `got` and `want` are the
backend's and eager's results, of one shape and dtype; `given` are the arguments."""

import re


def _weights_not_finite(given, got, want):
    """The backend multiplies the zeros between the elements of an image and those of the padding by weights, which gives NaN for infinite
    weights."""
    return got.isnan() & (not given[1].isfinite().all())


def _mean_infinite(given, got, want):
    """Eager updates a mean element by element, and so subtracts an infinity from itself unless it is the last element. The backend's mean is
    infinite if some elements are infinite with the same sign."""
    return got.isinf() & want.isnan()


def _scores_not_a_number(given, got, want):
    """Eager's maximum ignores NaN, so eager treats a row whose scores are all NaN as a row without keys. Rows without keys are 0; eager
    multiplies values by this zero, which gives NaN for values that are infinite or NaN."""
    scores, values = (not all(x.isfinite().all() for x in some) for some in (given[:2], given[2:3]))
    return (got.isnan() & (want == 0) & scores) | ((got == 0) & want.isnan() & values)


def _elements_apart(given, got, want):
    """Eager's kernel for CPUs reads the last axis as contiguous, whatever its stride is. PyTorch's own callers make it contiguous, but the
    test calls the kernel directly."""
    apart = any(x.stride(-1) != 1 for x in given[:3])
    return got.new_ones(got.shape).bool() if apart else _scores_not_a_number(given, got, want)


def _unit_of_one(given, got, want):
    """The sum 1 + erf(x) has an error in units of 1, however small the sum is. Eager's own kernels differ from each other by as much."""
    return (got - want).abs() <= 2.0**-23 * given[0].abs()


RULES = {
    r"nn\.functional\.conv_transpose\dd": _weights_not_finite,
    r"(var|std)_mean(/\w+)?|native_(group|layer|batch)_norm": _mean_infinite,
    r"torch\.ops\.aten\._scaled_dot_product_flash_attention_for_cpu": _elements_apart,
    r"(torch\.ops\.aten\._)?.*scaled_dot_product.*": _scores_not_a_number,
    r"nn\.functional\.gelu": _unit_of_one,
}


def excused(name, given, got, want):
    """Returns which elements of an operator's result may differ by a rule."""
    rule = next((rule for names, rule in RULES.items() if re.fullmatch(names, name)), None)
    if rule is None or not want.dtype.is_floating_point:
        return want.new_zeros(want.shape).bool()
    return rule(given, got, want)
