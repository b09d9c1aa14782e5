"""What an estimate is: a number with its interval, or the reason why there is none; and many of them in columns."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Below there is no interval: see docs/methods/derivations/sampling.md, section 7.1.
FEWEST_ITEMS = 10
FEW_ITEMS = 50  # below: coverage still .89-.95
FEWEST_POSITIVE = 10  # items of positive gain that carry a number: with 1 or 2, coverage fell to .77 and .52
Z95 = 1.959963984540054


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % confidence interval; `sources` names the errors the interval contains.

    `degrees_of_freedom` is None where the normal quantile was used. `n` counts the items (or topics) the
    standard error rests on. `components` splits the variance: (("drawing", .01), ("gold", .02)).
    """

    value: float
    standard_error: float
    low: float
    high: float
    degrees_of_freedom: float | None
    n: int
    sources: tuple[str, ...]
    components: tuple[tuple[str, float], ...] = ()
    warning: str = ""


@dataclass(frozen=True)
class Refusal:
    """The reason why there is no number, and about how many more labels (or topics) would give one."""

    reason: str
    needed: int | None = None


def quantile95(degrees_of_freedom: float | None) -> float:
    """Return the 97.5 % quantile of t, or of the normal distribution for None.

    >>> round(quantile95(9), 6), round(quantile95(None), 6)
    (2.262157, 1.959964)
    """
    return Z95 if degrees_of_freedom is None else float(scipy.special.stdtrit(degrees_of_freedom, 0.975))


def estimate(
    value: float,
    variance: float,
    *,
    degrees_of_freedom: float | None,
    n: int,
    sources: Sequence[str],
    components: Sequence[tuple[str, float]] = (),
    warning: str = "",
) -> Estimate:
    """Return the estimate with a symmetric 95 % confidence interval, assuming value/SE is t (or normal) distributed."""
    if not (math.isfinite(value) and math.isfinite(variance) and variance >= 0):
        raise ValueError(f"value must be finite and variance finite and >= 0, got {value} and {variance}")
    error = math.sqrt(variance)
    half = quantile95(degrees_of_freedom) * error
    df = None if degrees_of_freedom is None else float(degrees_of_freedom)
    parts = tuple((name, float(part)) for name, part in components)
    low, high = float(value - half), float(value + half)
    return Estimate(float(value), error, low, high, df, int(n), tuple(sources), parts, warning)


def few_items_warning(n: int, noun: str = "judged items") -> str:
    """Return a warning below 50 items, else an empty string."""
    return f"only {n} {noun}: coverage of the interval may be as low as .84" if n < FEW_ITEMS else ""


def few_positive_warning(n: int) -> str:
    """Return a warning where fewer than 10 items of positive gain carry a number, else an empty string.

    The standard error is that of a few large parts: where none of them was drawn, it is too small.
    """
    if n >= FEWEST_POSITIVE:
        return ""
    noun = "document" if n == 1 else "documents"
    return (
        f"only {n} judged {noun} with a gain above 0 carry this number: the interval may miss the true value far more "
        "often than 5 %"
    )


def too_few(n: int, least: int = FEWEST_ITEMS, noun: str = "judged items") -> Refusal:
    """Return the refusal for `n` items with non-zero weight where `least` are needed."""
    return Refusal(f"{n} {noun} with non-zero weight; at least {least} are needed", least - n)


def no_spread(n: int) -> Refusal:
    """Return the refusal for `n` items whose errors are all alike: an interval of no width would be false.

    The usual case: nothing that was judged is relevant, and there is no prior. Source:
    docs/methods/derivations/sampling.md, section 7.2.
    """
    return Refusal(
        f"the {n} judged items with non-zero weight are all alike, so the error cannot be estimated; "
        "judge more, or use the difference from a prior guess"
    )


# -- many targets at once -----------------------------------------------------------------------------------


def quantiles95(degrees_of_freedom: Floats) -> Floats:
    """Return the 97.5 % quantiles of t; infinity is the normal distribution.

    >>> quantiles95(np.array([9, np.inf])).round(6).tolist()
    [2.262157, 1.959964]
    """
    different, back = np.unique(degrees_of_freedom, return_inverse=True)
    finite_ones = np.where(np.isfinite(different), different, 1.0)
    return np.asarray(np.where(np.isfinite(different), scipy.special.stdtrit(finite_ones, 0.975), Z95)[back])


@dataclass(frozen=True, eq=False)
class Estimates(Sequence[Estimate | Refusal]):
    """What one method says of many targets, in columns; as a sequence, the `Estimate` or `Refusal` of each.

    Columns are [target]; where a target is refused their numbers mean nothing. `degrees_of_freedom` is infinite where
    the normal quantile was used.
    """

    value: Floats
    standard_error: Floats
    low: Floats
    high: Floats
    degrees_of_freedom: Floats
    n: Ints
    sources: tuple[str, ...]
    components: dict[str, Floats]
    warnings: list[str]
    refusals: dict[int, Refusal]

    def __len__(self) -> int:
        return self.value.size

    @overload
    def __getitem__(self, target: int) -> Estimate | Refusal: ...
    @overload
    def __getitem__(self, target: slice) -> list[Estimate | Refusal]: ...
    def __getitem__(self, target: int | slice) -> Estimate | Refusal | list[Estimate | Refusal]:
        if isinstance(target, slice):
            return [self[place] for place in range(*target.indices(len(self)))]
        place = range(len(self))[target]
        if place in self.refusals:
            return self.refusals[place]
        df = float(self.degrees_of_freedom[place])
        value, error, low, high = (
            float(column[place]) for column in (self.value, self.standard_error, self.low, self.high)
        )
        parts = tuple((name, float(part[place])) for name, part in self.components.items())
        known = None if math.isinf(df) else df
        return Estimate(
            value, error, low, high, known, int(self.n[place]), self.sources, parts, self.warnings[place]
        )

    def __iter__(self) -> Iterator[Estimate | Refusal]:
        return (self[place] for place in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def with_warning(self, more: Sequence[str] | str) -> "Estimates":
        """Return the estimates with more words of warning: the same for all, or one text a target."""
        added = [more] * len(self) if isinstance(more, str) else more
        both = zip(self.warnings, added, strict=True)
        return replace(self, warnings=["; ".join(filter(None, words)) for words in both])


def estimates(
    value: Floats,
    components: Mapping[str, Floats],
    *,
    degrees_of_freedom: Floats | float,
    n: Ints,
    refusals: Mapping[int, Refusal],
    sources: Sequence[str] = (),
    quantile: float | None = None,
    warning: Callable[[int], str] = few_items_warning,
) -> Estimates:
    """Return the estimates with symmetric 95 % confidence intervals; the variance is the sum of its components.

    Assumption: value/SE is t distributed with the degrees of freedom given (infinite: normal), or as `quantile` says.
    `sources` are the names of the components unless given; `warning` says what is to be said of n.
    """
    refused = np.zeros(value.size, dtype=bool)
    refused[list(refusals)] = True
    variance = np.where(refused, 0.0, np.sum(list(components.values()), axis=0))
    wrong = ~refused & ~(np.isfinite(value) & np.isfinite(variance) & (variance >= 0))
    if wrong.any():
        raise ValueError(
            f"value must be finite and variance finite and >= 0, got {value[wrong][0]} and {variance[wrong][0]}"
        )
    error = np.sqrt(variance)
    df = np.broadcast_to(np.asarray(degrees_of_freedom, dtype=np.float64), value.shape)
    half = (quantiles95(df) if quantile is None else quantile) * error
    words = {size: warning(size) for size in set(n.tolist())}
    warnings = [words[size] for size in n.tolist()]
    names = tuple(sources or components)
    parts = {name: np.asarray(part) for name, part in components.items()}
    return Estimates(value, error, value - half, value + half, df, n, names, parts, warnings, dict(refusals))


def all_refused(n_targets: int, refusal: Refusal, but: Mapping[int, Refusal] | None = None) -> Estimates:
    """Return the same refusal for every target, but for those that are refused for a reason of their own."""
    zero = np.zeros(n_targets)
    return estimates(
        zero,
        {},
        degrees_of_freedom=np.inf,
        n=np.zeros(n_targets, dtype=np.int64),
        refusals=dict.fromkeys(range(n_targets), refusal) | dict(but or {}),
    )


def values_alone(value: Floats, n: Ints, why: str) -> Estimates:
    """Return numbers without an interval: its columns are NaN, and the warning says why there is none."""
    nothing = np.full(value.size, math.nan)
    df = np.full(value.size, math.inf)
    return Estimates(value, nothing, nothing, nothing, df, n, (), {}, [why] * value.size, {})


def in_columns(results: Sequence[Estimate | Refusal]) -> Estimates:
    """Return results of one method, given one by one, in columns."""
    if isinstance(results, Estimates):
        return results
    nothing = Estimate(0.0, 0.0, 0.0, 0.0, None, 0, ())
    each = [one if isinstance(one, Estimate) else nothing for one in results]
    names = dict.fromkeys(name for one in each for name, _ in one.components)
    value, error, low, high = (
        np.array([[one.value, one.standard_error, one.low, one.high] for one in each]).reshape(-1, 4).T.copy()
    )
    return Estimates(
        value,
        error,
        low,
        high,
        np.array([math.inf if one.degrees_of_freedom is None else one.degrees_of_freedom for one in each]),
        np.array([one.n for one in each], dtype=np.int64),
        next((one.sources for one in each if one.sources), ()),
        {name: np.array([dict(one.components).get(name, math.nan) for one in each]) for name in names},
        [one.warning for one in each],
        {place: one for place, one in enumerate(results) if isinstance(one, Refusal)},
    )


def refused_where(mask: NDArray[np.bool_], refusal: Callable[[int], Refusal]) -> dict[int, Refusal]:
    """Return the refusal of each target under the mask, by its place."""
    return {target: refusal(target) for target in np.flatnonzero(mask).tolist()}


def too_few_of(n: Ints, least: int = FEWEST_ITEMS, noun: str = "judged items") -> dict[int, Refusal]:
    """Return by place the refusals of the targets with too few items with weight."""
    return refused_where(n < least, lambda target: too_few(int(n[target]), least, noun))


def few_or_alike(n: Ints, is_alike: NDArray[np.bool_], least: int) -> dict[int, Refusal]:
    """Return by place the refusals of the targets with too few items with weight, or with errors that are all alike."""
    alike = refused_where(is_alike, lambda target: no_spread(int(n[target])))
    return alike | too_few_of(n, least)
