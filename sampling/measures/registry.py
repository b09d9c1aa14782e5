"""All measures, and the reading of their names: Family(parameter=value)@cutoff, as in ir_measures.

A new family is a file with its `Family` and an entry in FAMILIES. Forms, API, commands, charts, documentation and
releases read FAMILIES; what they do with a measure follows from its kind.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from sampling.measures.ap import AP, STATAP
from sampling.measures.dcg import DCG
from sampling.measures.err import ERR
from sampling.measures.families import Family, Measure, named_measure
from sampling.measures.kinds import KINDS, Complete, Kind, Linear, Pairs, Ratio
from sampling.measures.ndcg import NDCG
from sampling.measures.pairwise import SWAPS, WEIGHTED_SWAPS
from sampling.measures.precision import MEAN_GAIN, PRECISION
from sampling.measures.rbp import RBP
from sampling.measures.recall import RECALL
from sampling.measures.rr import RR
from sampling.measures.spelling import NameParts, split_name

FAMILIES: tuple[Family, ...] = (
    PRECISION,
    MEAN_GAIN,
    DCG,
    RBP,
    NDCG,
    AP,
    STATAP,
    RECALL,
    ERR,
    RR,
    SWAPS,
    WEIGHTED_SWAPS,
)

# Cut off at the number of relevant documents, or divided by what was judged: no estimator here covers them.
NOT_SERVED = frozenset({"Rprec", "RPrec", "infAP", "Bpref", "SDCG"})
_KindT = TypeVar("_KindT", bound=Kind)


class WrongKind(ValueError):
    """The measure is of a kind that is not served here."""


def keys_of(kind: type[_KindT]) -> list[str]:
    """Return the families of a kind, in the order of their names.

    >>> keys_of(Ratio)
    ['AP', 'R', 'nDCG', 'statAP']
    """
    return sorted(family.key for family in FAMILIES if isinstance(family.kind, kind))


def parse_measure(name: str) -> Measure[Kind]:
    """Return the measure that a name means.

    A sum over documents needs a cutoff: beyond the pool nothing is ever judged. A ratio may have "micro " before its
    name: the ratio of the sums over topics, which needs far fewer judgments than the mean over topics of the ratio.

    Gains belong to the scale, hence ``dcg='exp-log2'`` and ``gains=`` are refused: give the scale the gains
    2^grade - 1 instead. ``judged_only`` is refused because a sample leaves most documents unjudged.

    Raises
    ------
    ValueError
        Unknown family or parameter, no cutoff or one outside [1, 100000], a parameter outside its range.

    Examples
    --------
    >>> parse_measure("RBP@100").name
    'RBP(p=0.8)@100'
    >>> parse_measure("micro MAP(rel=2)@20").name
    'micro AP(rel=2)@20'
    """
    averaging, space, rest = name.partition(" ")
    is_averaged = averaging in ("micro", "macro") and bool(space)
    parts = split_name(rest.lstrip() if is_averaged else name)
    family = _family(parts, name)
    if is_averaged and not isinstance(family.kind, Ratio):
        raise ValueError(f"measure {name!r} is {family.kind.noun}: only a ratio has a {averaging} average")
    cutoff = parts.cutoff
    if cutoff is None and family.kind.needs_cutoff:
        raise ValueError(f"measure {name!r} needs a cutoff, as in {parts.family}@10")
    return named_measure(family, cutoff, _values(parts, family), "micro" if averaging == "micro" else "macro")


def _family(parts: NameParts, name: str) -> Family:
    for family in FAMILIES:
        if parts.family == family.key or parts.family in family.aliases:
            return family
    keys = sorted(family.key for family in FAMILIES)
    if parts.family in NOT_SERVED:
        raise ValueError(f"measure {name!r} is a ratio that is not served: choose one of {keys}")
    raise ValueError(f"measure family must be one of {keys}, got {parts.family!r}")


def _values(parts: NameParts, family: Family) -> dict[str, Any]:
    """Return the value of every parameter."""
    given = parts.parameters
    known = sorted(one.key for one in family.parameters)
    unknown = [key for key in given if key not in known]
    if unknown:
        raise ValueError(f"{parts.family} takes the parameters {known}, got {unknown[0]!r}")
    return {
        one.key: one.read(given[one.key]) if one.key in given else one.default for one in family.parameters
    }


def usual_spelling(name: str) -> str:
    """Return the canonical spelling of a measure's name; what is no name of a measure stays as it is.

    >>> usual_spelling("RBP@20"), usual_spelling("nothing")
    ('RBP(p=0.8)@20', 'nothing')
    """
    try:
        return parse_measure(name).name
    except ValueError:
        return name


def spellings(name: str) -> tuple[str, ...]:
    """Return the names under which numbers in a measure may be stored: as it is spelled now, and as it was before.

    Parameters that are always written now were left out at their default.

    >>> spellings("RBP@20"), spellings("P@10")
    (('RBP(p=0.8)@20', 'RBP@20'), ('P@10',))
    """
    try:
        measure = parse_measure(name)
    except ValueError:
        return (name,)
    former = tuple(replace(one, is_always_written=False) for one in measure.family.parameters)
    before = named_measure(
        replace(measure.family, parameters=former), measure.cutoff, measure.parameters, measure.averaging
    )
    return tuple(dict.fromkeys((measure.name, before.name)))


def _of_kind(measure: Measure[Kind], kind: type[_KindT]) -> Measure[_KindT]:
    if isinstance(measure.kind, kind):
        return measure  # type: ignore[return-value]  # its kind was just looked at
    raise WrongKind(
        f"measure {measure.name!r} is {measure.kind.noun}, not {kind.noun}: choose one of {keys_of(kind)} here"
    )


def parse_linear(name: str) -> Measure[Linear]:
    """Return the measure of a name, a sum over documents; `WrongKind` for any other.

    Examples
    --------
    >>> parse_linear("DCG@10").parameters
    {'dcg': 2.0}
    """
    return _of_kind(parse_measure(name), Linear)


def nearest_sum(name: str) -> Measure[Linear]:
    """Return the measure of a name if it is a sum over documents; else DCG to its cutoff, which weighs ranks alike.

    For what goes by how much a document counts, where any sum will do.

    >>> nearest_sum("nDCG@20").name, nearest_sum("P@10").name
    ('DCG@20', 'P@10')
    """
    measure = parse_measure(name)
    return parse_linear(name if measure.kind.is_sum else f"DCG@{measure.cutoff}")


def parse_ratio(name: str) -> Measure[Ratio]:
    """Return the measure of a name, a ratio; `WrongKind` for any other.

    Examples
    --------
    >>> parse_ratio("micro nDCG@10").averaging
    'micro'
    """
    return _of_kind(parse_measure(name), Ratio)


def parse_complete(name: str) -> Measure[Complete]:
    """Return the measure of a name, one of completely judged ranks; `WrongKind` for any other."""
    return _of_kind(parse_measure(name), Complete)


def parse_pairs(name: str) -> Measure[Pairs]:
    """Return the measure of a name, a sum over pairs of documents; AP is one too. `WrongKind` for any other.

    Examples
    --------
    >>> parse_pairs("wSwaps@10").family.label
    'Weighted swaps'
    """
    measure = parse_measure(name)
    if isinstance(measure.kind, Ratio) and measure.kind.pairs is not None:
        return Measure(measure.name, measure.family, measure.kind.pairs, measure.cutoff, measure.parameters)
    return _of_kind(measure, Pairs)


def sums_among(names: Iterable[str]) -> list[str]:
    """Return the measures that are sums over documents: those that a design is made for.

    >>> sums_among(["nDCG@10", "P@10"])
    ['P@10']
    """
    return [name for name in names if parse_measure(name).kind.is_sum]


def reported_measures(drawn_for: str, depth: int) -> list[str]:
    """Return the measures that a campaign has numbers in: the one that it was drawn for, then the usual ones.

    None may look deeper than was pooled: deeper ranks are not judged, and count as not relevant. One at least is a sum
    over documents: planning and some analyses know no other.

    >>> reported_measures("DCG@5", 9), reported_measures("nDCG@5", 9)
    (['DCG@5', 'AP@9', 'R@9'], ['nDCG@5', 'AP@9', 'R@9', 'DCG@5'])
    """
    usual = (name.format(depth=depth) for family in FAMILIES for name in family.reported)
    names = dict.fromkeys(parse_measure(name).name for name in (drawn_for, *usual))
    fitting = [name for name in names if parse_measure(name).last_rank <= depth]
    return fitting if sums_among(fitting) else [*fitting, nearest_sum(drawn_for).name]


def measures_of_samples() -> list[str]:
    """Return the measures that an imported sample has numbers in, or a reason for none.

    Those that predict nothing come first; then the usual ones, to no depth where they look at all that was pooled.

    >>> measures_of_samples()
    ['statAP', 'P@10', 'DCG@10', 'RBP(p=0.8)@20', 'nDCG@10', 'AP', 'ERR@10', 'RR@10']
    """
    kinds = [(family, family.kind) for family in FAMILIES]
    alone = [family.key for family, kind in kinds if isinstance(kind, Ratio) and not kind.has_prediction]
    return [parse_measure(name).name for name in alone] + usual_measures()


def usual_measures() -> list[str]:
    """Return the measures that every campaign has numbers in, to no depth where they look at all that was pooled.

    >>> usual_measures()
    ['P@10', 'DCG@10', 'RBP(p=0.8)@20', 'nDCG@10', 'AP', 'ERR@10', 'RR@10']
    """
    usual = [
        name.removesuffix("@{depth}")
        for family in FAMILIES
        for name in family.reported
        if "{depth}" not in name or not family.kind.needs_cutoff
    ]
    return [parse_measure(name).name for name in usual]


def suggested_measures(kinds: tuple[type[Kind], ...] = KINDS) -> list[str]:
    """Return the measures of these kinds that a form offers.

    >>> suggested_measures((Linear,))
    ['P@10', 'Gain@10', 'DCG@10', 'DCG@20', 'RBP(p=0.8)@20']
    """
    return [name for family in FAMILIES if isinstance(family.kind, kinds) for name in family.suggested]


def designed_ratios() -> list[str]:
    """Return the families of ratios for which designs that draw documents are made: those that predict.

    >>> designed_ratios()
    ['AP', 'R', 'nDCG']
    """
    kinds = [(family.key, family.kind) for family in FAMILIES]
    return sorted(key for key, kind in kinds if isinstance(kind, Ratio) and kind.has_prediction)


def suggested_designs() -> list[str]:
    """Return the measures that a form offers for a design: sums over documents, and ratios to a cutoff.

    >>> suggested_designs()
    ['P@10', 'Gain@10', 'DCG@10', 'DCG@20', 'RBP(p=0.8)@20', 'nDCG@10', 'AP@10', 'R@10']
    """
    ratios = set(designed_ratios())
    names = [name for family in FAMILIES if family.key in ratios for name in family.suggested]
    return suggested_measures((Linear,)) + [name if "@" in name else f"{name}@10" for name in names]


def reported_kinds() -> list[tuple[str, str]]:
    """Return key and noun of the kinds that a campaign's measures can have.

    >>> reported_kinds()[0]
    ('linear', 'a sum over documents')
    """
    kinds = {type(family.kind) for family in FAMILIES if family.reported}
    return [(kind.key, kind.noun) for kind in KINDS if kind in kinds]
