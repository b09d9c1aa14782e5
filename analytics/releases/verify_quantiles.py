"""Tails and quantiles of the normal, t and beta distributions, with Python's standard library alone.

Part of every release, beside verify.py: intervals and p-values need them.
"""

import math
from functools import cache
from statistics import NormalDist

Z95 = 1.959963984540054


def beta_share(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b): Lentz's continued fraction, 8.17.22 of the DLMF."""
    if not 0 < x < 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_share(b, a, 1 - x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 100_000):
        before = fraction
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d, c = 1 / (1 + step * d), 1 + step / c
            fraction *= c * d
        if abs(fraction - before) <= 1e-16 * abs(fraction):
            break
    return math.exp(front) * fraction / a


@cache
def beta_quantile(share: float, a: float, b: float) -> float:
    """Return the x below which a share of the beta distribution lies: Newton's steps, halved where they leave."""
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    low, high, x = 0.0, 1.0, a / (a + b)
    for _ in range(1000):
        above = beta_share(a, b, x) - share
        low, high = (low, x) if above >= 0 else (x, high)
        density = math.exp((a - 1) * math.log(x) + (b - 1) * math.log1p(-x) - log_beta)
        before, x = x, x - above / density if density > 0 else low
        if not low < x < high:
            x = low + (high - low) / 2
        if abs(x - before) <= 1e-15 * x:
            break
    return x


def t_tail(df: float, t: float) -> float:
    """Return the chance that a t distributed number is above t > 0; infinite degrees of freedom: normal."""
    if math.isinf(df):
        return 0.5 * math.erfc(t / math.sqrt(2))
    return 0.5 * beta_share(df / 2, 0.5, df / (df + t * t))


@cache
def t_quantile(df: float, tail: float) -> float:
    """Return the t > 0 that is passed with this chance, at most .5."""
    z = -NormalDist().inv_cdf(tail)
    if math.isinf(df):
        return z
    if df > 1e4 and z < 6:  # Cornish and Fisher's series: what is left out is below 1e-11
        parts = (
            (z**3 + z) / 4,
            (5 * z**5 + 16 * z**3 + 3 * z) / 96,
            (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        )
        return z + sum(part / df ** (power + 1) for power, part in enumerate(parts))
    t = max(z, 1.0)
    for _ in range(
        200
    ):  # Newton's steps on logarithms, where the tail is concave: from any start they arrive
        tail_here = t_tail(df, t)
        density = math.exp(
            math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - (df + 1) / 2 * math.log1p(t * t / df)
        )
        slope = t * density / math.sqrt(df * math.pi) / tail_here
        before, t = t, t * math.exp(math.log(tail_here / tail) / slope)
        if abs(t - before) <= 1e-15 * t:
            break
    return t


def t95(df: float) -> float:
    return Z95 if math.isinf(df) else t_quantile(df, 0.025)
