"""An experiment as PyTerrier has it, with a result that knows its error."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from touchstone_ir.columns import NAMES, InputRefused
from touchstone_ir.measures import measures_of
from touchstone_ir.numbers import compare, judgments_of
from touchstone_ir.readers import read_run
from touchstone_ir.results import Result
from touchstone_ir.samples import knowledge_of

RESULT_COLUMNS = ("qid", "docno", "score")


def experiment(
    systems: Any,
    topics: Any,
    measures: Any,
    *,
    labels: Any = None,
    gold: Any = None,
    draw: Any = None,
    baseline: int | str | None = 0,
    names: Sequence[str] | None = None,
    gold_chosen: str | None = None,
    gains: Mapping[int, float] | None = None,
    relevant: int = 1,
    claim: str | None = None,
) -> Result:
    """Return what `touchstone_ir.compare` says of systems, once they have searched for the topics.

    Where ``pt.Experiment`` takes qrels, this takes labels and gold. They are checked before any system searches.
    PyTerrier itself is not needed.

    Parameters
    ----------
    systems : list, or dict by name
        PyTerrier's transformers, functions of the topics, or results: tables with qid, docno and score.
    topics : data frame, or None
        With qid and query, handed on to the systems. The numbers are about those of them that have labels; without
        any, about all topics of the labels.
    measures, labels, gold, draw, gold_chosen, gains, relevant, claim
        As `touchstone_ir.compare` takes them.
    baseline : int or str
        The place or the name of the system that is subtracted; None for every pair.
    names : list of str, optional
        Of the systems in a list; by default what they call themselves.

    Raises
    ------
    InputRefused, ValueError
        As `touchstone_ir.compare`; a system that returns no table with qid, docno and score.
    """
    known = dict(systems) if isinstance(systems, Mapping) else _named_systems(systems, names)
    if len(known) < 2:
        raise InputRefused(f"an experiment needs at least two systems, got {len(known)}")
    against = None if baseline is None else _baseline(list(known), baseline)
    asked = None if topics is None else _topic_ids(topics)
    labels = _of_topics(judgments_of(labels), asked)
    gold = _of_topics(judgments_of(gold), asked)
    draw = _of_topics(judgments_of(draw, graded=False), asked)
    if not knowledge_of(labels, gold, draw, gold_chosen).main.height:
        raise InputRefused("none of the topics has a label: are their ids spelled alike?")
    wanted = [one.name for one in measures_of(measures)]
    return compare(
        pl.concat([_results(system, name, topics) for name, system in known.items()]),
        wanted,
        labels=labels,
        gold=gold,
        draw=draw,
        gold_chosen=gold_chosen,
        gains=gains,
        relevant=relevant,
        claim=claim,
        against=against,
    )


def _named_systems(systems: Any, names: Sequence[str] | None) -> dict[str, Any]:
    many = list(systems)
    found = list(names) if names is not None else [_own_name(one, place) for place, one in enumerate(many)]
    if len(found) != len(many):
        raise InputRefused(f"there are {len(many)} systems and {len(found)} names=")
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice is not None:
        raise InputRefused(f"two systems are called {twice}: tell them apart with names=")
    return dict(zip(found, many, strict=True))


def _own_name(system: Any, place: int) -> str:
    if hasattr(system, "columns"):
        return f"system {place + 1}"
    return str(getattr(system, "__name__", system))


def _baseline(names: Sequence[str], baseline: int | str) -> str:
    if isinstance(baseline, str) and baseline in names:
        return baseline
    if isinstance(baseline, int) and 0 <= baseline < len(names):
        return names[baseline]
    raise InputRefused(f"baseline={baseline!r} is none of the systems: {', '.join(names)}")


def _topic_ids(topics: Any) -> list[str]:
    column = next((name for name in ("qid", *NAMES["topic"]) if name in topics.columns), None)
    if column is None:
        raise InputRefused("topics: there is no column qid")
    return [str(one) for one in topics[column].to_list()]


def _of_topics(table: pl.DataFrame | None, asked: Sequence[str] | None) -> pl.DataFrame | None:
    return table if table is None or asked is None else table.filter(pl.col("topic").is_in(asked))


def _results(system: Any, name: str, topics: Any) -> pl.DataFrame:
    """Return what a system finds as a run of this name.

    Of a table as PyTerrier has it only three columns count: others (docid, text) bear names that are theirs elsewhere.
    """
    found = system
    if not hasattr(system, "columns"):
        search = getattr(system, "transform", system)
        if topics is None or not callable(search):
            what = "needs topics to search for" if callable(search) else "is neither a system nor a table"
            raise InputRefused(f"the system {name} {what}")
        found = search(topics)
    if not hasattr(found, "columns"):
        raise InputRefused(f"the system {name} returned {type(found).__name__}, which is no table")
    if set(RESULT_COLUMNS) <= set(found.columns):
        found = found[list(RESULT_COLUMNS)]
    try:
        return read_run(found, name=name)
    except InputRefused as error:
        raise InputRefused(f"the system {name}: {error}") from error
