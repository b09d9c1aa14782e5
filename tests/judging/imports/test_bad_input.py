"""Bad input on the page of an import and over the API: it is told with file, line and value, and nothing is changed.

The same files by command: tests/touchstone_ir/test_bad_input.py. Faults between files come in by other doors here: gold
of what was never judged in tests/judging/test_gold_prels.py, fewer than 10 gold answers in tests/analytics/
test_columns.py. A draw of another design and a gate's batches are files of the library: no door here takes them.
"""

import html

import pytest
from all_tables import differences, tables
from api_tools import API, ApiClient
from bad_files import BAD_FILES, BadFile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from file_campaign import make_campaign, make_collection
from uploaded import card_of, here, kept, looked, looked_again

from touchstone import jobs
from touchstone.models import Job

pytestmark = pytest.mark.django_db(transaction=True)
KINDS = {"run": "runs", "labels": "judgments", "gold": "judgments"}
VISITS = {"django_session", "touchstone_ratecounter", "touchstone_user"}  # when somebody was last seen
EXPECTED = "expected 4 columns (topic iteration document grade), found"
NO_SCALE = (
    "x.qrels:2:9: grade -2 is not on the scale 0, 1, 2, 3, 4, 5, 6, 7, 8, 9; 2 lines have -2, 1 line has -1: say with "
    "a grade map what becomes of them, -2=0,-1=0 (not relevant) or -2=,-1= (left out)"
)
SAMPLE = "prels holds a sample: import it as the judgments of a campaign, or as gold answers that were chosen with "
# What a card says, and what is said when the file is imported all the same, where that is not what the command says.
CARDS = {
    "a run given for labels": f"a.run:1:12: {EXPECTED} 6 (and one more like it, at 2:12)",
    "labels given for a run": "l.qrels:1:10: expected 6 columns (topic Q0 document rank score tag), found 4 (and 7 "
    "more like it, at 2:10, 3:10, 4:10, 5:10, 6:10, 7:10, 8:10)",
    "topics given for labels": "t.tsv:1:15: expected 3 columns (query-id corpus-id score), found 2",
    "a pair twice in a table": "",  # it is compared when all is known
    "grades below 0": "",  # they are asked about
}
IMPORTS = {
    **{what: words for what, words in CARDS.items() if words},
    "a pair twice in a table": "g.csv:3:7: document d1 of topic q1 has the gold answer 0, but 1 on an earlier line",
    "grades below 0": NO_SCALE,
}
KEPT = {"a probability of 1.5 in prels": SAMPLE, "a probability that is no number": SAMPLE}
BY_API = {"topics given for labels": f"t.tsv:1:15: {EXPECTED} 2 (and one more like it, at 2:15)"}
ADVICE = {
    "a run given for labels": "a.run has the form of runs: import it as runs",
    "labels given for a run": "l.qrels has the form of judgments: import it as judgments",
    "topics given for labels": "t.tsv has the form of topics: import it as topics",
}


def a_collection():
    return make_collection(topics=("q1", "q2"), documents=("d1", "d2", "d3", "d4"))


def send(client: ApiClient, collection, bad: BadFile, **fields):
    files = [SimpleUploadedFile(bad.file, bad.text.encode())]
    address = f"{API}/collections/{collection.pk}/imports"
    return client.client.post(address, {"kind": KINDS[bad.wanted], "files": files, **fields})


def error_of(sent) -> str:
    """Run the import that was queued, and return why it was refused."""
    jobs.run(sent["id"])
    job = Job.objects.get(pk=sent["id"])
    assert job.state == "failed"
    return job.error


@pytest.mark.parametrize("what", BAD_FILES)
def test_a_bad_file_is_refused_on_the_page(what, at_the_page) -> None:
    bad, collection = BAD_FILES[what], a_collection()
    before = tables()
    made = looked(collection, {bad.file: bad.text})
    if card_of(made, bad.file)["kind"] != KINDS[bad.wanted]:  # somebody says that it is
        made = looked_again(made, {bad.file: {"kind": KINDS[bad.wanted]}})
    faults = card_of(made, bad.file)["faults"]
    said = CARDS.get(what, bad.command)
    assert faults[:1] == ([said] if said else [])
    assert bool(made.report["obstacles"]) is (what != "a pair twice in a table")
    view, *arguments = here(made)
    page = html.unescape(at_the_page.get(reverse(view, args=arguments)).content.decode())
    assert said in page
    error = kept(made, state="failed").error
    assert error.startswith(KEPT.get(what, IMPORTS.get(what, bad.command)))
    assert set(differences(before, tables())) <= VISITS


@pytest.mark.parametrize("what", BAD_FILES)
def test_a_bad_file_is_refused_over_the_api(what, mara) -> None:
    bad, collection = BAD_FILES[what], a_collection()
    is_sample = bad.form == "prels"
    campaign = make_campaign(collection) if is_sample else None
    before = tables()
    into = {"campaign": str(campaign.pk)} if campaign else {"as_gold": "true"}
    answer = send(
        ApiClient(mara), collection, bad, file_format=bad.form, **({} if bad.wanted == "run" else into)
    )
    assert answer.status_code == 202, answer.content
    first, *others = error_of(answer.json()).splitlines()
    assert first == BY_API.get(what, IMPORTS.get(what, bad.command))
    assert others[-1:] == ([ADVICE[what]] if what in ADVICE else [])
    assert set(differences(before, tables())) <= VISITS


GOOD = BadFile("g.qrels", "q1 0 d1 1\nq1 0 d2 0\n", "labels", "", "qrels")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"kind": "people"}, "kind"),
        ({"kind": "judgments"}, "campaign"),
        ({"kind": "runs", "file_format": "qrels"}, "file_format"),
        ({"kind": "runs", "grade_map": "-2=0"}, "grade_map"),
        ({"as_gold": "true", "grade_map": "-2:0"}, "grade_map"),
        ({"as_gold": "true", "gold_chosen": "by hand"}, "gold_chosen"),
        ({"as_gold": "true", "draw": "pairs.csv"}, "draw"),
    ],
)
def test_a_request_that_cannot_be_meant_is_a_problem(fields, named, mara) -> None:
    collection = a_collection()
    before = tables()
    answer = send(ApiClient(mara), collection, GOOD, **fields)
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert named in answer.json()["errors"]
    assert set(differences(before, tables())) <= VISITS
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("7 ann d1 1\n8 ann d1 1\n", "x.qrels_jg:1:1: the collection has no topic 7"),
        ("q1 ann d1 1\nq1 ann d77 1\n", "x.qrels_jg:2:8: the collection has no document d77"),
        ("q1 ann d1 1\nq1 ann d2 9\n", "x.qrels_jg:2:11: grade 9 is not on the scale 0, 1, 2"),
        (
            "q1 ann d1 1\nq1 ann d1 0\n",
            "x.qrels_jg:2:8: document d1 of topic q1 and assessor ann occurs twice",
        ),
    ],
    ids=["no common topic", "no such document", "a grade without a gain", "a pair twice"],
)
def test_judgments_that_do_not_fit_are_refused(text, words, mara) -> None:
    collection = a_collection()
    campaign = make_campaign(collection)
    before = tables()
    bad = BadFile("x.qrels_jg", text, "labels", "", "qrels_jg")
    answer = send(ApiClient(mara), collection, bad, file_format=bad.form, campaign=str(campaign.pk))
    assert answer.status_code == 202
    assert error_of(answer.json()).startswith(words)
    assert set(differences(before, tables())) <= VISITS


def test_what_is_in_order_is_taken(mara) -> None:
    """The control of the tests above."""
    collection = a_collection()
    before = tables()
    sent = send(ApiClient(mara), collection, GOOD, as_gold="true", file_format="qrels").json()
    jobs.run(sent["id"])
    assert Job.objects.get(pk=sent["id"]).state == "done"
    assert set(differences(before, tables())) - VISITS == {"judging_goldanswer"}
