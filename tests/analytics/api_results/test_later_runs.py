"""An upload changes nobody's numbers: answers for a declared family, before a run comes and after its computation."""

import json
from itertools import combinations

import pytest
from django.core.files.base import ContentFile
from small_campaign import RUNS, TOPICS, doc_id

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.services.families import declare_family
from analytics.services.recomputation import recompute
from analytics.services.run_upload import queue_upload
from touchstone import jobs

pytestmark = [pytest.mark.xdist_group("api-results"), pytest.mark.django_db]

LATER = [13, 2, 5, 6, 9, 10, 1, 0, 3, 7]  # places of documents, the same in every topic
CLAIMS = ("topics-like-these", "these-topics")
OF_COMPUTATION = ("id", "computation")  # a newer computation is another row


def upload(campaign):
    lines = [
        f"{topic_id} Q0 {doc_id(topic, place)} {rank} {50 - rank} later\n"
        for topic, topic_id in enumerate(TOPICS)
        for rank, place in enumerate(LATER, start=1)
    ]
    job = queue_upload(campaign=campaign, file=ContentFile("".join(lines).encode(), name="later.run"))
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == "done", job.error
    computed = recompute(campaign=campaign)
    assert computed.estimates.filter(run__run_id="later", method="corrected", value__isnull=False).exists()


def plain(answer):
    """Return an answer without the numbers of its rows in the database."""
    if isinstance(answer, dict):
        return {name: plain(part) for name, part in answer.items() if name not in OF_COMPUTATION}
    return [plain(part) for part in answer] if isinstance(answer, list) else answer


def answers(ask, **choice):
    """Return what is answered of the runs that there were at first, by address and claim."""
    found = {}
    for claim in CLAIMS:
        query = {"measure": "DCG@10", "claim": claim, **choice}
        for path in ("comparisons", "estimates"):
            rows = ask(path, page_size=200, **query).json()["results"]
            mine = [row for row in rows if {row["run"], row["run_b"]} <= {*RUNS, None}]
            found[path, claim] = plain(mine)
        for run, against in combinations(RUNS, 2):
            found["comparison", claim, run, against] = plain(
                ask("comparison", run=run, against=against, **query).json()
            )
        found["ranking", claim] = plain(ask("ranking", **query).json())
    return found


@pytest.mark.parametrize("family", ["question", "baseline:run1", "runs:run0,run2"])
def test_an_upload_and_its_computation_leave_every_answer_for_a_declared_family_as_it_was(
    campaign, ask, family
):
    if family != "question":
        declare_family(campaign=campaign, user=None, name=family)
    before = answers(ask)
    assert all(before.values())
    assert {row["family"] for row in before["comparisons", CLAIMS[0]]} == {family}
    upload(campaign)
    after = answers(ask)
    assert set(after) == set(before)
    for key, answer in before.items():
        assert json.dumps(after[key], sort_keys=True) == json.dumps(answer, sort_keys=True), key


def test_a_family_of_now_takes_the_later_run_in(campaign, ask):
    before = answers(ask, family="all")
    upload(campaign)
    after = answers(ask, family="all")
    for key, answer in before.items():
        if key[0] != "estimates":
            assert json.dumps(after[key], sort_keys=True) != json.dumps(answer, sort_keys=True), key
    n = {row["n_family"] for row in after["comparisons", CLAIMS[0]]}
    assert n == {len(list(combinations([*RUNS, "later"], 2)))}


def test_who_uploads_sees_p_unadjusted_and_adjusted_in_a_family_that_names_the_run(campaign, ask):
    upload(campaign)
    mine = {"run": "later", "against": "run1", "measure": "DCG@10"}
    outside = ask("comparison", **mine).json()
    assert outside["p"] is not None
    assert outside["p_adjusted"] is None
    assert "is not among the declared comparisons" in outside["verdict"]
    named = ask("comparison", **mine, family="runs:later,run0,run1").json()
    assert named["n_family"] == 3
    assert named["p_adjusted"] >= named["p"] == outside["p"]
    assert "later" not in {row["run"] for row in ask("ranking", measure="DCG@10").json()["runs"]}
    everyone = ask("ranking", measure="DCG@10", family="runs:later,run0,run1").json()
    assert {row["run"] for row in everyone["runs"]} == {"later", "run0", "run1"}
