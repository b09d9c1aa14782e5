"""What a computation may say of runs and pairs: when it must refuse, and when it is certain."""

import pytest
from small_campaign import (
    DEPTH,
    DOCUMENTS,
    N_FRAME,
    TOPICS,
    doc_id,
    judge_all,
    make_campaign,
    make_collection,
    returned,
    true_grade,
)
from verdict_campaigns import audit_and_judge, finished, people_of, rows_of

from analytics.methods import IMPORTANCE, METHODS
from analytics.services.recomputation import recompute
from console.forms.design import DesignForm
from judging.services.campaigns import DEFAULT_GRADES, create_campaign, open_campaign
from judging.services.files import import_runs, import_topics
from judging.services.judgment_files import import_judgments
from sampling.measures.kinds import Complete
from sampling.measures.registry import parse_measure, reported_measures
from sampling.models import Draw
from sampling.questions import Design
from sampling.services.drawing import draw
from sampling.services.forecasting import preview
from sampling.services.population import DrawRefused
from touchstone.models import User

pytestmark = pytest.mark.django_db


def undrawn(folder):
    return create_campaign(
        collection=make_collection(folder),
        name=f"campaign of {folder}",
        user=None,
        grades=DEFAULT_GRADES,
        judgments_per_item=2,
    )


STORED = [method.key for method in METHODS if method is not IMPORTANCE]  # which is of draws with replacement


def design_of(measure, kind="pool", budget=N_FRAME):
    return Design(
        kind, ("run0", "run2") if kind == "pair" else (), measure=measure, depth=DEPTH, budget=budget
    )


def drawn_for(folder, measure):
    """Return an open campaign with every pair drawn for certain, for a measure of one's own."""
    campaign = undrawn(folder)
    draw(campaign=campaign, design=design_of(measure), seed=20)
    open_campaign(campaign=campaign, actor=None)
    return campaign


def add_run(campaign, folder, run_id, documents):
    """Import a run after the draw; documents: {topic id: its ranking}."""
    lines = [
        f"{topic} Q0 {document} {place + 1} {100 - place} {run_id}\n"
        for topic, ranking in documents.items()
        for place, document in enumerate(ranking)
    ]
    (folder / f"{run_id}.run").write_text("".join(lines))
    import_runs(collection=campaign.collection, files=[(folder / f"{run_id}.run", f"{run_id}.run")])


def mixed_ranking(topic, n_inside):
    """Return documents 0, 1, ... of the frame, then documents that no draw knew, ten in all."""
    inside = [doc_id(topic, document) for document in range(n_inside)]
    return [*inside, *(f"{TOPICS[topic]}new{place}" for place in range(DEPTH - n_inside))]


def add_judgments(campaign, folder, pairs, assessors=("w1", "w2")):
    lines = [f"{t} {name} {d} {true_grade(t, d)}\n" for t, d in pairs for name in assessors]
    (folder / "judgments.txt").write_text("".join(lines))
    import_judgments(
        campaign=campaign, source=folder / "judgments.txt", name="judgments.txt", file_format="qrels_jg"
    )


def all_pairs():
    return [(name, doc_id(t, document)) for t, name in enumerate(TOPICS) for document in range(DOCUMENTS)]


def said(computation):
    """Return all that is said of every target, without keys and times."""
    names = ("value", "standard_error", "low", "high", "p_value", "degrees_of_freedom", "n", "sources")
    return {
        key: [getattr(row, name) for name in (*names, "refusal", "warning")]
        for key, row in rows_of(computation).items()
    }


def is_served(key):
    """Return whether the method of the row has numbers of its measure."""
    method = next(one for one in METHODS if one.key == key[0])
    return isinstance(parse_measure(key[1]).kind, method.kinds)


def verdict_of(page, campaign, a, b, measure="DCG@10"):
    asked = {"a": a, "b": b, "measure": measure, "claim": "these-topics"}
    return page("pair", campaign, **asked).context["verdict"]


# -- runs and topics that come after the draw ---------------------------------------------------------------


def test_a_late_run_with_documents_that_could_not_be_drawn_is_refused_by_name_in_every_method_and_pair(
    tmp_path,
):
    campaign = finished(make_campaign(tmp_path))
    before = said(recompute(campaign=campaign))
    add_run(campaign, tmp_path, "late", {name: mixed_ranking(t, 5) for t, name in enumerate(TOPICS)})
    after = recompute(campaign=campaign)
    late = {key: row for key, row in rows_of(after).items() if "late" in key[2:]}
    # By every measure: the run, and its pairs with three others.
    assert len(late) == len(STORED) * len(reported_measures("DCG@10", 10)) * 4
    assert not any(row.value for row in late.values())
    served = [row for key, row in late.items() if is_served(key)]
    assert {key[0] for key in late if is_served(key)} == set(STORED)
    for row in served:
        assert row.refusal.startswith("late returns documents that could not be drawn, inside the cutoff of ")
    assert {key: row for key, row in said(after).items() if key not in late} == before


def test_a_late_run_whose_other_documents_lie_beyond_the_measures_cutoff_is_not_refused(tmp_path):
    campaign = finished(drawn_for(tmp_path, "P@5"))
    add_run(campaign, tmp_path, "late", {name: mixed_ranking(t, 5) for t, name in enumerate(TOPICS)})
    rows = rows_of(recompute(campaign=campaign))
    # Of documents 0 to 4 the grade (document + topic) mod 4 is 0 for 0 and 4 of t0, 3 of t1 and 2 of t2.
    for method in ("naive", "corrected", "true"):
        assert rows[method, "P@5", "late", None].value == pytest.approx((3 / 5 + 4 / 5 + 4 / 5) / 3)
    for measure in ("P@10", "DCG@10"):
        assert "late returns documents" in rows["corrected", measure, "late", None].refusal


def test_topics_added_after_the_draw_change_no_stored_number(tmp_path):
    campaign = make_campaign(tmp_path)
    rankings = {name: [doc_id(t, d) for d in range(3, 13)] for t, name in enumerate(TOPICS)}
    add_run(campaign, tmp_path, "wide", {**rankings, "x1": ["a", "b"], "x2": ["c"]})
    finished(campaign, wanted=30)
    before = said(recompute(campaign=campaign))
    (tmp_path / "more.tsv").write_text("a0\tBefore all others\nx1\tMore\nx2\tMore\n")
    import_topics(collection=campaign.collection, source=tmp_path / "more.tsv", name="more.tsv")
    assert said(recompute(campaign=campaign)) == before
    assert before["corrected", "P@10", "wide", None][0] is not None


# -- imported judgments -------------------------------------------------------------------------------------


def test_topics_that_imported_judgments_cover_in_part_are_refused_by_every_method(tmp_path):
    campaign = make_campaign(tmp_path)
    relevant = [pair for pair in all_pairs() if pair[0] != "t0" or true_grade(*pair) > 0]
    add_judgments(campaign, tmp_path, relevant)
    audit_and_judge(campaign)
    rows = rows_of(recompute(campaign=campaign))
    for method in ("naive", "corrected", "matrix-inverse"):
        served = [key for key in rows if key[0] == method and is_served(key)]
        reasons = {
            rows[key].refusal for key in served if not isinstance(parse_measure(key[1]).kind, Complete)
        }
        assert len(reasons) == 1, method
        assert "1 topics are judged in part" in reasons.pop()
    assert "ERR@10 needs a judgment of every document" in rows["naive", "ERR@10", "run0", None].refusal


def test_topics_that_imported_judgments_cover_wholly_are_not_refused(tmp_path):
    campaign = make_campaign(tmp_path)
    add_judgments(campaign, tmp_path, all_pairs())
    audit_and_judge(campaign)
    rows = rows_of(recompute(campaign=campaign), method__in=["naive", "corrected"])
    assert {row.refusal for key, row in rows.items() if is_served(key)} == {""}


def test_topics_judged_in_part_through_the_pages_are_no_reason_to_refuse(tmp_path):
    campaign = make_campaign(tmp_path)
    judge_all(campaign, people_of(campaign), item__document__doc_id__regex="[02468]$")
    audit_and_judge(campaign)
    rows = rows_of(recompute(campaign=campaign), method__in=["naive", "corrected"])
    assert not [row.refusal for row in rows.values() if "in part" in row.refusal]
    assert rows["naive", "P@10", "run0", None].value is not None


def test_a_campaign_with_imported_judgments_cannot_be_drawn(tmp_path):
    campaign = undrawn(tmp_path)
    add_judgments(campaign, tmp_path, all_pairs()[:DOCUMENTS])
    with pytest.raises(DrawRefused, match="judgments were imported"):
        draw(campaign=campaign, design=design_of("DCG@10"), seed=3)
    assert not Draw.objects.filter(campaign=campaign).exists()


# -- certainty ----------------------------------------------------------------------------------------------


def test_with_everything_audited_equal_runs_differ_by_exactly_0_and_neither_is_better(tmp_path, page):
    # run2 is run0 moved on by four documents and grades have the period four: both are worth the same.
    campaign = finished(make_campaign(tmp_path), grade=lambda slot, place: 3 * place)
    rows = rows_of(recompute(campaign=campaign), method="corrected", run_b__isnull=False)
    for measure in ("DCG@10", "P@10"):
        row = rows["corrected", measure, "run0", "run2"]
        assert (row.value, row.standard_error, row.low, row.high, row.p_value) == (0, 0, 0, 0, 1)
        assert "not resolved" not in row.warning  # a certain 0 needs no further judging
        for pair in (("run0", "run2"), ("run2", "run0")):
            verdict = verdict_of(page, campaign, *pair, measure)
            assert "is not significant at .05" in verdict
            assert not [words for words in ("higher", "judge more items", "-0.000") if words in verdict]
        table = page("pairs", campaign, measure=measure, claim="these-topics").context["pairs"]
        (shown,) = [
            entry for entry in table if {entry.better.key, entry.worse.key} == {row.run_id, row.run_b_id}
        ]
        assert (shown.p_adjusted, shown.winner) == (1, None)


def test_with_everything_audited_unequal_runs_have_p_0_and_all_pages_agree(tmp_path, page):
    campaign = finished(make_campaign(tmp_path), grade=lambda slot, place: 3 * place)
    # Relevant: of run0 7, 8 and 8 documents of the three topics, of run1 8, 7 and 7.
    row = rows_of(recompute(campaign=campaign))["corrected", "P@10", "run0", "run1"]
    assert row.value == row.low == row.high == pytest.approx(1 / 30)
    assert row.p_value == 0
    table = page("pairs", campaign, measure="P@10", claim="these-topics").context["pairs"]
    (shown,) = [entry for entry in table if {entry.better.key, entry.worse.key} == {row.run_id, row.run_b_id}]
    assert (shown.p_adjusted, shown.winner.key) == (0, row.run_id)
    for pair in (("run0", "run1"), ("run1", "run0")):
        verdict = verdict_of(page, campaign, *pair, "P@10")
        assert verdict.startswith("run0 has a higher P@10 than run1: mean difference +0.033")
        assert "p < .001" in verdict
    # one topic of three says otherwise: no claim about topics like these
    like = page("pair", campaign, a="run0", b="run1", measure="P@10").context["verdict"]
    assert like.startswith("The difference in P@10 between run0 and run1, +0.033")
    assert "is not significant at .05" in like


def test_runs_that_rank_alike_inside_the_cutoff_differ_by_0_in_words(tmp_path, page):
    campaign = finished(make_campaign(tmp_path), wanted=30)
    rankings: dict = {topic: [] for topic in TOPICS}
    for topic, document in returned(0):
        rankings[topic].append(document)
    add_run(campaign, tmp_path, "twin", {t: [*ranking, f"{t}new"] for t, ranking in rankings.items()})
    rows = rows_of(recompute(campaign=campaign))
    for measure in ("DCG@10", "P@10"):
        for method in STORED:
            row = rows[method, measure, "run0", "twin"]
            assert (row.value, row.low, row.high, row.refusal) == (0, 0, 0, "")
            assert row.warning == "the two runs are the same inside the cutoff"
        assert rows["corrected", measure, "run0", "twin"].p_value == 1
        for pair in (("run0", "twin"), ("twin", "run0")):
            verdict = verdict_of(page, campaign, *pair, measure)
            assert "the same inside the cutoff" in verdict
            assert "0 audited items" not in verdict
            assert "higher" not in verdict


def test_only_corrected_differences_have_a_p(tmp_path):
    rows = rows_of(recompute(campaign=finished(make_campaign(tmp_path), wanted=30)))
    tested = {key for key, row in rows.items() if row.p_value is not None}
    assert tested == {key for key in rows if key[0] == "corrected" and key[3] and is_served(key)}
    assert len(tested) == 15  # five measures, three pairs


# -- measures off the scale ---------------------------------------------------------------------------------


def form_of(campaign, measure):
    fields = {"kind": "pool", "run_a": "run0", "run_b": "run2", "depth": DEPTH, "budget": N_FRAME}
    return DesignForm({**fields, "measure": measure}, campaign=campaign, user=User())


def test_a_relevant_grade_above_the_scale_is_refused_by_the_form_the_preview_and_the_draw(tmp_path):
    campaign = undrawn(tmp_path)
    form = form_of(campaign, "P(rel=7)@10")
    assert not form.is_valid()
    assert "relevant grade must be within [1, 3], got 7" in form.errors["measure"][0]
    for refusing in (preview, draw):
        with pytest.raises(DrawRefused, match="relevant grade must be within"):
            refusing(campaign=campaign, design=design_of("P(rel=7)@10"))
    assert not Draw.objects.filter(campaign=campaign).exists()


def test_the_top_grade_as_relevant_is_drawn_and_computed(tmp_path):
    campaign = drawn_for(tmp_path, "P(rel=3)@10")
    assert form_of(campaign, "P(rel=3)@10").is_valid()
    rows = rows_of(recompute(campaign=finished(campaign)))
    # Grade 3: documents 3 and 7 of t0, 2 and 6 of t1, 1, 5 and 9 of t2.
    for method in ("naive", "corrected", "true"):
        assert rows[method, "P(rel=3)@10", "run0", None].value == pytest.approx(7 / 30)
