"""What the field extends is a table: an entry planted in one is met wherever its keys are, without a migration."""

import json
import re
from io import StringIO
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import reciprocal_rank
from asked_analyses import lines, made, page_of
from audit_plans import a_bit_wrong, address, client_of, text_of
from django.apps import apps as django_apps
from django.core.management import call_command
from django.db.migrations.state import ProjectState
from django.urls import reverse
from made_releases import audited, judged, opened, released
from small_campaign import DOCUMENTS, judge_all, make_assessor, make_campaign, make_undrawn
from small_release import judged_campaign, release_of, unpacked
from test_architecture import missing_migrations
from verdict_campaigns import rows_of

from analytics import methods
from analytics.aggregation import rules
from analytics.aggregation.grade_tables import NO_GRADE
from analytics.aggregation.rules import AggregationRule
from analytics.estimation.estimate import estimates
from analytics.estimation.evidence import Evidence, LinearTargets, MethodEstimates
from analytics.estimation.samples import Labels
from analytics.methods import Method
from analytics.models import AuditForecast, Release
from analytics.releases.verify import verify
from analytics.services import label_classes
from analytics.services.plot_data import run_forest
from analytics.services.recomputation import recompute
from judging import label_aggregation
from judging.label_aggregation import LabelScore
from judging.services.campaigns import set_score_and_costs
from sampling import selections, strategies
from sampling.measures import registry
from sampling.measures.kinds import Linear
from sampling.models import Audit
from sampling.selections import Selection
from sampling.strategies import Strategy
from touchstone.api.schema import description

DOCS = Path(__file__).resolve().parents[1] / "docs"
PLANTED = "planted"


def plant(monkeypatch: pytest.MonkeyPatch, module: ModuleType, table: str, entry: object) -> None:
    """Add an entry to the table of a module; that alone makes no migration."""
    assert entry not in getattr(module, table)
    monkeypatch.setattr(module, table, (*getattr(module, table), entry))
    assert missing_migrations(ProjectState.from_apps(django_apps)) == {}


def rows_below(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the table of the page whose head begins with the words."""
    _, _, rest = (DOCS / page).read_text().partition(f"| {heading} |")
    rows = rest.split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def api_choices(request: str, field: str) -> list[str]:
    """Return what the API's description, as it is made now, lists for a field of a request."""
    schemas = description.__wrapped__()["components"]["schemas"]
    described = next(schemas[name] for name in schemas if request in name)["properties"][field]
    parts = [described, *described.get("allOf", []), *described.get("oneOf", [])]
    parts += [schemas[part["$ref"].rpartition("/")[2]] for part in parts if "$ref" in part]
    return [key for part in parts for key in part.get("enum", [])]


def api_parameter(address: str, name: str) -> list[str]:
    """Return what the API's description lists for a parameter of the address that ends so."""
    paths = description.__wrapped__()["paths"]
    asked = next(path["get"]["parameters"] for at, path in paths.items() if at.rstrip("/").endswith(address))
    return next(one["schema"]["enum"] for one in asked if one["name"] == name)


def help_of(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        call_command(command, "--help")
    return capsys.readouterr().out


def planted_page(page: str) -> bool:
    """Return whether the page offers the planted key, with its label and help."""
    return f'value="{PLANTED}"' in page and 'Planted <span class="help">A planted help.</span>' in page


# -- measures -------------------------------------------------------------------------------------------------


def test_the_manual_has_the_table_of_measures() -> None:
    rows = rows_below("methods/measures.md", "family | name | kind | value of a topic")
    assert rows == [[f"`{one.key}`", one.label, one.kind.noun, one.help] for one in registry.FAMILIES]


@pytest.mark.django_db
def test_a_planted_measure_is_met_everywhere(tmp_path, monkeypatch, capsys) -> None:
    reciprocal_rank.plant(monkeypatch)
    assert missing_migrations(ProjectState.from_apps(django_apps)) == {}
    schemas = description.__wrapped__()["components"]["schemas"]
    kind = schemas["MeasureAnswer"]["properties"]["kind"]
    assert "complete" in str(schemas[kind["$ref"].rpartition("/")[2]] if "$ref" in kind else kind)
    assert "PlantedRR@10" in help_of("evaluate", capsys).split()

    campaign = judged_campaign(tmp_path, budget=42)
    computation = recompute(campaign=campaign)
    manager = client_of("manager")
    for page in ("?", "pairs/?", "ranking/?", "topics/?", "sensitivity/?", "pair/?a=run0&b=run1&"):
        response = manager.get(f"/results/{campaign.pk}/{page}measure=PlantedRR@10")
        assert response.status_code == 200, page
        assert "PlantedRR@10" in text_of(response), page
    measures = manager.get(f"/api/v1/campaigns/{campaign.pk}/measures").json()["measures"]
    expected = {"name": "PlantedRR@10", "kind": "complete", "ir_measures": "", "is_usual": False}
    assert measures[-1] == expected
    rows = {
        (row.method, row.run.run_id): row
        for row in computation.estimates.filter(measure="PlantedRR@10", run_b=None).select_related("run")
    }
    naive, corrected = rows["naive", "run2"], rows["corrected", "run2"]
    assert naive.low == naive.value == naive.high
    assert naive.topics_low < naive.value < naive.topics_high
    assert "a measure of completely judged ranks: corrected serves" in corrected.refusal

    folder = unpacked(release_of(campaign), tmp_path / "release")
    report = verify(folder)
    assert report.different == []
    assert not any("PlantedRR@10" in words for words in report.not_recomputed)
    told = json.loads((folder / "estimates.json").read_text())
    assert told["measures"]["PlantedRR@10"]["kind"] == "complete"
    row = next(
        row for row in told["estimates"] if (row["measure"], row["method"]) == ("PlantedRR@10", "naive")
    )
    row["value"] *= 1 + 1e-6
    (folder / "estimates.json").write_text(json.dumps(told))
    assert any(
        words.startswith("estimates.json PlantedRR@10 naive run0 value") for words in verify(folder).different
    )


# -- methods --------------------------------------------------------------------------------------------------


def test_the_manual_has_the_table_of_methods() -> None:
    rows = rows_below("researcher.md", "method | for a measure that is | what its number is worth")
    assert rows == [
        [one.label, ", ".join(kind.noun for kind in one.kinds), one.help] for one in methods.METHODS
    ]


def first_documents(evidence: Evidence, targets: LinearTargets) -> MethodEstimates:
    """Return every run's share of the first three documents of each topic, with a standard error of .1."""
    n = len(targets)
    return MethodEstimates(
        estimates(
            targets.weights.totals(np.arange(evidence.frame.topic_index.size) % DOCUMENTS < 3),
            {"planting": np.full(n, 0.01)},
            degrees_of_freedom=np.inf,
            n=np.full(n, 99),
            refusals={},
        )
    )


@pytest.mark.django_db
def test_a_planted_method_is_met_everywhere(tmp_path, monkeypatch) -> None:
    help_ = "A planted help"
    one = Method(PLANTED, "Planted", "planted", "A source", help_, (Linear,), first_documents, is_ranked=True)
    plant(monkeypatch, methods, "METHODS", one)
    assert PLANTED in api_choices("EstimateAnswer", "method")
    assert PLANTED in api_parameter("/estimates", "method")
    assert PLANTED in api_parameter("/ranking", "method")

    campaign = judged_campaign(tmp_path, complete=True, audited=20)
    stored = rows_of(recompute(campaign=campaign), method=PLANTED)
    row = stored[PLANTED, "P@10", "run1", None]
    # run1 returns the third document of every topic to the twelfth, run0 the first to the tenth
    assert row.get_method_display() == "Planted"
    assert (row.value, row.low, row.high) == pytest.approx((0.1, 0.0, 0.295996), abs=1e-6)
    assert row.unbounded_low == pytest.approx(-0.095996, abs=1e-6)
    assert stored[PLANTED, "nDCG@10", "run1", None].refusal == (
        "nDCG@10 is a ratio: planted serves a sum over documents alone"
    )

    runs = page_of(campaign, "campaign-results", measure="P@10")
    assert '<th scope="col" class="number">Planted</th>' in runs
    assert "<strong>Planted:</strong> A planted help." in runs
    assert '0.100 <span class="interval">0.000 to 0.296</span>' in runs
    assert "Planted" not in page_of(campaign, "campaign-results", measure="nDCG@10")
    pair = page_of(campaign, "pair", measure="P@10", a="run0", b="run1")
    assert '<th scope="row">Planted</th> <td class="number" data-label="Difference">+0.200</td>' in pair
    chart = run_forest(campaign.computations.get(), "P@10")
    assert chart is not None
    assert f"run1,planted,{row.value}," in chart.csv()
    assert "planted" in chart.svg()
    asked = {"measure": "P@10", "method": PLANTED, "claim": "these-topics"}
    assert "planted values</a>" in page_of(campaign, "ranking", **asked)
    papers = lines(made(campaign))["Planted"]
    assert (papers["source"], papers["note"]) == ("A source", help_)

    folder = unpacked(release_of(campaign), tmp_path / "released")
    inside = json.loads((folder / "estimates.json").read_text())["estimates"]
    assert {one["measure"] for one in inside if one["method"] == PLANTED} >= {"P@10", "nDCG@10"}
    report = verify(folder)
    assert report.different == []
    assert report.not_recomputed["estimates by planted"] > 0


# -- aggregated labels and rules ------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_planted_aggregated_label_is_met_everywhere(tmp_path, monkeypatch) -> None:
    plant(monkeypatch, label_aggregation, "LABEL_SCORES", LabelScore(PLANTED, "Planted", "A planted help."))
    monkeypatch.setitem(label_classes.LABELS, PLANTED, lambda arrays: np.arange(arrays.judged.size) % 2)
    assert PLANTED in api_choices("CampaignChange", "bronze_score")

    campaign = audited(tmp_path)
    assert planted_page(text_of(client_of("manager").get(address(campaign))))
    set_score_and_costs(
        campaign=campaign, bronze_score=PLANTED, cost_per_judgment=None, cost_per_gold=None, actor=None
    )
    campaign.refresh_from_db()
    assert campaign.get_bronze_score_display() == "Planted"
    computation = recompute(campaign=campaign)
    assert computation.bronze_score == PLANTED
    inside = opened(released(campaign))
    assert json.loads(inside.text("estimates.json"))["computation"]["bronze_score"] == PLANTED
    classes = {row["bronze_class"] for row in inside.rows("items.jsonl") if row["judged"]}
    assert classes == {0, 1}


@pytest.mark.django_db
def test_a_planted_aggregation_rule_is_met_everywhere(tmp_path, monkeypatch, capsys) -> None:
    def highest(labels: Labels) -> np.ndarray:
        table = labels.table()
        return np.where(table.any(axis=1), table.shape[1] - 1 - table[:, ::-1].argmax(axis=1), NO_GRADE)

    plant(
        monkeypatch,
        rules,
        "AGGREGATION_RULES",
        AggregationRule(PLANTED, "Planted", "a planted help", highest),
    )
    assert PLANTED in api_choices("ReleaseRequest", "aggregation")
    assert re.search(r"--aggregation \{[a-z,-]*,planted\}", help_of("release", capsys))
    assert ("planted", "Planted") in Release._meta.get_field("aggregation").flatchoices

    campaign = judged(tmp_path)
    new = reverse("console:release-new", args=[campaign.pk])
    assert planted_page(text_of(client_of("researcher").get(new)))
    inside = opened(released(campaign, aggregation=PLANTED))
    assert inside.text("qrels.txt") == "t0 0 t0d00 2\nt1 0 t1d03 0\n"
    assert "else a planted help" in inside.text("README.md")


# -- selections -----------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_planted_selection_is_met_everywhere(tmp_path, monkeypatch, capsys) -> None:
    plant(monkeypatch, selections, "SELECTIONS", Selection(PLANTED, "Planted", "A planted help."))
    assert PLANTED in api_choices("DrawRequest", "selection")
    assert re.search(r"--selection \{[a-z,]*,planted\}", help_of("draw", capsys))

    campaign = make_undrawn(tmp_path)
    design = reverse("console:design", args=[campaign.pk])
    assert planted_page(text_of(client_of("manager").get(design)))
    sizes = {"question": "pool", "measure": "DCG@10", "depth": "10", "budget": "20", "selection": PLANTED}
    options = [word for name, value in sizes.items() for word in (f"--{name}", value)]
    call_command("draw", str(campaign.pk), *options, "--seed", "20", stdout=StringIO())
    assert campaign.draws.get().get_selection_display() == "Planted"


# -- strategies -----------------------------------------------------------------------------------------------


def test_the_manual_has_the_table_of_strategies() -> None:
    rows = rows_below("manager.md", "strategy | which documents")
    assert rows == [[one.label, one.help] for one in strategies.STRATEGIES]
    assert [
        key for key, *_ in rows_below("methods/tiers.md", "strategy | probability proportional to | good for")
    ] == [one.key for one in strategies.STRATEGIES]


@pytest.mark.django_db
def test_a_planted_strategy_is_met_everywhere(tmp_path, monkeypatch, capsys) -> None:
    plant(
        monkeypatch,
        strategies,
        "STRATEGIES",
        Strategy(PLANTED, "Planted", "A planted help.", lambda judged, count: judged.topic_index == 0),
    )
    assert PLANTED in api_choices("AuditRequest", "strategy")
    assert PLANTED in api_choices("ScheduleRequest", "strategy")
    assert re.search(r"--strategy \{[a-z,-]*,planted\}", help_of("audit", capsys))

    campaign = make_campaign(tmp_path, kind="pair")
    judge_all(campaign, [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")], a_bit_wrong)
    manager = client_of("manager")
    assert planted_page(text_of(manager.get(address(campaign))))

    call_command(
        "audit", str(campaign.pk), "--items", "10", "--strategy", PLANTED, "--seed", "7", stdout=StringIO()
    )
    audit = Audit.objects.get()
    assert (audit.strategy, audit.get_strategy_display()) == (PLANTED, "Planted")
    chances = {
        entry.item.topic.topic_id: entry.inclusion_probability
        for entry in audit.entries.select_related("item__topic")
    }
    # A fifth of 10 evenly over 42 items, the rest over the 14 of the first topic.
    assert chances == pytest.approx({"t0": 2 / 42 + 8 / 14, "t1": 2 / 42, "t2": 2 / 42})
    computation = recompute(campaign=campaign)
    assert AuditForecast.objects.filter(computation=computation, strategy=PLANTED).count() == 1
    assert "<td>Planted for DCG@10 <span" in text_of(manager.get(address(campaign)))
