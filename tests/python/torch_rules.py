"""Where results of torch.compile(.., backend="warploom") differ from eager's by rule, with the reason; docs/numerics.md has them too. A rule says
which operators it is for, by OpInfo's names, and which elements it excuses: `got` and `want` are results of one shape and dtype, `given`
the arguments."""

import re


def _weights_not_finite(given, got, want):
    """Zeros between the elements of an image are multiplied, and so is padding."""
    return got.isnan() & (not given[1].isfinite().all())


def _mean_infinite(given, got, want):
    """Eager updates a mean element by element, and so subtracts an infinity from itself unless it is the last; the mean of elements of which some are
    infinite, all of one sign, is infinite."""
    return got.isinf() & want.isnan()


def _scores_not_a_number(given, got, want):
    """Eager's maximum leaves NaN out, so a row whose every score is NaN counts as one without keys. A row without keys is 0; eager multiplies values with the
    zero, so that one that is infinite or NaN makes NaN."""
    scores, values = (not all(x.isfinite().all() for x in some) for some in (given[:2], given[2:3]))
    return (got.isnan() & (want == 0) & scores) | ((got == 0) & want.isnan() & values)


def _elements_apart(given, got, want):
    """Eager's kernel for CPUs, called by itself, takes elements of the last axis as lying side by side, whatever their strides are; what calls
    it sees to that."""
    apart = any(x.stride(-1) != 1 for x in given[:3])
    return got.new_ones(got.shape).bool() if apart else _scores_not_a_number(given, got, want)


def _unit_of_one(given, got, want):
    """1 + erf(x) has units of 1 of error, however small it is, in eager too: its own kernels differ by as much."""
    return (got - want).abs() <= 2.0**-23 * given[0].abs()


RULES = {
    r"nn\.functional\.conv_transpose\dd": _weights_not_finite,
    r"(var|std)_mean(/\w+)?|native_(group|layer|batch)_norm": _mean_infinite,
    r"torch\.ops\.aten\._scaled_dot_product_flash_attention_for_cpu": _elements_apart,
    r"(torch\.ops\.aten\._)?.*scaled_dot_product.*": _scores_not_a_number,
    r"nn\.functional\.gelu": _unit_of_one,
}


def excused(name, given, got, want):
    """Which elements of a result of an operator differ by rule."""
    rule = next((rule for names, rule in RULES.items() if re.fullmatch(names, name)), None)
    if rule is None or not want.dtype.is_floating_point:
        return want.new_zeros(want.shape).bool()
    return rule(given, got, want)
