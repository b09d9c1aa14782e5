"""The spelling of measures, Family(parameter=value)@cutoff as in ir_measures: names into parts and back."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

MAX_CUTOFF = 100_000
_SPELLING = re.compile(r"(?P<family>[A-Za-z_]+)(?:\((?P<parameters>[^()]*)\))?(?:@(?P<cutoff>[0-9]{1,7}))?")
_PARAMETER = re.compile(r"(?P<key>[a-z]+)=(?P<quote>['\"]?)(?P<value>[A-Za-z0-9.]+)(?P=quote)")


@dataclass(frozen=True)
class NameParts:
    """The parts of a measure's name; its parameters by key, as text."""

    name: str
    family: str
    parameters: dict[str, str]
    cutoff: int | None


def split_name(name: str) -> NameParts:
    """Return the parts of a measure's name.

    Raises
    ------
    ValueError
        Another spelling, a cutoff outside [1, 100000], a parameter misspelled or given twice, gains in the name.

    Examples
    --------
    >>> split_name("RBP(p=0.5, rel=2)@20").parameters
    {'p': '0.5', 'rel': '2'}
    """
    parts = _SPELLING.fullmatch(name)
    if parts is None:
        raise ValueError(f"measure must be spelled Family(parameter=value)@cutoff, got {name!r}")
    cutoff = None if parts["cutoff"] is None else int(parts["cutoff"])
    if cutoff is not None and not 1 <= cutoff <= MAX_CUTOFF:
        raise ValueError(f"cutoff must be within [1, {MAX_CUTOFF}], got {cutoff}")
    return NameParts(name, parts["family"], _parameters(name, parts["parameters"]), cutoff)


def _parameters(name: str, text: str | None) -> dict[str, str]:
    if any(word in (text or "") for word in ("exp-", "gains")):
        raise ValueError(
            f"gains belong to the scale, not to the measure: give the scale the gains, got {name!r}"
        )
    given: dict[str, str] = {}
    for part in [] if text is None else text.split(","):
        pair = _PARAMETER.fullmatch(part.strip())
        if pair is None:
            raise ValueError(f"parameter must be spelled key=value, got {part!r} in measure {name!r}")
        if pair["key"] in given:
            raise ValueError(f"parameter {pair['key']!r} is given twice in measure {name!r}")
        given[pair["key"]] = pair["value"]
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
