"""Files of other tools, imported: by command, over the API, on the page of an import; what is unclear is asked."""

import json
from io import StringIO
from pathlib import Path

import pytest
from api_tools import API, ApiClient
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from file_campaign import file, make_campaign, make_collection
from manager_requests import post
from uploaded import card_of, fields, here, kept, looked, looked_again, run_job

from judging.models import GoldAnswer, Judgment
from judging.rankings import read_rankings
from judging.services.errors import ImportRefused
from judging.services.files import import_judgments, import_runs
from judging.services.looking import choices_of, job_of
from touchstone import jobs
from touchstone.models import Job

pytestmark = pytest.mark.django_db(transaction=True)
FILES = Path(__file__).parents[2] / "fixtures/formats"
RUNS = {
    "ranx.json": "ranx",
    "mteb.predictions.json": "example/bm25",
    "pyterrier.minimal.tsv": "pyterrier.minimal",
    "pyterrier.csv": "bm25",
}
ORDER = ["d1", "d3", "d2", "d4", "d5", "d6", "d2", "d1"]
TWO_TAGS = "q1 Q0 d1 1 2 x\nq1 Q0 d2 2 1 y\n"


def text(name: str) -> str:
    return (FILES / name).read_text()


def order_of(run) -> list[str]:
    return read_rankings(run.rankings.path).doc_ids.to_list()


def here_are(documents=("d1", "d2", "d3", "d4", "d5", "d6")):
    return make_collection(topics=("q1", "q2"), documents=documents)


def test_an_upload_of_runs_of_all_tools_is_looked_at_and_kept() -> None:
    collection = here_are()
    made = looked(collection, {name: text(name) for name in RUNS})
    for name, run_id in RUNS.items():
        card = card_of(made, name)
        assert (card["kind"], card["tag"], card["n_rows"], card["question"]) == ("runs", run_id, 8, ""), card
        assert card["faults"] == []
    kept(made)
    assert {run.run_id: order_of(run) for run in collection.runs.all()} == dict.fromkeys(RUNS.values(), ORDER)


def test_a_run_of_several_tags_is_asked_about_and_kept_under_a_name(at_the_page) -> None:
    collection = here_are()
    made = looked_again(looked(collection, {"two.run": TWO_TAGS}), {"two.run": {"kind": "runs"}})
    assert card_of(made, "two.run")["faults"] == ["two.run:2:14: one run tag a file: 'y' after 'x'"]
    post(at_the_page, *here(made), **{**fields(at_the_page, made), "file0-run_name": "mine"}, look="1")
    made.refresh_from_db()
    assert choices_of(made)["two.run"]["run_name"] == "mine"
    run_job(made)
    made.refresh_from_db()
    card = card_of(made, "two.run")
    assert (card["faults"], card["tag"]) == ([], "mine")
    kept(made)
    assert [run.run_id for run in collection.runs.all()] == ["mine"]


def test_a_name_is_chosen_over_the_api_as_well(mara) -> None:
    collection = here_are()
    made = looked(collection, {"two.run": TWO_TAGS})
    chosen = {"name": "two.run", "kind": "runs", "run_name": "mine"}
    ApiClient(mara).post(f"/imports/{made.pk}/keep", 202, files=[chosen])
    assert run_job(made).error == ""
    assert [run.run_id for run in collection.runs.all()] == ["mine"]


def test_three_columns_that_could_be_several_things_are_a_question() -> None:
    collection = here_are()
    made = looked(collection, {"a.txt": "q1\td1\t1\nq1\td2\t2\n"})
    assert card_of(made, "a.txt")["question"].startswith("Choose what it is.")
    made = looked_again(made, {"a.txt": {"kind": "runs"}})
    card = card_of(made, "a.txt")
    assert (card["file_format"], card["tag"], card["faults"]) == ("msmarco", "a", [])


def test_a_fault_of_a_json_run_stands_on_its_card() -> None:
    made = looked(here_are(), {"a.json": '{"q1": {"d1": 1.5, "d2": NaN}}'})
    assert card_of(made, "a.json")["faults"] == ["a.json:1:26: score must be a finite number, not 'nan'"]


def test_runs_come_over_the_api_by_their_content_or_a_format(mara) -> None:
    collection, client = here_are(), ApiClient(mara)

    def send(name: str, data: str, status: int = 202, **options):
        files = [SimpleUploadedFile(name, data.encode())]
        address = f"{API}/collections/{collection.pk}/imports"
        answer = client.client.post(address, {"kind": "runs", "files": files, **options})
        assert answer.status_code == status, answer.content
        return answer.json()

    def result(sent) -> Job:
        jobs.run(sent["id"])
        return Job.objects.get(pk=sent["id"])

    assert result(send("ranx.json", text("ranx.json"))).state == "done"
    assert (
        result(send("a.tsv", text("pyterrier.minimal.tsv"), file_format="msmarco", run_name="named")).state
        == "done"
    )
    assert sorted(run.run_id for run in collection.runs.all()) == ["named", "ranx"]
    assert "must be one of run, msmarco, json_run, pyterrier" in str(send("a", "", 400, file_format="qrels"))
    assert result(send("b.json", '{"q1": {"d1": 1, "d1": 2}}')).error == (
        "b.json:1:18: 'd1' occurs twice in topic q1 (first at 1:9)"
    )
    assert result(send("two.run", TWO_TAGS)).error == "two.run:2:14: one run tag a file: 'y' after 'x'"
    assert result(send("two.run", TWO_TAGS, run_name="two")).state == "done"


def test_the_command_takes_formats_and_a_name(tmp_path: Path) -> None:
    collection = here_are()
    options = {"collection": collection.name, "stdout": StringIO()}
    call_command("import_runs", str(FILES / "ranx.json"), str(FILES / "pyterrier.csv"), **options)
    assert sorted(run.run_id for run in collection.runs.all()) == ["bm25", "ranx"]
    path = tmp_path / "two.run"
    path.write_text(TWO_TAGS)
    with pytest.raises(CommandError, match=r"two\.run:2:14: one run tag a file"):
        call_command("import_runs", str(path), **options)
    call_command("import_runs", str(path), name="two", **options)
    with pytest.raises(CommandError, match="topic document rank"):
        call_command("import_runs", str(path), name="three", format="msmarco", **options)
    assert collection.runs.count() == 3


def test_a_name_is_for_one_run_and_one_word() -> None:
    collection = here_are()
    two = [(file("q1 Q0 d1 1 1 x\n"), "a"), (file("q1 Q0 d1 1 1 y\n"), "b")]
    with pytest.raises(ImportRefused, match="run_name names one run"):
        import_runs(collection=collection, files=two, run_name="z")
    with pytest.raises(ImportRefused, match="run_name must be one word, not 'a b'"):
        import_runs(collection=collection, files=two[:1], run_name="a b")
    with pytest.raises(
        ImportRefused, match="file_format must be one of run, msmarco, json_run, pyterrier, not 'x'"
    ):
        import_runs(collection=collection, files=two[:1], file_format="x")


def test_mtebs_qrels_become_gold_answers() -> None:
    collection = here_are()
    made = looked(collection, {"test.jsonl": text("mteb.jsonl")})
    card = card_of(made, "test.jsonl")
    assert (card["kind"], card["file_format"], card["question"]) == ("judgments", "mteb", "")
    kept(made)
    found = GoldAnswer.objects.order_by("id").values_list("topic__topic_id", "document__doc_id", "grade")
    assert list(found) == [
        ("q1", "d1", 2),
        ("q1", "d2", 0),
        ("q1", "d3", 1),
        ("q2", "d1", 0),
        ("q2", "d2", 3),
    ]


def test_of_labels_beside_truth_the_truth_becomes_gold_answers() -> None:
    made = looked(here_are(), {"pairs.csv": text("pairs.csv")})
    card = card_of(made, "pairs.csv")
    assert (card["kind"], card["file_format"], card["mapping"]["grade"]) == ("judgments", "gold", ["truth"])
    kept(made)
    found = GoldAnswer.objects.order_by("id").values_list("topic__topic_id", "document__doc_id", "grade")
    assert list(found) == [("q1", "d1", 2), ("q1", "d2", 0), ("q2", "d2", 3)]


def umbrela(*grades: int) -> str:
    objects = [
        {"qid": "1", "docid": f"d{number}", "query": "", "passage": "", "model": "gpt-4o", "judgment": grade}
        for number, grade in enumerate(grades, 1)
    ]
    return "".join(json.dumps(one) + "\n" for one in objects)


def test_umbrelas_judgments_become_those_of_a_machine() -> None:
    campaign = make_campaign()
    import_judgments(
        campaign=campaign, source=file(umbrela(2, 0)), name="u", file_format="umbrela", kind="machine"
    )
    found = Judgment.objects.order_by("id").values_list("item__document__doc_id", "grade", "assessor__kind")
    assert list(found) == [("d1", 2, "machine"), ("d2", 0, "machine")]
    with pytest.raises(ImportRefused, match=r"v:2:1: grade 9 is not on the scale 0, 1, 2"):
        import_judgments(campaign=campaign, source=file(umbrela(1, 9)), name="v", file_format="umbrela")
    made = looked(campaign.collection, {"umbrela.jsonl": text("umbrela.jsonl")})
    (first, *_) = card_of(made, "umbrela.jsonl")["faults"]
    assert first.startswith("umbrela.jsonl:1:1: umbrela's record names no qid and docid")


def test_negative_grades_are_counted_and_asked_about_on_the_page(at_the_page) -> None:
    collection = here_are()
    made = looked(collection, {"gold.qrels": "q1 0 d1 1\nq1 0 d2 -1\nq1 0 d3 -2\nq2 0 d1 -2\n"})
    card = card_of(made, "gold.qrels")
    assert {row["grade"]: row["n"] for row in card["grades"]} == {1: 1, -1: 1, -2: 2}
    sent = {**fields(at_the_page, made), "file0-grade_-1": "out", "file0-grade_-2": "0"}
    post(at_the_page, *here(made), **sent, look="1")
    run_job(made)
    made.refresh_from_db()
    assert card_of(made, "gold.qrels")["choices"]["grade_map"] in ("-2=0,-1=", "-1=,-2=0")
    kept(made)
    assert job_of(made).state == "done"
    found = GoldAnswer.objects.order_by("id").values_list("topic__topic_id", "document__doc_id", "grade")
    assert list(found) == [("q1", "d1", 1), ("q1", "d3", 0), ("q2", "d1", 0)]


def grades_there() -> list[tuple[str, str, int]]:
    found = GoldAnswer.objects.order_by("id").values_list("topic__topic_id", "document__doc_id", "grade")
    return list(found)


NEGATIVE = "q1 0 d1 1\nq1 0 d2 -1\nq1 0 d3 -2\nq2 0 d1 -2\n"
ASKED = "2 lines have -2, 1 line has -1: say with a grade map what becomes of them"


def test_negative_grades_are_asked_about_over_the_api_and_a_map_answers(mara) -> None:
    collection, client = here_are(), ApiClient(mara)

    def send(**fields) -> Job:
        files = [SimpleUploadedFile("gold.qrels", NEGATIVE.encode())]
        sent = {"kind": "judgments", "as_gold": "true", "files": files, **fields}
        answer = client.client.post(f"{API}/collections/{collection.pk}/imports", sent)
        assert answer.status_code == 202, answer.content
        jobs.run(answer.json()["id"])
        return Job.objects.get(pk=answer.json()["id"])

    assert ASKED in send().error
    assert grades_there() == []
    assert send(grade_map="-2=0,-1=").state == "done"
    assert grades_there() == [("q1", "d1", 1), ("q1", "d3", 0), ("q2", "d1", 0)]


def test_negative_grades_are_asked_about_by_the_command_and_a_map_answers(tmp_path: Path) -> None:
    collection, path = here_are(), tmp_path / "gold.qrels"
    path.write_text(NEGATIVE)
    given = [str(path), "--collection", collection.name, "--gold"]
    with pytest.raises(CommandError, match=ASKED):
        call_command("import_judgments", *given, stdout=StringIO())
    assert grades_there() == []
    call_command("import_judgments", *given, "--grade-map=-2=0,-1=", stdout=StringIO())
    assert grades_there() == [("q1", "d1", 1), ("q1", "d3", 0), ("q2", "d1", 0)]
