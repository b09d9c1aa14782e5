"""Keys stand in databases, releases and scripts: one that was ever released stays in its table."""

from collections.abc import Callable

import pytest

from analytics.aggregation.rules import aggregation_keys
from analytics.methods import METHODS
from analytics.releases.formats import RELEASE_FILES
from analytics.screening.kinds import flag_choices
from analytics.services.exports import export_keys
from analytics.services.label_classes import LABELS
from judging.formats.run_names import run_format_keys
from judging.kinds import kind_keys
from judging.label_aggregation import label_score_keys
from judging.services.judgment_formats import judgment_format_keys
from sampling.measures.registry import FAMILIES
from sampling.rejudging_policies import rejudging_policy_keys
from sampling.selections import selection_keys
from sampling.strategies import strategy_keys


def release_file_names() -> list[str]:
    return [name for one in RELEASE_FILES for name in one.names]


def measure_keys() -> list[str]:
    return [name for family in FAMILIES for name in (family.key, *family.aliases)]


def flag_keys() -> list[str]:
    return [key for key, _ in flag_choices()]


def method_keys() -> list[str]:
    return [method.key for method in METHODS]


FILES = (
    "qrels.txt qrels_jg.txt prels.txt topics.jsonl topics.parquet documents.jsonl documents.parquet "
    "judgments.jsonl judgments.parquet items.jsonl items.parquet assessors.jsonl runs.json runs/* draws/* audits.json "
    "confusion.json estimates.json beir/* verify.py verify_*.py manifest.json croissant.json CITATION.txt "
    "CITATION.bib README.md CHANGES.md LICENSE.txt"
)
# By table, what reads its keys, and the keys ever released. Add to these lists; never take away.
RELEASED: dict[str, tuple[Callable[[], list[str]], str]] = {
    "aggregated labels": (
        label_score_keys,
        "vote-share one-label dawid-skene one-coin spammers empirical-bayes machine supermajority",
    ),
    "aggregation rules": (aggregation_keys, "median majority dawid-skene supermajority"),
    "kinds of judging": (kind_keys, "graded"),
    "selections": (selection_keys, "poisson pareto replacement"),
    "measures": (measure_keys, "P Gain DCG RBP nDCG AP NDCG MAP statAP R Recall ERR RR MRR Swaps wSwaps"),
    "methods": (method_keys, "naive corrected matrix-inverse importance true"),
    "formats of judgments": (
        judgment_format_keys,
        "qrels qrels_jg crowd gold beir cranfield prels stratified mteb umbrela",
    ),
    "formats of runs": (run_format_keys, "run msmarco json_run pyterrier"),
    "files of a release": (release_file_names, FILES),
    "kinds of flags": (
        flag_keys,
        (
            "speed fast-topics giving-up serial all-alike drift rate no-relation false-alarms misses accuracy "
            "less-accurate change pace chance"
        ),
    ),
    "exports": (export_keys, "qrels qrels_jg prels crowd"),
    "policies of judging again": (rejudging_policy_keys, "influence lowest-probability random"),
    "strategies": (
        strategy_keys,
        "influence risk neyman rare simple topic effort full learned whole-topics census",
    ),
}


def lost_keys(released: str, keys: list[str]) -> list[str]:
    return [key for key in released.split() if key not in keys]


@pytest.mark.parametrize("table", RELEASED)
def test_no_key_that_was_released_has_gone_and_none_stands_twice(table: str) -> None:
    keys_of, released = RELEASED[table]
    keys = keys_of()
    assert lost_keys(released, keys) == []
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("table", RELEASED)
def test_a_key_that_goes_is_seen(table: str) -> None:
    keys_of, released = RELEASED[table]
    first, *rest = keys_of()
    assert lost_keys(released, rest) == [first]


def test_every_aggregated_label_is_computed() -> None:
    assert list(LABELS) == label_score_keys()
