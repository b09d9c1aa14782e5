"""Flags of careless work that need one peer or none: the pace of first answers, and agreement as by chance."""

from collections.abc import Iterator

import numpy as np

from analytics.frames import CampaignArrays
from analytics.frames.pace import first_answers
from analytics.models import Computation, Flag
from analytics.screening.carelessness import (
    LONG_TEXT,
    ONE_SIDED,
    ChanceAgreement,
    chance_agreement,
    is_too_fast,
    lowest_share,
)
from analytics.screening.kinds import CHANCE, PACE
from judging.models import Assessor, Campaign


def pace_flags(computation: Computation, campaign: Campaign, assessors: list[Assessor]) -> list[Flag]:
    """Return a flag of everybody who surely answers before they can have read; a machine's pace says nothing."""
    people = {one.pk: one for one in assessors if one.kind != Assessor.Kind.MACHINE}
    flags = []
    for key, n_fast, n in first_answers(campaign, list(people)):
        if is_too_fast(n_fast, n):
            words = (
                f"{n_fast:,} of {n:,} first answers on documents of {LONG_TEXT} characters or more took less than a "
                f"second. With 95 % confidence that is so of at least {100 * lowest_share(n_fast, n):.1f} % of them"
            )
            flags.append(
                Flag(
                    assessor=people[key],
                    computation=computation,
                    kind=PACE.key,
                    effect=n_fast / n,
                    evidence=words,
                )
            )
    return flags


def store_chance_flags(computation: Computation, arrays: CampaignArrays) -> None:
    """Store a flag of everybody whose grades agree with the others' no better than chance would make them."""
    flags = []
    for place, found, n_peers in _agreements(arrays):
        if found.is_no_better_than_chance:
            flags.append(
                Flag(
                    assessor=arrays.assessors[place],
                    computation=computation,
                    kind=CHANCE.key,
                    effect=found.kappa,
                    evidence=_chance_words(found, n_peers),
                )
            )
    Flag.objects.bulk_create(flags)


def _chance_words(found: ChanceAgreement, n_peers: int) -> str:
    highest = found.kappa + ONE_SIDED * found.se
    words = (
        f"the same grade as the others in {100 * found.observed:.0f} % of {found.n:,} shared documents, where chance "
        f"gives {100 * found.expected:.0f} %: kappa is {found.kappa:.2f}, with 95 % confidence at most {highest:.2f}"
    )
    return f"{words}. There is one peer alone: either of the two may be at fault" if n_peers == 1 else words


def _agreements(arrays: CampaignArrays) -> Iterator[tuple[int, ChanceAgreement, int]]:
    """Yield place, agreement with the others on shared items, and number of peers, of everybody who shares any.

    The same labels as `agreement` of analytics/services/activity.py.
    """
    n_grades = arrays.n_grades
    item, who, grade = arrays.label_item, arrays.label_assessor, arrays.label_grade
    cells = np.bincount(item * n_grades + grade, minlength=arrays.judged.size * n_grades)
    of_item = cells.reshape(-1, n_grades)
    order = np.argsort(who, kind="stable")
    bounds = np.searchsorted(who[order], np.arange(len(arrays.assessors) + 1))
    for place in range(len(arrays.assessors)):
        own = order[bounds[place] : bounds[place + 1]]
        others = of_item[item[own]].astype(np.float64)
        others[np.arange(own.size), grade[own]] -= 1
        n_others = others.sum(axis=1)
        own, others, n_others = (column[n_others > 0] for column in (own, others, n_others))
        if own.size:
            found = chance_agreement(grade[own], others / n_others[:, None])
            is_shared = np.zeros(arrays.judged.size, dtype=bool)
            is_shared[item[own]] = True
            yield place, found, np.unique(who[is_shared[item]]).size - 1
