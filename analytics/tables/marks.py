"""Marks of what is significant: daggers against a baseline, or the letters of the runs that a run beats."""

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

HIGHER, LOWER = "†", "‡"
Wins = Mapping[str, frozenset[str]]  # of each run the runs that are significantly lower


@dataclass(frozen=True)
class Marks:
    """A way to mark runs. `of` returns the marks of a run among all, `words` what the caption says of them."""

    key: str
    label: str
    help: str
    of: Callable[[str, Wins, Mapping[str, str], str], tuple[str, ...]]
    words: Callable[[str], str]
    has_letters: bool = False
    needs_baseline: bool = False


def letters_of(runs: Sequence[str]) -> dict[str, str]:
    """Return a letter for each run, in their order; after z come aa, ab and so on.

    >>> [letters_of([str(n) for n in range(30)])[str(n)] for n in (0, 25, 26, 29)]
    ['a', 'z', 'aa', 'ad']
    """
    return {run: _letters(place) for place, run in enumerate(runs)}


def _letters(place: int) -> str:
    text = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        text = string.ascii_lowercase[rest] + text
    return text


def _daggers(run: str, wins: Wins, letters: Mapping[str, str], baseline: str) -> tuple[str, ...]:
    if baseline in wins.get(run, ()):
        return (HIGHER,)
    return (LOWER,) if run in wins.get(baseline, ()) else ()


def _letters_beaten(run: str, wins: Wins, letters: Mapping[str, str], baseline: str) -> tuple[str, ...]:
    return tuple(letter for other, letter in letters.items() if other in wins.get(run, ()))


NO_MARKS = Marks("none", "No marks", "Values alone", lambda *_: (), lambda baseline: "")
DAGGERS = Marks(
    "daggers",
    "Daggers",
    "† significantly higher, ‡ significantly lower than the baseline",
    _daggers,
    lambda baseline: (
        f"{HIGHER} marks a run that is significantly higher than {baseline}, {LOWER} one that is lower"
    ),
    needs_baseline=True,
)
LETTERS = Marks(
    "letters",
    "Letters",
    "The letters of the runs that a run beats significantly",
    _letters_beaten,
    lambda baseline: "A letter above a value names a run that is significantly lower",
    has_letters=True,
)
MARKS = (NO_MARKS, DAGGERS, LETTERS)


def marks_of(key: str) -> Marks:
    """Return the marks of this key, or raise KeyError."""
    return {one.key: one for one in MARKS}[key]
