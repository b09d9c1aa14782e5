"""Two rounds from rows to numbers: what is reported, what the papers' methods say, and what is refused."""

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from small_campaign import TOPICS, make_campaign, make_collection
from two_rounds import audit_round, by_name, compared, make_round, two_rounds

from analytics.frames import campaign_arrays
from analytics.frames.periods import part_of_topics, topics_of_period
from analytics.services.assumptions import answer_questions
from analytics.services.confusions import assessor_confusion_counts
from analytics.services.recomputation import recompute
from analytics.services.rounds import rounds_sentence, rounds_under_conditions
from analytics.services.rounds.evidence import corrected_number
from analytics.services.rounds.question import RoundsRefused, moment
from sampling.services.auditable import AuditRefused
from sampling.services.auditing import audit
from touchstone.models import Event, Job

pytestmark = pytest.mark.django_db
GRADES = [(0, "no", 0.0), (1, "yes", 1.0)]


def reported(campaign, run, measure="P@10"):
    computation = recompute(campaign=campaign)
    return computation.estimates.get(measure=measure, run__run_id=run, run_b=None, method="corrected")


def test_the_reported_difference_is_that_of_the_two_reported_numbers(tmp_path):
    first, second = two_rounds(tmp_path)
    result = compared(first, second)
    a, b = reported(first, "run0"), reported(second, "run2")
    like, these = result["claims"]
    assert these["value"] == pytest.approx(a.value - b.value)
    assert result["one_audit"] is False
    assert result["covariance"] == 0.0
    error = np.hypot(a.standard_error, b.standard_error)
    assert these["value"] / these["statistic"] == pytest.approx(error)
    assert result["n_shared_topics"] == len(TOPICS)
    assert like["high"] - like["low"] >= these["high"] - these["low"]
    assert like["p_value"] >= these["p_value"]
    assert (result["first"]["value"], result["second"]["value"]) == pytest.approx((a.value, b.value))
    assert result["first"]["n_audited"] > 10


def test_one_audit_of_both_counts_what_the_rounds_have_in_common(tmp_path):
    first, second = two_rounds(tmp_path, joined=True)
    same = compared(first, second, runs=("run0", "run0"))
    assert same["one_audit"] is True
    assert same["n_audited_in_both"] > 10
    assert same["covariance"] != 0.0
    a, b = reported(first, "run0"), reported(second, "run0")
    error = same["claims"][1]["value"] / same["claims"][1]["statistic"]
    known = a.standard_error**2 + b.standard_error**2 - 2 * same["covariance"]
    least = (a.standard_error - b.standard_error) ** 2
    assert error**2 == pytest.approx(max(known, least))
    lines = by_name(same)
    assert "random numbers" in lines["Each round corrected by its own audit"]["refusal"]
    joined = Event.objects.filter(verb="audited", subject=f"campaign:{second.pk}").get()
    assert joined.detail["joined"] == str(first.pk)


def test_an_audit_with_another_campaign_has_its_numbers_or_is_refused(tmp_path):
    collection = make_collection(tmp_path, gold=False)
    first, second = (make_round(collection, name, seed) for name, seed in (("one", 20), ("two", 21)))
    with pytest.raises(AuditRefused, match="has no audit of the gold tier"):
        audit(campaign=second, items_each_time=20, items_in_total=20, joined=first)
    audit(campaign=first, items_each_time=20, items_in_total=20, seed=5)
    with pytest.raises(AuditRefused, match="not both"):
        audit(campaign=second, items_each_time=20, items_in_total=20, joined=first, seed=6)
    with pytest.raises(AuditRefused, match="another campaign"):
        audit(campaign=first, items_each_time=20, items_in_total=30, joined=first)
    made = audit(campaign=second, items_each_time=20, items_in_total=20, joined=first)
    assert made.seed == 5
    chosen = [
        set(one.audits.get().entries.filter(selected=True).values_list("item__document__doc_id", flat=True))
        for one in (first, second)
    ]
    assert chosen[0] == chosen[1]  # the same probabilities and the same random numbers
    third = make_round(collection, "three", 22)
    audit(campaign=third, items_each_time=10, items_in_total=20, seed=7)
    with pytest.raises(AuditRefused, match="with other random numbers"):
        audit(campaign=third, items_each_time=10, items_in_total=20, joined=first)


def test_the_papers_methods_by_the_audit_that_is_asked(tmp_path):
    first, second = two_rounds(tmp_path)
    own, shared, pooled = (
        by_name(compared(first, second, audit=audit)) for audit in ("own", "first", "both")
    )
    assert {"Grades as given", "Each round corrected by its own audit"} <= set(own)
    assert not any(line["one_audit"] for line in own.values())
    assert "One audit for both rounds, Wald" in shared
    assert shared["Grades as given"] == own["Grades as given"]
    assert shared["One audit for both rounds, Wald"]["one_audit"]
    groups = "A matrix for assessors of both rounds, others by their own round"
    assert "all assessors judged in both rounds" in pooled[groups]["refusal"]


def test_assessors_of_one_round_alone_have_a_matrix_of_their_own(tmp_path):
    first, second = two_rounds(tmp_path, people=("anna", "carl"))
    line = by_name(compared(first, second, audit="both"))[
        "A matrix for assessors of both rounds, others by their own round"
    ]
    groups = {"anna": "anna", "ben": "ben", "carl": "carl"}  # one person each: of both, the first, the second
    counts = {name: np.zeros((2, 2)) for name in groups}
    for campaign in (first, second):
        arrays = campaign_arrays(campaign)
        joined = np.minimum(np.arange(4), 1)
        for person, table in zip(arrays.assessors, assessor_confusion_counts(arrays).total, strict=True):
            np.add.at(counts[person.user.username], (joined[:, None], joined[None, :]), table)
    worth = {
        name: np.linalg.solve(table / table.sum(axis=1, keepdims=True), [0.0, 1.0])
        for name, table in counts.items()
    }
    expected = [
        sum(
            worth[arrays.assessors[who].user.username][int(grade > 0)] / 2 / 30
            for item, who, grade in zip(
                arrays.label_item, arrays.label_assessor, arrays.label_grade, strict=True
            )
            if arrays.ranks[run, arrays.judged[item]] > 0
        )
        for run, arrays in ((0, campaign_arrays(first)), (2, campaign_arrays(second)))
    ]
    assert line["refusal"] == ""
    assert line["value"] == pytest.approx(expected[0] - expected[1])


def test_the_three_questions_forbid_one_audit_and_nothing_else(tmp_path):
    first, second = two_rounds(tmp_path)
    result = compared(first, second, audit="first")
    assert rounds_under_conditions(result, first, second)["lines"] == result["lines"]
    answer_questions(campaign=second, user=None, same_judges=True, same_period=False, blind_to_system=True)
    shown = rounds_under_conditions(result, first, second)
    for before, after in zip(result["lines"], shown["lines"], strict=True):
        if before["one_audit"]:
            assert "different periods" in after["refusal"]
            assert after["p_value"] is None
        else:
            assert after == before
    assert shown["claims"] == result["claims"]
    assert shown["drift"] == ""


def test_the_sentence_says_which_claim_it_makes(tmp_path):
    first, second = two_rounds(tmp_path)
    for claim, other in (
        ("topics-like-these", "For these topics alone:"),
        ("these-topics", "For topics like these:"),
    ):
        said = rounds_sentence(compared(first, second, claim=claim))
        assert said.startswith("The difference in P@10 between run0 in October and run2 in November, ")
        assert other in said
        assert "significant at .05" in said
    assert "for these topics alone. " in said


def rounds_result(asked, *claims):
    """Return what a sentence is made of: claims as (key, half-width, p, t, degrees of freedom, limited by)."""
    sides = {
        name: {"run": run, "name": place, "since": "", "until": ""}
        for name, run, place in (("first", "a", "May"), ("second", "b", "June"))
    }
    names = ("p_value", "statistic", "degrees_of_freedom", "limited_by")
    told = [
        {
            "claim": key,
            "value": 0.1,
            "low": 0.1 - half,
            "high": 0.1 + half,
            **dict(zip(names, rest, strict=True)),
        }
        for key, half, *rest in claims
    ]
    for one in told:
        one["significant"] = one["p_value"] is not None and one["p_value"] < 0.05
    return {**sides, "measure": "P@3", "refusal": "", "claim": asked, "claims": told}


def test_the_sentence_has_the_words_of_all_claims():
    like = ("topics-like-these", 0.05, 0.0004, 3.9, 20.4, "topics")
    these = ("these-topics", 0.02, 0.049, 2.1, None, "judging")
    assert rounds_sentence(rounds_result("topics-like-these", like, these)) == (
        "The difference in P@3 between a in May and b in June, +0.100 (95 % confidence interval 0.050 to 0.150, "
        "t(20.4) = 3.90, p < .001), is significant at .05. For these topics alone: 95 % confidence interval 0.080 to "
        "0.120, z = 2.10, p = .049."
    )
    limited = rounds_sentence(rounds_result("topics-like-these", (*like[:5], "judging"), these))
    assert "0.050 to 0.150, p < .001), is significant at .05, limited by the judging, not by the" in limited
    exact = ("these-topics", 0.0, None, None, None, "judging")
    assert rounds_sentence(rounds_result("these-topics", like, exact)) == (
        "The difference in P@3 between a in May and b in June is exactly +0.100 for these topics. For topics like "
        "these: 95 % confidence interval 0.050 to 0.150, t(20.4) = 3.90, p < .001."
    )
    assert rounds_sentence(rounds_result("topics-like-these", like, exact)).endswith(
        "For these topics alone: exactly +0.100."
    )


# -- what is refused ------------------------------------------------------------------------------------------


def refusal(first, second, **options):
    n = Job.objects.count()
    with pytest.raises(RoundsRefused) as caught:
        compared(first, second, **options)
    assert Job.objects.count() == n
    return str(caught.value)


def test_what_cannot_be_compared_is_refused_by_name(tmp_path):
    first, second = two_rounds(tmp_path)
    assert "no run 'nobody'" in refusal(first, second, runs=("run0", "nobody"))
    assert "the same run in the same campaign" in refusal(first, first, runs=("run0", "run0"))
    assert "where a date parts them" in refusal(first, first)
    assert "where a date parts them" in refusal(first, first, until="2026-01-01")
    assert "when the first has ended" in refusal(first, first, until="2026-02-01", since="2026-01-01")
    assert "a date looks like" in refusal(first, first, until="soon", since="2026-01-01")
    assert "the dates leave no topic" in refusal(first, second, until="2001-01-01")
    assert "the dates leave no topic" in refusal(first, second, since="2901-01-01")
    assert "is a ratio" in refusal(first, second, measure="nDCG@10")
    assert "deeper than the 10 ranks" in refusal(first, second, measure="DCG@20")
    assert "QQ" in refusal(first, second, measure="QQ@10")
    assert "the claim is one of" in refusal(first, second, claim="all topics")
    assert "the audit is one of" in refusal(first, second, audit="none")
    other = make_round(first.collection, "binary", 23, lambda *_: 1, grades=GRADES)
    assert "different scales" in refusal(first, other)


def test_rounds_without_gold_and_without_judgments_are_refused(tmp_path):
    collection = make_collection(tmp_path, gold=False)
    first, second = (make_round(collection, name, seed) for name, seed in (("one", 20), ("two", 21)))
    assert "no audit: there is no gold label in one and two" in refusal(first, second)
    audit_round(first, seed=31)
    assert "no gold label in two" in refusal(first, second)
    half = compared(first, second, audit="first")
    assert half["claims"] == []
    assert "an audit" in half["refusal"]
    assert by_name(half)["Grades as given"]["p_value"] is not None
    assert rounds_sentence(half).startswith("No corrected difference in P@10 between run0 in one")


def test_a_round_that_nobody_has_judged_is_refused(tmp_path):
    empty = make_campaign(tmp_path)
    first = make_round(empty.collection, "one", 21)
    assert "nobody has judged yet" in refusal(first, empty)


def test_a_round_of_gold_judges_needs_no_audit(tmp_path):
    collection = make_collection(tmp_path, gold=False)
    first = make_round(collection, "one", 20, people=("greta", "gil"), tier="gold")
    second = make_round(collection, "two", 21)
    audit_round(second, seed=31)
    result = compared(first, second)
    a, b = reported(first, "run0"), reported(second, "run2")
    assert result["claims"][1]["value"] == pytest.approx(a.value - b.value)
    assert result["claims"][1]["value"] / result["claims"][1]["statistic"] == pytest.approx(b.standard_error)


def test_campaigns_of_one_seed_have_no_corrected_difference(tmp_path):
    collection = make_collection(tmp_path, gold=False)
    first, second = (make_round(collection, name, 20) for name in ("one", "two"))
    audit_round(first, seed=31)
    audit_round(second, seed=32)
    result = compared(first, second)
    assert "drawn with the same random numbers" in result["refusal"]
    assert result["claims"] == []


# -- periods --------------------------------------------------------------------------------------------------


def test_a_period_has_the_topics_whose_every_judgment_is_within(tmp_path):
    first, _ = two_rounds(tmp_path)
    arrays = campaign_arrays(first)
    topic = arrays.topic_index[arrays.judged][arrays.label_item]
    times = np.where(topic == 0, 100.0, np.where(topic == 1, 200.0, 300.0))
    times[np.flatnonzero(topic == 1)[0]] = 350.0
    object.__setattr__(arrays, "label_time", times)
    assert topics_of_period(arrays, None, 250.0).tolist() == [True, False, False]
    assert topics_of_period(arrays, 250.0, None).tolist() == [False, False, True]
    assert topics_of_period(arrays, 100.0, 351.0).tolist() == [True, True, True]
    assert topics_of_period(arrays, None, 100.0).tolist() == [False, False, False]  # the end is outside


def test_a_part_of_the_topics_has_the_numbers_of_these_topics_alone(tmp_path):
    first, _ = two_rounds(tmp_path)
    arrays = campaign_arrays(first)
    kept = np.array([True, False, True])
    part = part_of_topics(arrays, kept, None, None)
    assert part.n_topics == 2
    assert set(part.frame["topic_id"].to_list()) == {"t0", "t2"}
    whole_values, part_values = naive_by_topic(first, arrays), naive_by_topic(first, part)
    assert part_values == pytest.approx(whole_values[:, kept])
    everything = part_of_topics(arrays, np.ones(3, dtype=bool), None, None)
    for name in ("judged", "topic_index", "label_item", "audit_probability", "first_probability"):
        assert np.array_equal(getattr(everything, name), getattr(arrays, name))


def test_the_corrected_number_of_a_part_is_the_mean_of_its_topics(tmp_path):
    first, _ = two_rounds(tmp_path)
    arrays, known = campaign_arrays(first), reported(first, "run0")
    whole = corrected_number(
        first, part_of_topics(arrays, np.ones(3, dtype=bool), None, None), "P@10", "run0"
    )
    assert (whole.estimate.value, whole.estimate.standard_error) == pytest.approx(
        (known.value, known.standard_error)
    )
    part = part_of_topics(arrays, np.array([True, False, True]), None, None)
    found = corrected_number(first, part, "P@10", "run0")
    assert found.topic_values.size == 2
    assert found.estimate.value == pytest.approx(found.topic_values.mean())
    assert {topic for topic, _ in found.keys} == {"t0", "t2"}
    everywhere = corrected_number(first, arrays, "P@10", "run0")
    assert len(found.keys) < len(everywhere.keys)


def naive_by_topic(campaign, arrays):
    """Return [run, topic] the mean grade-as-given gain of the first ten documents, by the definition."""
    values = np.zeros((len(arrays.runs), arrays.n_topics))
    ranks = arrays.ranks
    mean = np.zeros(arrays.frame.height)
    mean[arrays.judged] = arrays.labels.means(np.array([0.0, 1, 1, 1])[arrays.label_grade])
    for topic in range(arrays.n_topics):
        here = arrays.topic_index == topic
        values[:, topic] = [(mean[here] * (row[here] > 0)).sum() / 10 for row in ranks]
    return values


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", None), ("1970-01-02", 86400.0), ("1970-01-01T01:00:00+01:00", 0.0), ("1970-01-01T00:00:10Z", 10.0)],
)
def test_dates_are_utc_unless_they_say_otherwise(text, seconds):
    assert moment(text) == seconds


# -- the command ----------------------------------------------------------------------------------------------


def test_the_command_prints_what_the_service_says(tmp_path, capsys):
    first, second = two_rounds(tmp_path)
    call_command("rounds", "October", "run0", str(second.pk), "run2", "P@10")
    said = capsys.readouterr().out
    assert said.splitlines()[0] == rounds_sentence(compared(first, second))
    assert "Grades as given: " in said
    call_command(
        "rounds", "October", "run0", "November", "run2", "P@10", "--output", "json", "--audit", "first"
    )
    assert '"audit": "first"' in capsys.readouterr().out
    with pytest.raises(CommandError, match="no run 'run9'"):
        call_command("rounds", "October", "run9", "November", "run2", "P@10")
    with pytest.raises(CommandError, match="there is no campaign 'May'"):
        call_command("rounds", "May", "run0", "November", "run2", "P@10")


def test_the_command_draws_one_audit_of_two_campaigns(tmp_path, capsys):
    first, _ = two_rounds(tmp_path)
    third = make_round(first.collection, "December", 26)
    call_command("audit", "December", "--items", "20", "--with", "October")
    assert third.audits.get().seed == first.audits.get().seed == 31
    with pytest.raises(CommandError, match="other random numbers"):
        call_command("audit", "November", "--items", "20", "--with", "October")
