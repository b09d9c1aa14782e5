"""Files that are wrong in themselves, for tests of all doors: the command, the page of an import, the API."""

from typing import NamedTuple

LABELS = "".join(f"q{topic} 0 d{doc} {(doc + topic) % 2}\n" for topic in (1, 2) for doc in range(1, 5))


class BadFile(NamedTuple):
    """A file that no door takes.

    Attributes
    ----------
    file, text : str
        Its name, and what it holds.
    wanted : str
        What it is given for: run, labels or gold.
    command : str
        What the command says of it, and the library.
    form : str
        The format that the API is told.
    """

    file: str
    text: str
    wanted: str
    command: str
    form: str


GOLD = "topic,doc,grade,probability\n"
BAD_FILES = {
    "a column that is unknown": BadFile(
        "g.csv", "qid,passage,colour\nq1,d1,2\n", "gold",
        "g.csv:1:1: no column named doc_id or Input.doc_id or doc or docno or docid; its columns are qid, passage, "
        "colour", form="gold"),
    "a column of a run that is unknown": BadFile(
        "r.csv", "qid,docno,points\nq1,d1,2\n", "run",
        "r.csv:1:1: no column named score or rank; its columns are qid, docno, points", form="pyterrier"),
    "a column that is named twice": BadFile(
        "g.csv", "topic,doc,grade,grade\nq1,d1,2,1\n", "gold",
        "g.csv:1:1: two columns have the same name: 'grade'", form="gold"),
    "two columns that mean the same": BadFile(
        "g.csv", "topic,qid,doc,grade\nq1,q2,d1,1\n", "gold",
        "g.csv:1:1: the columns topic and qid mean the same: leave one out", form="gold"),
    "a run given for labels": BadFile(
        "a.run", "q1 Q0 d1 1 2 a\nq1 Q0 d2 2 1 a\n", "labels",
        "a.run:1:1: this holds runs (TREC run): read_run reads it", form="qrels"),
    "labels given for a run": BadFile(
        "l.qrels", LABELS, "run", "l.qrels:1:1: this holds judgments (qrels): read_qrels reads it", form="run"),
    "topics given for labels": BadFile(
        "t.tsv", "query_id\tquery\nq1\tblack bears\n", "labels",
        "t.tsv:1:1: this holds topics (Table of topics): read_topics reads it", form="qrels"),
    "a pair twice": BadFile(
        "x.qrels", "q1 0 d1 1\nq1 0 d2 1\nq1 0 d1 0\n", "labels",
        "x.qrels:3:6: document d1 of topic q1 occurs twice (first on line 1)", form="qrels"),
    "a pair twice in a table": BadFile(
        "g.csv", f"{GOLD}q1,d1,1,.5\nq1,d1,0,.5\n", "gold",
        "g.csv:3: document d1 is judged twice in topic q1", form="gold"),
    "a document twice in a run": BadFile(
        "r.run", "q1 Q0 d1 1 2 r\nq1 Q0 d1 2 1 r\n", "run",
        "r.run:2:7: document d1 of topic q1 occurs twice (first on line 1)", form="run"),
    "a probability of 0": BadFile(
        "g.csv", f"{GOLD}q1,d1,1,.5\nq1,d2,1,0\n", "gold",
        "g.csv:3:9: probability must be 0.000001 to 1, not '0'", form="gold"),
    "a probability of 1.5": BadFile(
        "g.csv", f"{GOLD}q1,d1,1,.5\nq1,d2,1,1.5\n", "gold",
        "g.csv:3:9: probability must be 0.000001 to 1, not '1.5'", form="gold"),
    "a probability of 1.5 in prels": BadFile(
        "g.prels", "q1 d1 1 1 .5\nq1 d2 1 1 1.5\n", "gold",
        "g.prels:2:11: inclusion probability must be in (0, 1], not 1.5", form="prels"),
    "a probability that is no number": BadFile(
        "g.prels", "q1 d1 1 1 .5\nq1 d2 1 1 nan\n", "gold",
        "g.prels:2:11: inclusion probability must be a finite number, not 'nan'", form="prels"),
    "a score that is NaN": BadFile(
        "r.run", "q1 Q0 d1 1 2 r\nq1 Q0 d2 2 nan r\n", "run",
        "r.run:2:12: score must be a finite number, not 'nan'", form="run"),
    "a score that is NaN in JSON": BadFile(
        "r.json", '{"q1": {"d1": 1.5,\n "d2": NaN}}', "run",
        "r.json:2:8: score must be a finite number, not 'nan'", form="json_run"),
    "a grade that is a word": BadFile(
        "x.qrels", "q1 0 d1 1\nq1 0 d2 high\n", "labels",
        "x.qrels:2:9: grade must be an integer in -127..127, not 'high'", form="qrels"),
    "grades below 0": BadFile(
        "x.qrels", "q1 0 d1 1\nq1 0 d2 -2\nq2 0 d1 -1\nq2 0 d2 -2\n", "labels",
        "x.qrels:2: 2 lines have the grade -2, 1 line has the grade -1: say with grades= (in a shell: --grades) what "
        "it means, 0 for not relevant or None to leave the lines out", form="qrels"),
}  # fmt: skip
