#!/usr/bin/env python3
"""The polynomials of core/math.h: minimax fits whose coefficients are f32 numbers. Needs nothing but Python.

    python3 tests/core/fit_math.py    prints each, highest power first, and its worst relative error
"""
import struct
from decimal import Decimal as D, getcontext

getcontext().prec = 40
PI = D("3.1415926535897932384626433832795028841972")


def series(term, ratio):
    """term + term ratio(1) + term ratio(1) ratio(2) + ..."""
    total, k = term, 0
    while abs(term) > D("1e-45"):
        k += 1
        term *= ratio(k)
        total += term
    return total


def cos(x):
    return series(D(1), lambda k: -x * x / (2 * k * (2 * k - 1)))


def erf(x):
    return 2 / PI.sqrt() * series(x, lambda k: -x * x * (2 * k - 1) / (k * (2 * k + 1)))


def tanh(x):
    return ((2 * x).exp() - 1) / ((2 * x).exp() + 1)


def solve(rows):
    """Gauss and Jordan's elimination; each row ends with its right side."""
    n = len(rows)
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for r in range(n):
            if r != i:
                rows[r] = [v - rows[r][i] * u for v, u in zip(rows[r], rows[i])]
    return [row[n] for row in rows]


def minimax(x, powers, target, weight):
    """The c that make the largest |weight (target - sum c x^power)| smallest: least squares, in which each point then
    counts the more the larger its error was (Lawson 1961)."""
    basis = [[v**p * w for p in powers] for v, w in zip(x, weight)]
    target = [t * w for t, w in zip(target, weight)]
    counts, best = [D(1)] * len(x), None
    for _ in range(40):
        columns, counted = list(zip(*basis)), list(zip(*[[a * n for a in row] for row, n in zip(basis, counts)]))
        c = solve([[sum(map(D.__mul__, u, v)) for v in columns + [target]] for u in counted])
        error = [abs(t - sum(map(D.__mul__, c, row))) for t, row in zip(target, basis)]
        best = min(best or (max(error), c), (max(error), c))
        total = sum(map(D.__mul__, counts, error))
        counts = [n * e / total for n, e in zip(counts, error)]
    return best[1]


def fit(name, low, high, count, target, weight, points=200):
    """One coefficient is rounded, the lowest first, and the others are fitted again to what it leaves."""
    low, high = D(low), D(high)
    x = [(low + high) / 2 - (high - low) / 2 * cos(PI * (i + D("0.5")) / points) for i in range(points)]
    left, weights, coefficients = [target(v) for v in x], [abs(weight(v)) for v in x], []
    for power in range(count):
        exact = minimax(x, range(power, count), left, weights)[0]
        coefficients.append(D(struct.unpack("f", struct.pack("f", exact))[0]))
        left = [t - coefficients[-1] * v**power for t, v in zip(left, x)]
    print(f"{name}: {max(map(abs, map(D.__mul__, left, weights))):.2g}")
    print("  " + " ".join(f"{float(c):.9g}" for c in reversed(coefficients)))


half_ln2 = D(2).ln() / 2 * D("1.0001")
fit("exp_tail", -half_ln2, half_ln2, 5, lambda r: (r.exp() - 1 - r) / r**2, lambda r: r**2 / (r.exp() - 1))
fit("log_reduced", D("0.5").sqrt() - 1, D(2).sqrt() - 1, 8,
    lambda f: ((1 + f).ln() - f + f * f / 2) / f**3, lambda f: f**3 / (1 + f).ln())
fit("tanh, inner", "1e-9", D("0.55") ** 2, 4,
    lambda s: (tanh(s.sqrt()) / s.sqrt() - 1) / s, lambda s: s * s.sqrt() / tanh(s.sqrt()))
fit("erf, inner", "1e-9", D("1.1") ** 2, 7, lambda s: erf(s.sqrt()) / s.sqrt() - 1, lambda s: s.sqrt() / erf(s.sqrt()))
# The weight is the slope of p^4: an error there counts as one of 1 - p^4.
fit("erf, outer", "1.1", "3.95", 8, lambda x: (1 - erf(x)).sqrt().sqrt(),
    lambda x: 4 * (1 - erf(x)).sqrt().sqrt() ** 3 / erf(x))
