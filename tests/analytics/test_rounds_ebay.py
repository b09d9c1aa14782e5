"""Goldberg et al. (2017), section 6, through the product: two imported campaigns, P@3, gold without probabilities."""

import numpy as np
import pytest
from api_requests import client_of as key_of
from asked_analyses import client_of, run_job
from crowd_files import empty, import_text
from django.urls import reverse

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.services.rounds import compare_rounds
from analytics.services.rounds.question import RoundChoice, RoundsQuestion, RoundsRefused
from judging.models import Collection, Document, Topic
from judging.services.files import import_runs
from judging.services.judgment_files import import_judgments
from judging.services.sources import tell_planner
from touchstone import jobs
from touchstone.models import Job, User

pytestmark = pytest.mark.django_db
FIRST, SECOND = (2393, 1451, 1451, 4983), (4239, 3210, 3208, 9947)
DOCUMENTS = ("d1", "d2", "d3")
# Gold documents: their grade by gold, their label, how many.
GOLD = ((1, 1, 43), (1, 0, 16), (0, 0, 67), (0, 1, 17))


def imported_round(folder, name, counts):
    """Return a campaign of so many topics with 0 to 3 relevant documents, all labelled once, and 143 gold answers."""
    relevant = np.repeat(np.arange(4), counts)
    topics = [f"{name}-{place}" for place in range(relevant.size)]
    collection = Collection.objects.create(name=name)
    Topic.objects.bulk_create(Topic(collection=collection, topic_id=topic, title=topic) for topic in topics)
    Document.objects.bulk_create(Document(collection=collection, doc_id=d, text=d) for d in DOCUMENTS)
    tell_planner(
        Topic, Document
    )  # as an import of files does: with statistics of a few rows it takes minutes
    run = folder / f"{name}.run"
    run.write_text(
        "".join(
            f"{topic} Q0 {d} {n} {9 - n} search\n" for topic in topics for n, d in enumerate(DOCUMENTS, 1)
        )
    )
    import_runs(collection=collection, files=[(run, run.name)])
    labels = [
        (topic, d, int(place < n))
        for topic, n in zip(topics, relevant, strict=True)
        for place, d in enumerate(DOCUMENTS)
    ]
    gold = []
    for true, given, size in GOLD:
        taken = {one[:2] for one in gold}
        chosen = [pair for pair in labels if pair[2] == given and pair[:2] not in taken]
        gold += [(topic, d, true) for topic, d, _ in chosen[:size]]
    qrels = folder / f"{name}.qrels"
    qrels.write_text("".join(f"{topic} 0 {d} {grade}\n" for topic, d, grade in gold))
    import_judgments(collection=collection, source=qrels, name=qrels.name, as_gold=True)
    campaign = empty(collection)
    lines = "".join(f"{topic},{d},judge,{grade}\n" for topic, d, grade in labels)
    import_text(campaign, f"topic_id,doc_id,worker,label\n{lines}")
    return campaign


@pytest.mark.slow
def test_the_example_by_page_and_api(tmp_path, settings, monkeypatch):
    # A heartbeat is another connection, which sees no row of this test's transaction.
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 600.0)
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    first, second = imported_round(tmp_path, "a", FIRST), imported_round(tmp_path, "b", SECOND)
    client = key_of(User.objects.create(username="rhea", role="researcher"))
    body = {
        "first": {"campaign": str(first.pk), "run": "search"},
        "second": {"campaign": str(second.pk), "run": "search"},
        "measure": "P@3",
    }
    results = {}
    for audit in ("first", "own"):
        answer = client.post("/api/v1/rounds", body | {"audit": audit}, "application/json")
        assert answer.status_code == 202, answer.content
        job = run_job(Job.objects.get(pk=answer.json()["job"]))
        assert job.state == "done", job.error
        results[audit] = client.get(answer["Location"]).json()["result"]
    shared, own = ({line["name"]: line for line in results[audit]["lines"]} for audit in ("first", "own"))
    naive = shared["Grades as given"]
    assert naive["note"].startswith("Welch's t(20,009.7566) = -2.525054")
    assert round(naive["p_value"], 6) == 0.011576
    assert round(shared["One audit for both rounds, Wald"]["p_value"], 6) == 0.017098
    fieller = shared["One audit for both rounds, Fieller"]
    assert (round(fieller["low"], 6), round(fieller["high"], 6)) == (-0.045986, -0.005261)
    assert round(fieller["p_value"], 6) == 0.011568
    assert round(shared["One audit for both rounds, score test"]["p_value"], 6) == 0.011568
    assert round(own["Each round corrected by its own audit"]["p_value"], 6) == 0.854092
    assert round(shared["As if audited separately: not used"]["p_value"], 6) == 0.854092
    assert "drift by 0.0034 (standard deviation)" in results["first"]["drift"]
    for result in results.values():
        assert result["claims"] == []
        assert "without recorded probabilities" in result["refusal"]
        assert result["n_shared_topics"] == 0
    query = {
        "first": str(first.pk),
        "first_run": "search",
        "second": str(second.pk),
        "second_run": "search",
        "measure": "P@3",
        "audit": "first",
    }
    page = client_of("researcher").get(reverse("console:rounds"), query).content.decode()
    for figure in ("0.017098", "-0.045986 to -0.005261", "0.011568", "0.011576", "-2.525054", "0.0034"):
        assert figure in page
    assert "No corrected difference in P@3" in page


def test_rounds_in_which_all_topics_have_one_value_are_refused(tmp_path):
    first, second = (imported_round(tmp_path, name, (5, 0, 0, 0)) for name in "ab")
    sides = RoundChoice(str(first.pk), "search"), RoundChoice(str(second.pk), "search")
    with pytest.raises(RoundsRefused, match="spread cannot be estimated"):
        compare_rounds(question=RoundsQuestion(*sides, "P@3"), first=first, second=second)
    one = imported_round(tmp_path, "c", (0, 1, 0, 0))
    sides = RoundChoice(str(one.pk), "search"), sides[1]
    with pytest.raises(RoundsRefused, match="1 topic does not represent others"):
        compare_rounds(question=RoundsQuestion(*sides, "P@3"), first=one, second=second)
