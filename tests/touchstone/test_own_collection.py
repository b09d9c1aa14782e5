"""Somebody's own collection in the demo: named before any server starts, and loaded whole."""

import pytest
from django.core.management import CommandError, call_command
from journey_files import CORPUS, QRELS, RUNS, TOPICS

from judging.models import GoldAnswer
from touchstone.demo.own_collection import look_for_demo, missing, off_scale_words
from touchstone.management.commands import demo, load_demo

CRANFIELD = {
    "cran.all.1400": ".I 1\n.T\none title\n.A\nnobody\n.B\n\n.W\nwords of one\n"
    ".I 2\n.T\ntwo\n.A\n\n.B\n\n.W\nwords of two\n",
    "cran.qry": ".I 001\n.W\nwhat is one .\n.I 004\n.W\nwhat is two .\n",
    "cranqrel": "1 1 1\n1 2 -1\n2 1 4\n2 2 3\n",
}


def folder_of(path, texts):
    for name, text in texts.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    return path


def kinds(cards):
    return {card["name"]: card["kind"] for card in cards}


def test_gold_and_sheets_are_found_by_what_is_in_them_and_nothing_is_passed_over(tmp_path):
    sheet = "id,query\n" + "".join(f"t{number},Need {number}\n" for number in range(3))
    texts = {"queries.csv": sheet, "corpus.jsonl": CORPUS, "gold.qrels": QRELS, "README": "About it."}
    cards, _ = look_for_demo(folder_of(tmp_path, texts), {})
    assert kinds(cards) == {
        "queries.csv": "topics", "corpus.jsonl": "documents", "gold.qrels": "judgments", "README": "none",
    }  # fmt: skip
    assert missing(cards) == []


def test_gold_is_brought_onto_the_demos_scale_and_that_is_said(tmp_path):
    gold = "t0 0 t0d0 -2\nt0 0 t0d1 4\nt1 0 t1d0 2\nt1 0 elsewhere 1\n"
    cards, choices = look_for_demo(
        folder_of(tmp_path, {"topics.tsv": TOPICS, "corpus.jsonl": CORPUS, "gold.qrels": gold}), {}
    )
    assert choices["gold.qrels"] == {"grade_map": "-2=0,4=3", "skips_unknown": True}
    assert off_scale_words(cards) == ["gold.qrels: grades become those of the scale 0 to 3 by -2=0,4=3"]


def test_cranfield_is_read_with_its_codes_as_a_grade_map(tmp_path):
    cards, choices = look_for_demo(folder_of(tmp_path, CRANFIELD), {})
    assert kinds(cards) == {"cran.all.1400": "documents", "cran.qry": "topics", "cranqrel": "judgments"}
    assert choices["cranqrel"]["grade_map"] == "-1=0,1=3,3=2,4=1"


def test_what_the_demo_needs_is_named():
    assert missing([{"kind": "topics"}]) == ["No file was taken for documents: the demo needs some."]


def test_faults_are_named_before_any_server_starts(tmp_path, monkeypatch, capsys):
    started = []
    monkeypatch.setattr(demo, "run_stack", lambda *arguments: started.append(arguments))
    folder = folder_of(
        tmp_path, {"topics.tsv": TOPICS, "corpus.jsonl": CORPUS, "a.run": RUNS["a"] + "t0 Q0 d1 1 high a\n"}
    )
    with pytest.raises(CommandError, match=r"a\.run has 1 fault") as error:
        call_command("demo", "--collection", str(folder))
    assert error.value.returncode == 2
    assert started == []
    assert "a.run:31:12: score must be a finite number, not 'high'" in capsys.readouterr().out
    (folder / "a.run").write_text(RUNS["a"])
    call_command("demo", "--collection", str(folder))  # the control
    assert len(started) == 1


@pytest.mark.django_db
def test_a_folder_is_loaded_as_it_was_looked_at(tmp_path):
    texts = {"topics.tsv": TOPICS, "corpus.jsonl": CORPUS, "gold.qrels": QRELS.replace(" 2\n", " 4\n")}
    texts |= {f"runs/{tag}.run": RUNS[tag] for tag in "ab"}
    command = load_demo.Command()
    said = []
    command._say = said.append
    made = command._folder(folder_of(tmp_path, texts), "mine")
    assert (made.topics.count(), made.documents.count(), made.runs.count()) == (3, 36, 2)
    assert set(GoldAnswer.objects.values_list("grade", flat=True)) == {0, 1, 3}
    assert said[0] == "gold.qrels: grades become those of the scale 0 to 3 by 4=3"
