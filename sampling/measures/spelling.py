"""The spelling of measures, Family(parameter=value)@cutoff as in ir_measures: names into parts and back."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

MAX_CUTOFF = 100_000
_SPELLING = re.compile(r"(?P<family>[A-Za-z_]+)(?:\((?P<parameters>[^()]*)\))?(?:@(?P<cutoff>[0-9]{1,7}))?")
_PARAMETER = re.compile(r"(?P<key>[a-z]+)=(?P<quote>['\"]?)(?P<value>[A-Za-z0-9.]+)(?P=quote)")


@dataclass(frozen=True)
class Spelled:
    """Return of `spelled`: the parts of a name, its parameters still one text."""

    name: str
    family: str
    parameters: str | None
    cutoff: int | None


def spelled(name: str) -> Spelled:
    """Return the parts of a measure's name.

    Raises
    ------
    ValueError
        Another spelling, or a cutoff outside [1, 100000].

    Examples
    --------
    >>> spelled("RBP(p=0.5)@20")
    Spelled(name='RBP(p=0.5)@20', family='RBP', parameters='p=0.5', cutoff=20)
    """
    parts = _SPELLING.fullmatch(name)
    if parts is None:
        raise ValueError(f"measure must be spelled Family(parameter=value)@cutoff, got {name!r}")
    cutoff = None if parts["cutoff"] is None else int(parts["cutoff"])
    if cutoff is not None and not 1 <= cutoff <= MAX_CUTOFF:
        raise ValueError(f"cutoff must be within [1, {MAX_CUTOFF}], got {cutoff}")
    return Spelled(name, parts["family"], parts["parameters"], cutoff)


def parameters(measure: Spelled, allowed: Collection[str]) -> dict[str, str]:
    """Return the named parameters as text; ValueError for one misspelled, not allowed or given twice.

    >>> parameters(spelled("RBP(p=0.5, rel=2)@20"), {"p", "rel"})
    {'p': '0.5', 'rel': '2'}
    """
    given: dict[str, str] = {}
    for part in [] if measure.parameters is None else measure.parameters.split(","):
        pair = _PARAMETER.fullmatch(part.strip())
        if pair is None:
            raise ValueError(f"parameter must be spelled key=value, got {part!r} in measure {measure.name!r}")
        key = pair["key"]
        if key not in allowed:
            raise ValueError(f"{measure.family} takes the parameters {sorted(allowed)}, got {key!r}")
        if key in given:
            raise ValueError(f"parameter {key!r} is given twice in measure {measure.name!r}")
        given[key] = pair["value"]
    return given


def read_grade(text: str) -> int:
    """Return the lowest relevant grade that a parameter names.

    >>> read_grade("2")
    2
    """
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise ValueError(f"rel must be a grade within [1, 1000], got {text!r}")
    return int(text)


def canonical(family: str, shown: Sequence[str], cutoff: int | None) -> str:
    """Return the name as ir_measures prints it.

    >>> canonical("AP", ["rel=2"], 20)
    'AP(rel=2)@20'
    """
    inside = f"({','.join(shown)})" if shown else ""
    return f"{family}{inside}" if cutoff is None else f"{family}{inside}@{cutoff}"
