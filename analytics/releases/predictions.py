"""The gains that a release expects of its pairs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.estimation.graded_labels import stair_gains
from analytics.releases.verify_facts import Facts, Floats, GoldColumns
from sampling.measures.scoring import ScaledMeasure


@dataclass(frozen=True, eq=False)
class Predictions:
    """The gains that a release expects of its pairs, before judging; and, after an audit, the gold gains."""

    gain: Floats  # [frame]
    gold: GoldColumns | None
    stairs: tuple[GoldColumns, ...] = ()  # of every stair of these gains; none where one is missing


def predictions(facts: Facts, about: Mapping[str, Any], measure: ScaledMeasure) -> Predictions:
    """Return what the release expects, if it has predictions for these gains; else zeros."""
    stairs = _stairs(facts, about, measure.gains)
    for one in about.values():
        name = one.get("prediction")
        if one["gains"] == measure.gains.tolist() and name in facts.predictions:
            gold = facts.gold.get(name.removeprefix("prediction_"))
            return Predictions(facts.predictions[name], gold, stairs)
    return Predictions(np.zeros(facts.topic.size), None, stairs)


def _stairs(facts: Facts, about: Mapping[str, Any], gains: Floats) -> tuple[GoldColumns, ...]:
    """Return the predictions of gold on every stair of these gains; none where the release lacks one."""
    if not gains.any():
        return ()
    named: dict[tuple[float, ...], str] = {}
    for one in about.values():
        known = np.array(one["gains"])
        named |= {tuple(known.tolist()): one.get("prediction", "")}
        if one.get("stairs"):
            named |= dict(zip(map(tuple, stair_gains(known).tolist()), one["stairs"], strict=True))
    wanted = [named.get(tuple(row), "").removeprefix("prediction_") for row in stair_gains(gains).tolist()]
    return tuple(facts.gold[name] for name in wanted) if all(name in facts.gold for name in wanted) else ()
