#!/usr/bin/env python3
"""Prints the coefficients and tables of cpu_math.h. Needs numpy; run only to change a polynomial.

Each fit is a weighted least-squares polynomial whose weights are raised where the error is large (Lawson), which tends
to the minimax one. Coefficients are rounded to f32 from the lowest power up, the rest fitted again after each.
"""
import math

import numpy as np

LN2 = math.log(2)


def minimax(matrix, values, weights, rounds=60):
    lawson = np.ones(len(values))
    best, least = None, math.inf
    for _ in range(rounds):
        scale = weights * np.sqrt(lawson)
        found, *_ = np.linalg.lstsq(matrix * scale[:, None], values * scale, rcond=None)
        error = np.abs((matrix @ found - values) * weights)
        if error.max() < least:
            best, least = found, error.max()
        lawson *= error / error.max() + 1e-3
        lawson /= lawson.sum()
    return best, least


def fit(function, low, high, powers, weight, fixed=None, points=400, single=True):
    """{power: coefficient} and the largest weighted error of `function` on [low, high]."""
    nodes = np.cos(np.pi * (np.arange(points) + 0.5) / points)
    x = (low + high) / 2 + (high - low) / 2 * nodes
    y = np.array([function(float(v)) for v in x])
    w = np.array([weight(float(u), float(v)) for u, v in zip(x, y)])
    done = dict(fixed or {})
    free = [p for p in powers if p not in done]
    while True:
        base = sum((c * x**p for p, c in done.items()), np.zeros(points))
        if not free:
            return done, np.abs((base - y) * w).max()
        found, error = minimax(np.stack([x**p for p in free], 1), y - base, w)
        if not single:
            return {**done, **dict(zip(free, found))}, error
        done[free[0]] = float(np.float32(found[0]))
        free.pop(0)


def relative(x, y):
    return 1 / abs(y) if y else 0.0


def show(name, result, digits=9):
    coefficients, error = result
    listed = ", ".join(f"{c:.{digits}g}" for _, c in sorted(coefficients.items(), reverse=True))
    print(f"{name} ({error:.1e}), highest power first: {listed}")


def table(name, function, pieces, slot):
    """Rows c0..c5 and the centres of 16 degree-5 pieces; the first is centred at 0 with c0 = 0: relative accuracy."""
    rows, worst = np.zeros((7, 16)), 0.0
    for k, (centre, low, high) in enumerate(pieces):
        fixed = {0: 0.0, 1: float(np.float32(function(1e-9) / 1e-9))} if centre == 0 else {}
        c, error = fit(lambda r: function(centre + r), low - centre, high - centre, range(6), relative, fixed, 300)
        rows[:6, slot(k)] = [c[p] for p in range(6)]
        rows[6, slot(k)] = centre
        worst = max(worst, error)
    print(f"{name} ({worst:.1e})")
    for row in rows:
        print("    {" + ", ".join(f"{v:.9g}" for v in row) + "},")


def main():
    half = LN2 / 2 * 1.001
    show("exp", fit(math.exp, -half, half, range(7), relative, {0: 1.0, 1: 1.0}))
    part = LN2 / 32 * 1.001
    show("exp of sixteenths", fit(math.exp, -part, part, range(4), relative, {0: 1.0, 1: 1.0}))
    print("wl_exp_table {" + ", ".join(f"{np.float32(2 ** (k / 16)):.9g}" for k in range(16)) + "}")
    show("exp2", fit(lambda x: 2.0**x, -0.5, 0.5, range(7), relative, {0: 1.0}))
    show("expm1", fit(math.expm1, -half, half, range(1, 7), relative, {1: 1.0}))
    show("log(1 + f)", fit(math.log1p, -0.25, 0.5, range(1, 10), relative, {1: 1.0}))
    show("log2(1 + f)", fit(lambda f: math.log2(1 + f), -0.25, 0.5, range(1, 10), relative))
    quarter = math.pi / 4 * 1.001
    show("sin", fit(math.sin, 1e-6, quarter, (1, 3, 5, 7, 9), relative, {1: 1.0}))
    show("cos", fit(math.cos, 0, quarter, (0, 2, 4, 6, 8), lambda x, y: 1.0, {0: 1.0, 2: -0.5}))
    show("tan", fit(math.tan, 1e-6, quarter, range(1, 14, 2), relative, {1: 1.0}))
    show("tanh below 0.625", fit(math.tanh, 1e-6, 0.625, range(1, 12, 2), relative, {1: 1.0}))
    show("erf(x) - x below 1", fit(lambda x: math.erf(x) - x, 1e-3, 1.0, range(1, 12, 2), lambda x, y: 1 / math.erf(x)))
    show("log(1 - erf) above 1", fit(lambda x: math.log(math.erfc(x)), 0.98, 4.0, range(7), lambda x, y: math.erfc(x)))
    atanh = lambda s: 2 * math.atanh(s) / LN2
    show("log2((1 + s) / (1 - s))", fit(atanh, 1e-4, 0.2, range(1, 14, 2), relative, single=False), 17)

    width = 65 / 256
    table("wl_erf_table", math.erf, [(k * width, max(1e-7, (k - 0.5) * width), (k + 0.5) * width) for k in range(16)],
          lambda k: k)
    edges = [3.0]
    while len(edges) < 17:
        edges.append(edges[-1] + 2.0 ** math.floor(math.log2(edges[-1])) / 8)
    centre = lambda low, high: 0 if low == 3 else (low + high) / 2 - 3
    pieces = [(centre(a, b), max(1e-7, a - 3), b - 3) for a, b in zip(edges, edges[1:])]
    # The last piece ends at 9, and what is above 9 takes its value: aim at 1 there.
    aimed = lambda x: math.tanh(x) + (1.2e-8 * (x - 8.75) / 0.25 if x > 8.75 else 0)
    table("wl_tanh_table", aimed, pieces, lambda k: (4 + k) & 15)


if __name__ == "__main__":
    main()
