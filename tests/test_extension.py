"""What the field extends is a table: an entry planted in one is met wherever its keys are, without a migration."""

import re
from io import StringIO
from pathlib import Path

import pytest
from audit_plans import a_bit_wrong, address, client_of, text_of
from django.apps import apps as django_apps
from django.core.management import call_command
from django.db.migrations.state import ProjectState
from small_campaign import judge_all, make_assessor, make_campaign
from test_architecture import missing_migrations

from analytics.models import AuditForecast
from analytics.services.recomputation import recompute
from sampling import strategies
from sampling.measures import registry
from sampling.models import Audit
from sampling.strategies import Strategy
from touchstone.api.schema import description

DOCS = Path(__file__).resolve().parents[1] / "docs"
PLANTED = "planted"


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


def help_of(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        call_command(command, "--help")
    return capsys.readouterr().out


# -- measures -------------------------------------------------------------------------------------------------


def test_the_manual_has_the_table_of_measures() -> None:
    rows = rows_below("methods/measures.md", "family | name | kind | value of a topic")
    assert rows == [[f"`{one.key}`", one.label, one.kind.noun, one.help] for one in registry.FAMILIES]


# -- strategies -----------------------------------------------------------------------------------------------


def test_the_manual_has_the_table_of_strategies() -> None:
    rows = rows_below("manager.md", "strategy | which documents")
    assert rows == [[one.label, one.help] for one in strategies.STRATEGIES]
    assert [
        key for key, *_ in rows_below("methods/tiers.md", "strategy | probability proportional to | good for")
    ] == [one.key for one in strategies.STRATEGIES]


@pytest.mark.django_db
def test_a_planted_strategy_is_met_everywhere(tmp_path, monkeypatch, capsys) -> None:
    early = Strategy(
        PLANTED, "Planted", "The documents of the first topic.", lambda judged, count: judged.topic_index == 0
    )
    monkeypatch.setattr(strategies, "STRATEGIES", (*strategies.STRATEGIES, early))
    assert missing_migrations(ProjectState.from_apps(django_apps)) == {}
    assert PLANTED in api_choices("AuditRequest", "strategy")
    assert PLANTED in api_choices("ScheduleRequest", "strategy")
    assert re.search(r"--strategy \{[a-z,]*,planted\}", help_of("audit", capsys))

    campaign = make_campaign(tmp_path, kind="pair")
    judge_all(campaign, [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")], a_bit_wrong)
    manager = client_of("manager")
    page = text_of(manager.get(address(campaign)))
    assert 'value="planted"' in page
    assert 'Planted <span class="help">The documents of the first topic.</span>' in page

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
    assert "<td>Planted <span" in text_of(manager.get(address(campaign)))
