"""A late run with one document that could not be drawn: its number with a wider interval, and in a release."""

import json
from copy import deepcopy

import numpy as np
import pytest
from django.core.management import call_command
from small_campaign import DOCUMENTS, TOPICS, doc_id, returned
from small_release import judged_campaign, release_of, unpacked

from analytics.estimation.claims import CLAIMS
from analytics.estimation.outside import LikelyGain
from analytics.estimation.wording import sentence
from analytics.models import Estimate
from analytics.releases.verify import verify
from analytics.services import audit_forecast, outside
from analytics.services.comparisons import Comparisons
from analytics.services.families import asked_family, question_family
from analytics.services.ranking import ranking_of
from analytics.services.recomputation import recompute
from analytics.services.result_tables import TableRequest, result_table
from analytics.services.reuse import ReuseQuestion, answer
from console.researcher.reuse import verdict
from judging.models import Judgment
from judging.services.files import import_documents, import_runs
from sampling.frames import load_frame, newest_draw
from sampling.models import AuditSchedule

pytestmark = pytest.mark.django_db
W = 1 / 10 / len(TOPICS)  # of a document within P@10


def add_run(collection, folder, name, ranks_of_topic):
    lines = [
        f"{topic_id} Q0 {doc_id(topic, d)} {rank} {100 - rank} {name}\n"
        for topic, topic_id in enumerate(TOPICS)
        for rank, d in enumerate(ranks_of_topic(topic), start=1)
    ]
    (folder / f"{name}.run").write_text("".join(lines))
    import_runs(collection=collection, files=[(folder / f"{name}.run", f"{name}.run")])


def inside(topic):
    return range(4, 14)


def with_one_outside(topic):
    """Return the same, but that the last document of the first topic is one which nobody returned before."""
    return [*range(4, 13), DOCUMENTS if topic == 0 else 13]


@pytest.fixture(scope="module")
def campaign_once(module_world, tmp_path_factory):
    return with_late_runs(tmp_path_factory.mktemp("campaign"))


@pytest.fixture
def campaign(campaign_once, db):
    return deepcopy(campaign_once)


def with_late_runs(tmp_path, **options):
    made = judged_campaign(tmp_path, **options)
    path = tmp_path / "new.jsonl"
    path.write_text(json.dumps({"_id": doc_id(0, DOCUMENTS), "text": "Text"}) + "\n")
    import_documents(collection=made.collection, source=path, name="new.jsonl")
    add_run(made.collection, tmp_path, "late", with_one_outside)
    add_run(
        made.collection, tmp_path, "shorter", lambda topic: with_one_outside(topic)[: 9 if topic == 0 else 10]
    )
    return made


def row_of(computation, run, run_b=None, measure="P@10", method="corrected"):
    return Estimate.objects.get(
        computation=computation, measure=measure, method=method, run__run_id=run, run_b__run_id=run_b
    )


def test_its_interval_is_that_of_the_run_without_the_document_and_reaches_as_far_as_it_may_be_worth(campaign):
    computation = recompute(campaign=campaign)
    late, shorter = (row_of(computation, name) for name in ("late", "shorter"))
    assert late.refusal == shorter.refusal == ""
    assert late.value == pytest.approx(shorter.value, abs=1e-12)
    assert late.unbounded_low == pytest.approx(shorter.unbounded_low, abs=1e-12)
    assert late.unbounded_high == pytest.approx(shorter.unbounded_high + W, abs=1e-12)
    assert (late.outside_low, late.outside_high) == (0.0, pytest.approx(W))
    assert (shorter.outside_low, shorter.outside_high) == (None, None)
    assert "the interval is wider, for they may be worth up to 0.0333" in late.warning


def test_the_next_audit_is_forecast_with_the_room_of_the_reported_interval(campaign, monkeypatch):
    """Of the same run without the document all widths are smaller by half of what it may be worth, and no share is."""
    AuditSchedule.objects.create(campaign=campaign, items_each_time=8, items_in_total=42, measure="P@10")

    def forecasts(name):
        place = [run.run_id for run in campaign.collection.runs.all()].index(name)
        monkeypatch.setattr(audit_forecast, "asked_targets", lambda draw, run_ids: [(place, None)])
        computation = recompute(campaign=campaign)
        rows = computation.audit_forecasts.order_by("strategy")
        assert all((row.run.run_id, row.measure, row.refusal) == (name, "P@10", "") for row in rows)
        return row_of(computation, name), list(rows)

    late, wider = forecasts("late")
    _, plain = forecasts("shorter")
    assert len(wider) == len(plain) > 3
    for with_room, without in zip(wider, plain, strict=True):
        assert with_room.half_width_now == pytest.approx((late.unbounded_high - late.unbounded_low) / 2)
        for name in (
            "half_width_now",
            "half_width_after",
            "middle_low",
            "middle_high",
            "topics_half_width_after",
        ):
            assert getattr(with_room, name) == pytest.approx(getattr(without, name) + W / 2, abs=1e-12), name
        for name in ("half_width_error", "drawing_share", "topics_share"):
            assert getattr(with_room, name) == pytest.approx(getattr(without, name), abs=1e-12), name


def test_the_difference_to_another_run_reaches_down_or_up_and_its_p_is_the_largest_allowed(campaign):
    computation = recompute(campaign=campaign)
    pairs = Estimate.objects.filter(
        computation=computation, measure="P@10", method="corrected", run_b__isnull=False
    )
    checked = 0
    for pair in pairs.select_related("run", "run_b"):
        names = pair.run.run_id, pair.run_b.run_id
        if "late" not in names or "shorter" in names:
            continue
        other = next(name for name in names if name != "late")
        plain = pairs.get(run__run_id__in=(other, "shorter"), run_b__run_id__in=(other, "shorter"))
        if plain.value is None:
            assert pair.refusal == plain.refusal  # too few audited items with weight
            continue
        sign = 1 if (names[0] == "late") == (plain.run.run_id == "shorter") else -1
        assert pair.value == pytest.approx(sign * plain.value, abs=1e-12)
        expected = (0.0, W) if names[0] == "late" else (W, 0.0)
        assert (pair.outside_low, pair.outside_high) == pytest.approx(expected)
        assert pair.p_value >= plain.p_value
        checked += 1
    assert checked == 2


def test_runs_that_differ_only_in_what_nobody_judged_are_not_said_to_be_the_same(campaign):
    computation = recompute(campaign=campaign)
    pair = row_of(computation, "late", "shorter")
    assert pair.value is None
    assert pair.refusal


def test_the_ranking_has_the_run_with_the_wider_interval(campaign):
    ranking = ranking_of(computation=recompute(campaign=campaign), measure="P@10")
    assert "late" in [run.run_id for run in ranking.runs]


def test_a_run_with_too_much_outside_is_refused_with_the_bound(campaign, tmp_path):
    add_run(
        campaign.collection,
        tmp_path,
        "far",
        lambda topic: [DOCUMENTS, *range(4, 13)] if topic == 0 else inside(topic),
    )
    computation = recompute(campaign=campaign)
    refused = row_of(computation, "far", measure="DCG@10")
    assert refused.value is None
    assert "they may be worth up to 1, more than the half-width of" in refused.refusal


def test_verify_finds_the_wider_intervals_again_and_a_changed_one(campaign, tmp_path):
    recompute(campaign=campaign)
    folder = unpacked(release_of(campaign), tmp_path)
    report = verify(folder)
    assert report.different == []
    told = json.loads((folder / "estimates.json").read_text())
    wider = [row for row in told["estimates"] if row["outside_high"] or row["outside_low"]]
    assert {row["method"] for row in wider} >= {"naive", "corrected"}
    wider[0]["outside_high"] += 1e-6
    (folder / "estimates.json").write_text(json.dumps(told))
    found = [words for words in verify(folder).different if "outside_high" in words]
    assert len(found) == 1
    assert np.isfinite(wider[0]["high"])


@pytest.mark.parametrize("claim", CLAIMS)
def test_evaluate_against_a_run_says_of_late_runs_what_the_page_says(claim, campaign, tmp_path, capsys):
    """Every pair of a late run: both claims' intervals, p, t and the refusals, from the release's files alone."""
    add_run(
        campaign.collection,
        tmp_path,
        "far",
        lambda topic: [DOCUMENTS, *range(4, 13)] if topic == 0 else inside(topic),
    )
    computation = recompute(campaign=campaign)
    folder = unpacked(release_of(campaign), tmp_path)
    question = question_family(campaign)
    states = set()
    for measure in ("P@10", "DCG@10"):
        page = Comparisons(computation, measure, question, claim)
        for a, b in (
            ("late", "run0"),
            ("run1", "late"),
            ("late", "shorter"),
            ("late", "far"),
            ("far", "run2"),
        ):
            call_command(
                "evaluate", str(folder), a, measure, "--against", b, "--claim", claim.key, "--output", "json"
            )
            [said] = json.loads(capsys.readouterr().out)["comparisons"]
            pair = Estimate.objects.filter(computation=computation, measure=measure, method="corrected")
            shown = page.of(
                pair.select_related("run", "run_b").get(run__run_id__in=(a, b), run_b__run_id__in=(a, b))
            )
            is_same_way = (shown.run, shown.run_b) == (a, b)
            if shown.value is None:
                assert said["value"] is None
                first_words = said["verdict"].removeprefix("No corrected number: ").removesuffix(".")
                assert shown.refusal.startswith(first_words)
                states.add("refused")
                continue
            sign = 1 if is_same_way else -1
            assert said["value"] == pytest.approx(sign * shown.value, rel=1e-9)
            for told, test in ((said, shown.test), (said["other"], shown.other)):
                ends = (test.low, test.high) if is_same_way else (-test.high, -test.low)
                assert told["claim"] == test.claim.key
                assert (told["low"], told["high"]) == pytest.approx(ends, rel=1e-9)
                assert told["p"] == pytest.approx(test.p, rel=1e-9)
                assert told["degrees_of_freedom"] == pytest.approx(test.degrees_of_freedom, rel=1e-9)
                if test.t is not None:
                    assert told["t"] == pytest.approx(sign * test.t, rel=1e-9)
                assert told["significant"] == test.significant
            assert ("the interval is wider" in said["verdict"]) == (
                "the interval is wider" in sentence(shown)
            )
            states.add("wider" if "the interval is wider" in said["verdict"] else "as it is")
    assert states >= {"refused", "wider"}


# -- what the page says ---------------------------------------------------------------------------------------


def test_the_answer_holds_the_document_against_the_reported_half_width(campaign):
    computation = recompute(campaign=campaign)
    said = answer(campaign=campaign, asked=ReuseQuestion("late", "P@10"))
    plain = row_of(computation, "shorter")
    assert said.refusal == ""
    assert (said.outside.standing, said.outside.words) == ("wider", "yes, with a wider interval")
    assert said.outside.above == pytest.approx(W)
    half = (plain.unbounded_high - plain.unbounded_low) / 2
    assert said.outside.half_width == pytest.approx(half, abs=1e-12)
    assert "and the interval includes that" in verdict(ReuseQuestion("late", "P@10"), said)


def test_where_too_little_of_that_is_judged_nothing_is_said_to_be_likely(campaign):
    said = answer(campaign=campaign, asked=ReuseQuestion("late", "P@10"))
    assert (said.outside.expected_above, said.outside.cautious_above) == (None, None)


def test_what_is_likely_comes_from_what_single_runs_brought_in(tmp_path):
    """Every pooled document returned by one run alone, its grades as given, by hand."""
    campaign = with_late_runs(tmp_path, budget=40)
    said = answer(campaign=campaign, asked=ReuseQuestion("late", "P@10"))
    worth, alone = said.outside, brought_in_alone(campaign, "P@10")
    gain, weight = sum(g for g, _ in alone.values()), sum(w for _, w in alone.values())
    assert worth.expected_above == pytest.approx(W * max(gain, 0.0) / weight)
    assert worth.cautious_above == pytest.approx(W * max(max(g, 0.0) / w for g, w in alone.values() if w))
    assert 0 <= worth.expected_above <= worth.cautious_above


def test_tables_for_a_paper_name_the_runs_whose_intervals_cover_what_could_not_be_judged(campaign):
    computation = recompute(campaign=campaign)
    among = Comparisons(computation, "P@10", asked_family(campaign))
    for key in ("runs", "pairs", "ranking"):
        caption = result_table(key).make(TableRequest(computation, among)).caption
        is_shown = key != "ranking"  # the late run is none of the question's, so it is not ranked
        assert ("Intervals of late cover documents that could not be judged." in caption) == is_shown
    assert computation.estimates.filter(measure="P@10", run__run_id="late", outside_high__gt=0).exists()


def test_of_two_runs_with_documents_outside_the_pooled_rankings_are_read_once(tmp_path, monkeypatch):
    campaign = with_late_runs(tmp_path, budget=40)
    path = tmp_path / "newer.jsonl"
    path.write_text(json.dumps({"_id": doc_id(1, DOCUMENTS), "text": "Text"}) + "\n")
    import_documents(collection=campaign.collection, source=path, name="newer.jsonl")
    other = lambda topic: [*range(4, 13), DOCUMENTS if topic == 1 else 13]  # noqa: E731
    add_run(campaign.collection, tmp_path, "later", other)
    alone = [answer(campaign=campaign, asked=ReuseQuestion(run, "P@10")).outside for run in ("late", "later")]
    opened, read = [], outside.read_rankings
    monkeypatch.setattr(outside, "read_rankings", lambda path: opened.append(path) or read(path))
    both = answer(campaign=campaign, asked=ReuseQuestion("late", "P@10", "later")).outside
    assert len(opened) == 3
    assert (both.above, both.below) == pytest.approx((W, W))
    assert both.expected_above == pytest.approx(alone[0].expected_above)
    assert both.cautious_above == pytest.approx(alone[0].cautious_above)
    assert both.expected_below == pytest.approx(alone[1].expected_above)
    assert both.cautious_below == pytest.approx(alone[1].cautious_above)


def test_what_is_likely_is_never_more_than_what_is_possible(tmp_path, monkeypatch):
    campaign = with_late_runs(tmp_path, budget=40)
    monkeypatch.setattr(
        outside, "likely_gain", lambda weight, gain, unique: LikelyGain(2 * weight, 3 * weight)
    )
    worth = answer(campaign=campaign, asked=ReuseQuestion("late", "P@10")).outside
    assert (worth.expected_above, worth.cautious_above) == pytest.approx((W, W))
    assert worth.above == pytest.approx(W)


def brought_in_alone(campaign, measure):
    """Return by pooled run the estimated gain and the weight of what it alone returned within P@10."""
    pooled = {f"run{n}": returned(n) for n in range(3)}
    chances = {
        (row["topic_id"], row["doc_id"]): row
        for row in load_frame(newest_draw(campaign)).iter_rows(named=True)
    }
    votes = {}
    for judgment in Judgment.objects.filter(
        slot__item__campaign=campaign, slot__purpose__in=("judge", "check")
    ):
        item = judgment.slot.item
        key = item.topic.topic_id, item.document.doc_id
        votes.setdefault(key, []).append(float(judgment.grade >= 1))
    found = {}
    for name, ranks in pooled.items():
        others = set().union(*(other for key, other in pooled.items() if key != name))
        gain = weight = 0.0
        for key, rank in ranks.items():
            if key in others or rank > 10:
                continue
            row = chances[key]
            weight += W
            gain += W * row["prior"]
            if key in votes and row["drawn_in"]:
                gain += W * (np.mean(votes[key]) - row["prior"]) / row["inclusion_probability"]
        found[name] = gain, weight
    return found
