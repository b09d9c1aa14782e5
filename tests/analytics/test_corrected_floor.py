"""How far more items narrow the corrected number's interval with the planned audit: by hand, and where it is said."""

import numpy as np
import pytest
from audit_plans import client_of
from design_campaign import undrawn
from django.core.management import call_command
from django.urls import reverse
from small_campaign import make_assessor, make_collection

from sampling.models import AuditSchedule
from sampling.outlook import assumed_errors
from sampling.questions import Design
from sampling.services.forecasting import preview
from sampling.services.population import population_of

pytestmark = pytest.mark.django_db

SOME = Design("pair", ("run0", "run2"), "DCG@10", 10, 20)
EVERYTHING = Design("pair", ("run0", "run2"), "DCG@10", 10, 42)


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}


@pytest.fixture
def campaign(tmp_path):
    """An audit of ten items, evenly chosen, is planned; the pool holds 42 pairs."""
    made = undrawn(make_collection(tmp_path))
    AuditSchedule.objects.create(campaign=made, items_each_time=5, items_in_total=10, strategy="simple")
    return made


def half_width_of_everything(campaign, n_gold):
    """Return it by hand: nothing is drawn, and every pair has the chance n/42 of an audit."""
    population = population_of(campaign, EVERYTHING)
    errors = assumed_errors(4, campaign.scale.relevant_grade).matrix
    p, square = population.design_prior, population.says.squared_contrast
    gains = np.array(campaign.scale.gains())
    variance = 0.0
    counts = [(1 - p).sum(), *[(p / 3).sum()] * 3]
    said = [
        sum(counts[g] * errors[g, given] * gains[g] for g in range(4))
        / sum(counts[g] * errors[g, given] for g in range(4))
        for given in range(4)
    ]
    for item in range(42):
        for true, chance in enumerate([1 - p[item], *[p[item] / 3] * 3]):
            for given in range(4):
                left = (gains[true] - said[given]) ** 2
                variance += square[item] * (42 / n_gold - 1) * chance * errors[true, given] * left
    return 1.959964 * np.sqrt(variance)


def test_of_the_whole_pool_it_is_what_the_audit_leaves_whatever_the_design(campaign):
    by_hand = half_width_of_everything(campaign, 10)
    shown = preview(campaign=campaign, design=EVERYTHING)
    assert shown.corrected_by_design == {
        name: pytest.approx(by_hand, rel=1e-6) for name in ("default", "pool")
    }
    assert shown.corrected_floor == pytest.approx(by_hand, rel=1e-6)
    assert shown.widths["default"][-1] == 0  # the control: the drawing alone promises certainty


def test_it_is_the_least_of_all_larger_numbers_of_items(campaign):
    shown = preview(campaign=campaign, design=SOME)
    larger = [
        preview(
            campaign=campaign, design=Design("pair", ("run0", "run2"), "DCG@10", 10, n)
        ).corrected_by_design["default"]
        for n in (*(n for n in shown.budgets if n >= 20), 42)
    ]
    assert len(larger) > 4
    assert shown.corrected_floor == pytest.approx(min(larger), rel=1e-9)
    assert larger[-1] == pytest.approx(half_width_of_everything(campaign, 10), rel=1e-6)
    place = shown.budgets.index(20)
    assert shown.corrected_by_design["default"] == shown.corrected_widths[place] >= shown.corrected_floor
    assert shown.corrected_by_design["pool"] > shown.widths["pool"][place]
    # the control: the drawing alone falls far below that floor
    assert min(width for width in shown.widths["default"] if width is not None) < 0.5 * shown.corrected_floor


def page_of(campaign, budget):
    asked = {
        "question": "pair",
        "run_a": "run0",
        "run_b": "run2",
        "measure": "DCG@10",
        "depth": 10,
        "budget": budget,
    }
    made = client_of("manager").get(reverse("console:design", args=[campaign.pk]), asked)
    assert made.status_code == 200, made.content.decode()[:2000]
    return " ".join(made.content.decode().split())


def test_page_command_and_api_say_so(campaign, capsys):
    floor = preview(campaign=campaign, design=SOME).corrected_floor
    said = "With an audit of 10, more items do not narrow the corrected interval"
    text = page_of(campaign, 20)
    assert said in text
    assert ">Corrected</th>" in text
    assert "the same half-width by the drawing alone would take about" in text
    assert f"{said} for these topics." in page_of(campaign, 42)
    given = ["--question", "pair", "--runs", "run0", "run2", "--measure", "DCG@10", "--depth", "10"]
    call_command("draw", str(campaign.pk), *given, "--budget", "20", "--preview")
    assert said in capsys.readouterr().out
    sent = {"question": "pair", "runs": ["run0", "run2"], "measure": "DCG@10", "depth": 10, "budget": 20}
    address = reverse("console:api-forecast", args=[campaign.pk])
    answer = client_of("manager").post(address, sent, content_type="application/json").json()
    assert answer["corrected_floor"] == pytest.approx(floor)
    assert set(answer["corrected_by_design"]) == {"default", "pool"}


def test_without_an_audit_and_with_gold_judges_nothing_is_said_of_it(campaign):
    AuditSchedule.objects.all().delete()
    none = preview(campaign=campaign, design=SOME)
    assert (none.corrected_floor, none.corrected_by_design) == (None, {})
    text = page_of(campaign, 20)
    assert "more items do not narrow" not in text
    assert ">Corrected</th>" not in text
    make_assessor(campaign, "greta", tier="gold")
    assert "more items do not narrow" not in page_of(campaign, 20)
