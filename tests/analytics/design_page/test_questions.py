"""The design page: what is asked in plain words is what is drawn; what cannot be drawn is refused beside the form."""

import math
from dataclasses import replace

import pytest
from design_campaign import PAIR, add_run, add_scores, finish, store_run, undrawn
from django.urls import reverse
from small_campaign import N_FRAME, RUNS, make_collection, without

import analytics.tasks  # noqa: F401 (registers the kinds of job)
import sampling.tasks  # noqa: F401
from analytics.services import forecast as forecasts
from console.forms.design import initial_of, pairs
from judging.models import Item, Topic
from sampling.designs import inclusion_probabilities
from sampling.models import Draw
from sampling.questions import Design
from sampling.services.population import population_of, single_draws
from touchstone import jobs
from touchstone.models import Job, User

# -- the five questions -------------------------------------------------------------------------------------

QUESTIONS = {
    "pair": (PAIR, ["run0", "run2"]),
    "system": (PAIR | {"question": "system", "run": "run1"}, ["run1"]),
    "baseline": (
        PAIR | {"question": "baseline", "baseline": "run1", "candidates": ["run0"]},
        ["run1", "run0"],
    ),
    "baseline against all": (PAIR | {"question": "baseline", "baseline": "run1"}, ["run1", "run0", "run2"]),
    "ranking of some": (PAIR | {"question": "ranking", "ranked": ["run2", "run0"]}, ["run2", "run0"]),
    "ranking of all": (PAIR | {"question": "ranking"}, []),
    "pool": (PAIR | {"question": "pool"}, []),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_is_previewed_and_what_was_previewed_is_drawn(page, post, campaign, name):
    fields, runs = QUESTIONS[name]
    text = page(campaign, **fields)
    assert "Expected precision" in text
    assert "<svg" in text
    assert f"of the {N_FRAME} pooled documents affect this question" in text
    assert "The curve and the table leave out assessors' errors" in text
    carried = [part.split('">')[0] for part in text.split('<input type="hidden" name="')[2:]]
    carried = [tuple(part.split('" value="')) for part in carried if "csrf" not in part]
    sent = {}
    for key, value in carried:
        sent.setdefault(key, []).append(value)
    answer = post(campaign, **sent)
    assert "Drawing the items to judge" in answer.content.decode()
    assert finish("draw").state == "done"
    made = campaign.draws.get()
    assert made.question == fields["question"]
    assert made.parameters["runs"] == runs
    assert (made.parameters["measure"], made.parameters["depth"], made.parameters["budget"]) == (
        "DCG@10",
        10,
        20,
    )


def test_nothing_is_offered_to_be_drawn_before_a_preview(page, campaign):
    text = page(campaign)
    assert "Not previewed yet" in text
    assert "Draw these items" not in text
    for words in (
        "Is run A better than run B?",
        "Which candidates beat the baseline?",
        "How do several runs rank?",
    ):
        assert words in text


def test_a_small_pool_is_previewed_at_once_under_an_address_to_keep(client, post, campaign):
    answer = post(campaign, **PAIR, preview="1")
    (address, status), *_ = answer.redirect_chain
    assert status == 302
    assert "question=pair" in address
    assert "Expected precision" in answer.content.decode()
    assert not Job.objects.exists()
    assert not Draw.objects.exists()


def test_the_page_has_no_inline_style_or_script(page, campaign):
    text = page(campaign, **PAIR)
    assert " style=" not in text
    assert "<style" not in text
    assert text.count("<script") == text.count("<script src=")


def test_a_design_survives_the_way_through_the_form_and_back(campaign):
    for design in (
        Design("ranking", ("run0", "run2"), "RBP@10", 20, 99, "paper", "replacement"),
        Design(
            "pair",
            ("a", "b"),
            "P@5",
            10,
            30,
            prior="scores",
            scores="model",
            sensitivity=0.61,
            specificity=0.9,
        ),
        Design("baseline", ("a", "b", "c"), "P@5", 10, 30, other_runs_share=0.125, uniform_share=0.0),
    ):
        sent = {}
        for key, value in pairs(design):
            sent.setdefault(key, []).append(value)
        wanted = {
            key: value if isinstance(value, list) else [str(value)]
            for key, value in initial_of(design.parameters()).items()
            if value != ""
        }
        assert sent == wanted


def test_a_budget_for_everything_says_that_nothing_is_left_to_chance(page, campaign):
    assert "<strong>all are judged</strong>" in page(campaign, **PAIR | {"budget": 1000})


def test_the_sentence_says_what_the_same_interval_costs_elsewhere(page, campaign):
    """The figures of the sentence are those whose half-width the table of the same page confirms."""
    text = page(campaign, **PAIR)
    found = forecasts.forecast(campaign=campaign, design=Design("pair", ("run0", "run2"), "DCG@10", 10, 20))
    same = found.preview.same_width
    for name, words in (("paper", "under the paper's Q*"), ("naive", "naively")):
        said = words.replace("'", "&#x27;")
        if same[name] is None:
            assert f"not reached {said}" in text or f"or {said}" in text
        else:
            assert f"{math.ceil(same[name])} {said}" in text


def test_the_complete_pool_that_the_budget_pays_for_is_named(page, campaign):
    """Rank 1 to 4 of run r are documents 2r to 2r + 3: three runs pool 8 documents a topic, 24 in all; rank 5, 27."""
    text = page(campaign, **PAIR | {"budget": 26})
    assert "completely down to rank 4 (24 items)" in text
    discount = [1 / math.log2(rank + 1) for rank in range(1, 11)]
    # Of run2's documents 4 to 13 those from 8 on are outside: its ranks 5 to 10. Of run0's, 8 and 9: ranks 9 and 10.
    share = sum(discount[4:]) / sum(discount)
    assert f"up to {100 * share:.2g} % of a run's weight" in text


# -- what is refused ----------------------------------------------------------------------------------------

REFUSED = {
    "two identical runs": ({"run_b": "run0"}, "choose two different runs"),
    "a run that is not there": ({"run_a": "nobody"}, "nobody is not one of the available choices"),
    "one run to rank": ({"question": "ranking", "ranked": ["run0"]}, "choose two or more, or none for all"),
    "a cutoff beyond the pool": ({"depth": 5}, "must be at least 10, the measure&#x27;s cutoff"),
    "completely judged ranks": (
        {"measure": "ERR@10"},
        "is a measure of completely judged ranks: a design is made",
    ),
    "a ratio of sums": ({"measure": "micro nDCG@10"}, "is a ratio: a design is made for a mean over topics"),
    "a ratio without a cutoff": ({"measure": "AP"}, "needs a cutoff here, as in AP@10"),
    "a ratio by the naive method": (
        {"measure": "nDCG@10", "method": "naive"},
        "for nDCG@10 choose the default",
    ),
    "no measure at all": ({"measure": "Quality@10"}, "measure family must be one of"),
    "a grade off the scale": ({"measure": "P(rel=9)@10"}, "relevant grade must be within"),
    "a budget too small": ({"budget": 9}, "greater than or equal to 10"),
    "a budget beyond all bounds": ({"budget": 10**9}, "less than or equal to"),
    "the default with replacement": (
        {"selection": "replacement"},
        "the default method draws each document at most once",
    ),
    "a method of no name": ({"method": "best"}, "best is not one of the available choices"),
    "scores that are not there": ({"prior": "scores"}, "no scores are imported"),
    "judgments before any": ({"prior": "judgments"}, "nothing is judged yet"),
    "shares of everything": ({"other_runs_share": 60, "uniform_share": 40}, "below 100 %"),
    "a share that is no number": ({"uniform_share": "nan"}, "Enter a number"),
    "a question of no name": ({"question": "why"}, "why is not one of the available choices"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_asked_is_refused_beside_its_field(page, post, campaign, name):
    changes, words = REFUSED[name]
    text = page(campaign, status=400, **PAIR | changes)
    assert words in text
    assert "Draw these items" not in text
    assert 'class="errorlist"' in text
    assert post(campaign, **PAIR | changes).status_code == 400  # not to be drawn either
    assert not Job.objects.exists()


def test_runs_that_rank_alike_are_refused_with_what_to_do(page, campaign):
    for name in ("same1", "same2"):
        add_run(campaign.collection, name, ["t0d00", "t0d01"])
    text = page(campaign, **PAIR | {"run_a": "same1", "run_b": "same2"})
    assert "This cannot be drawn" in text
    assert "rank alike" in text
    assert "Choose other runs" in text
    assert "Draw these items" not in text


def test_documents_that_the_collection_lacks_are_refused_by_name(page, campaign):
    add_run(campaign.collection, "strange", ["elsewhere"])
    text = page(campaign, **PAIR)
    assert "1 pooled documents are not in the collection, for example &#x27;elsewhere&#x27;" in text
    assert "import them, or choose a smaller depth" in text


def test_a_count_out_of_reach_with_replacement_is_refused_beside_the_budget(page, campaign):
    fields = PAIR | {"method": "paper", "selection": "replacement", "budget": N_FRAME}
    text = page(campaign, status=400, **fields)
    assert "does not reach so many different items" in text
    assert "out of reach" in text  # in the table, in words
    assert "Draw these items" not in text


def test_too_few_items_for_an_exact_count_in_every_topic_are_refused_before_the_draw(page, tmp_path):
    """Two a topic at least: with 7 topics or more that is above the smallest budget that the form takes."""
    collection = make_collection(tmp_path)
    more = collection.topics.bulk_create(
        Topic(collection=collection, topic_id=f"t{number}", title="More") for number in range(3, 9)
    )
    without(collection.runs.all())
    for name, turn in (("run0", 0), ("run2", 5)):
        rows = [
            {
                "topic_id": f"t{t}",
                "doc_id": f"t0d{(place + turn) % 14:02d}",
                "score": float(-place),
                "run_tag": name,
            }
            for t in range(3 + len(more))
            for place in range(10)
        ]
        store_run(collection, name, rows)
    text = page(undrawn(collection), **PAIR | {"selection": "pareto", "budget": 12})
    assert "This cannot be drawn" in text
    assert "18" in text.split("This cannot be drawn")[1][:200]  # two for each of the nine topics


def test_a_collection_of_one_run_links_to_the_upload(page, tmp_path):
    collection = make_collection(tmp_path)
    without(collection.runs.exclude(run_id="run0"))
    text = page(undrawn(collection))
    assert "One run only" in text
    assert reverse("console:manage-collection", args=[collection.pk]) + "#upload" in text


def test_a_campaign_with_imported_judgments_says_that_nothing_can_be_drawn(page, post, campaign):
    topic = campaign.collection.topics.first()
    Item.objects.create(campaign=campaign, topic=topic, document=campaign.collection.documents.first())
    assert "Judgments were imported into this campaign" in page(campaign)
    post(campaign, **PAIR)
    assert not Job.objects.exists()


# -- scores, methods ----------------------------------------------------------------------------------------


def test_imported_scores_can_be_chosen_once_they_are_there(page, post, campaign):
    assert "No scores are imported" in page(campaign)
    add_scores(campaign.collection)
    text = page(
        campaign, **PAIR | {"prior": "scores", "scores": "model", "sensitivity": 60, "specificity": 90}
    )
    assert "Expected precision" in text
    assert '<details class="advanced" open>' in text  # what is unusual is not hidden
    post(campaign, **PAIR | {"prior": "scores", "scores": "model", "sensitivity": 60, "specificity": 90})
    assert finish("draw").state == "done"
    kept = campaign.draws.get().parameters
    assert (kept["scores"], kept["sensitivity"], kept["specificity"]) == ("model", 0.6, 0.9)
    refused = PAIR | {"prior": "scores", "scores": "model", "sensitivity": 40, "specificity": 50}
    assert "the two together must be above 100 %" in page(undrawn(campaign.collection), status=400, **refused)


@pytest.mark.parametrize(
    ("method", "selection"),
    [("default", "pareto"), ("paper", "poisson"), ("paper", "replacement"), ("naive", "replacement")],
)
def test_other_methods_and_selections_are_drawn_as_asked(page, post, campaign, method, selection):
    fields = PAIR | {"budget": 15, "method": method, "selection": selection}
    text = page(campaign, **fields)
    assert ("This draw cannot be topped up" in text) == (selection == "pareto")
    post(campaign, **fields)
    assert finish("draw").state == "done"
    made = campaign.draws.get()
    assert (made.method, made.selection) == (method, selection)
    if selection == "pareto":
        assert made.n_drawn == 15


# -- who may see it -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("role", "status"), [("assessor", 404), ("researcher", 404), (None, 302)])
def test_the_design_is_for_managers_alone(client, campaign, role, status):
    if role:
        client.force_login(User.objects.create(username="somebody", role=role))
    for answer in (
        client.get(reverse("console:design", args=[campaign.pk]), PAIR),
        client.post(reverse("console:design", args=[campaign.pk]), PAIR),
        client.post(reverse("console:layout", args=[campaign.pk])),
    ):
        assert answer.status_code == status
    assert not Job.objects.exists()
    assert RUNS[0] not in client.get(reverse("console:design", args=[campaign.pk])).content.decode()


def test_the_line_of_a_naive_draw_by_own_chance_is_not_the_defaults(page, campaign):
    """The forecast is of the method asked for: recomputed here from its sizes."""
    design = Design("pair", ("run0", "run2"), "DCG@10", 10, 20, method="naive")
    shown = forecasts.forecast(campaign=campaign, design=design).preview
    default = forecasts.forecast(campaign=campaign, design=replace(design, method="default")).preview
    found = population_of(campaign, design)
    pi = inclusion_probabilities(single_draws(found, "naive"), 20)
    spread = (
        found.says.squared_contrast * found.relevant_gain**2 * found.design_prior * (1 - found.design_prior)
    )
    told = spread > 0
    wanted = 1.959964 * math.sqrt(((1 - pi[told]) / pi[told] * spread[told]).sum())
    place = shown.budgets.index(20)
    assert shown.widths["default"][place] == pytest.approx(wanted, rel=1e-6)
    assert default.widths["default"][place] < 0.95 * wanted


def test_a_forecast_gives_way_to_a_cancellation_between_two_designs(campaign):
    heard = []

    def cancel_at_the_second(done, total, note):
        heard.append((done, total))
        if done == 1:
            raise jobs.JobCancelled

    design = Design("pair", ("run0", "run2"), "DCG@10", 10, 20)
    with pytest.raises(jobs.JobCancelled):
        forecasts.compute(campaign=campaign, design=design, progress=cancel_at_the_second)
    assert heard == [(0, 4), (1, 4)]
