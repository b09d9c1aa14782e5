"""Every format: the tool's own file is read, written, and read by the tool, which finds the same values.

A test is skipped where its tool is not installed; the README beside the fixtures says how all of them are.
"""

import io
import json
import re
import subprocess
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from tool_files import (
    FILES,
    GRADES,
    JUDGMENT_FILES,
    LABELS,
    RANKS,
    RUN,
    RUN_FILES,
    function_of,
    program,
    requests_of,
    tool,
)  # fmt: skip

from judging import formats
from judging.formats.kinds import RUNS

pytestmark = pytest.mark.filterwarnings("ignore")  # what tools do with files and numbers is theirs
SCORES = {"q1": {doc: score for topic, doc, score in RUN if topic == "q1"}, "q2": {"d2": 3.0, "d1": -1.5}}
NESTED = {"q1": {"d1": 2, "d2": 0, "d3": 1}, "q2": {"d1": 0, "d2": 3}}
SAID = [
    (judge, pair, grade)
    for judge, grades in (("ann", GRADES), ("ben", GRADES), ("eve", LABELS))
    for pair, grade in grades.items()
]


# -- runs, as tools read them: topic -> document -> score -----------------------------------------------------


def by_trec_eval(path: Path) -> Any:
    with open(path) as stream:
        return tool("pytrec_eval").parse_run(stream)


def by_ranx(path: Path) -> Any:
    return tool("ranx").Run.from_file(str(path)).to_dict()


def by_pyterrier(path: Path) -> Any:
    return nested(tool("pyterrier").io.read_results(str(path)), "qid", "docno", "score")


def by_beir(path: Path) -> Any:
    return function_of("beir/util.py", "load_runfile")(str(path))


def by_ir_measures(path: Path) -> Any:
    found: dict[str, dict[str, float]] = {}
    for one in tool("ir_measures").read_trec_run(str(path)):
        found.setdefault(one.query_id, {})[one.doc_id] = one.score
    return found


def by_experiment(path: Path) -> Any:
    """Let `pt.Experiment` use saved results in the place of a system that would find nothing."""
    pt, pd = tool("pyterrier"), tool("pandas")
    path.rename(path.parent / "bm25.custom")
    frames = []

    def read(stream: Any) -> Any:
        frames.append(pd.read_csv(stream, dtype={"qid": str, "docno": str}))
        return frames[0]

    topics = pd.DataFrame({"qid": ["q1", "q2"], "query": ["a", "b"]})
    qrels = pd.DataFrame(
        [(*pair, grade) for pair, grade in GRADES.items()], columns=["qid", "docno", "label"]
    )
    saved = {"save_dir": str(path.parent), "save_mode": "reuse", "save_format": (read, pd.DataFrame.to_csv)}
    table = pt.Experiment([pt.Transformer.identity()], topics, qrels, ["P_5"], names=["bm25"], **saved)
    assert table["P_5"].tolist() == [pytest.approx((0.4 + 0.2) / 2)]
    assert frames[0]["rank"].tolist() == [rank - 1 for rank in RANKS]  # PyTerrier's begin with 0
    return nested(frames[0], "qid", "docno", "score")


def by_mteb(path: Path) -> Any:
    """Let MTEB rerank by the run, which it reads below a subset and a split: it keeps the documents in their order."""
    whole = {"mteb_model_meta": {}, "default": {"test": json.loads(path.read_text())}}
    path.write_text(json.dumps(whole))
    splits: dict[str, Any] = {"test": {}}
    task = SimpleNamespace(data_loaded=True, dataset={"default": splits})
    function_of("mteb/abstasks/retrieval.py", "convert_to_reranking")(task, path, top_k=100)
    return dict(splits["test"]["top_ranked"])


def by_msmarco(path: Path) -> Any:
    """Let MS MARCO's evaluation, which ir_measures brings, read the run; its ids are numbers."""
    evaluation = tool("ir_measures.bin.msmarco_eval")
    path.write_text(re.sub(r"[qd](\d)", r"\1", path.read_text()))
    found = evaluation.load_candidate(str(path))
    return {
        f"q{topic}": {f"d{doc}": rank for rank, doc in enumerate(docs, 1) if doc}
        for topic, docs in found.items()
    }


def nested(frame: Any, topic: str, doc: str, value: str) -> dict[str, dict[str, Any]]:
    """Return the values of a frame by topic and document."""
    found: dict[str, dict[str, Any]] = {}
    for row in frame.to_dict("records"):
        found.setdefault(row[topic], {})[row[doc]] = row[value]
    return found


# -- judgments ------------------------------------------------------------------------------------------------


def qrels_by_trec_eval(path: Path) -> Any:
    with open(path) as stream:
        return tool("pytrec_eval").parse_qrel(stream)


def qrels_by_ranx(path: Path) -> Any:
    return tool("ranx").Qrels.from_file(str(path), kind="trec").to_dict()


def qrels_by_pyterrier(path: Path) -> Any:
    return nested(tool("pyterrier").io.read_qrels(str(path)), "qid", "docno", "label")


def qrels_by_ir_measures(path: Path) -> Any:
    found: dict[str, dict[str, int]] = {}
    for one in tool("ir_measures").read_trec_qrels(str(path)):
        found.setdefault(one.query_id, {})[one.doc_id] = one.relevance
    return found


def qrels_by_beir(path: Path) -> Any:
    loader = tool("beir.datasets.data_loader").GenericDataLoader(qrels_file=str(path))
    loader._load_qrels()
    return loader.qrels


def qrels_by_datasets(path: Path) -> Any:
    tool("datasets")
    import datasets

    cache = str(path.parent / "cache")
    rows = datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=cache)
    return nested(rows.to_pandas(), "query-id", "corpus-id", "score")


def groups_by_trec_eval(path: Path) -> Any:
    """Let trec_eval average P@k over the judges of each topic, from who judged what."""
    trec_eval = program("TREC_EVAL", "trec_eval")
    asked = [trec_eval, "-q", "-R", "qrels_jg", "-m", "P_avgjg.1,2", str(path), str(FILES / "ranx.trec")]
    lines = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split("\n")
    return {
        (topic, name): float(value)
        for name, topic, value in map(str.split, filter(None, lines))
        if topic != "all"
    }


def votes_by_crowdkit(path: Path) -> Any:
    aggregation, pandas = tool("crowdkit.aggregation"), tool("pandas")
    frame = pandas.read_csv(path)
    labels = aggregation.MajorityVote().fit_predict(frame)
    assert labels.to_dict() == {" ".join(pair): grade for pair, grade in GRADES.items()}
    return [(row["worker"], tuple(row["task"].split()), row["label"]) for row in frame.to_dict("records")]


def gold_by_pandas(path: Path) -> Any:
    frame = tool("pandas").read_csv(path)
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [(row["topic_id"], row["doc_id"], row["grade"], row["probability"]) for row in rows]


def prels_by_ir_datasets(path: Path) -> Any:
    reading = tool("ir_datasets.formats").TrecPrels(
        SimpleNamespace(stream=lambda: io.BytesIO(path.read_bytes())), {}
    )
    return [tuple(one) for one in reading.qrels_iter()]


def prels_by_pyterrier(path: Path) -> Any:
    """Let PyTerrier read prels as it does those of TREC's Web track: it keeps their grades."""
    builtin = tool("pyterrier.datasets._builtin")
    folder = SimpleNamespace(_get_one_file=lambda component, variant: (str(path), ""))
    return nested(builtin.prel2qrel(folder, "qrels", None)[0], "qid", "docno", "label")


def strata_by_sample_eval(path: Path) -> Any:
    """Let NIST's program estimate the numbers of relevant documents, each stratum by the part that was sampled."""
    sample_eval = program("SAMPLE_EVAL", "NIST's sample_eval.pl")
    asked = ["perl", sample_eval, "-q", str(path), str(FILES / "ranx.trec"), "10"]
    lines = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split("\n")
    found = [line.split() for line in lines if line.startswith("inum_rel\t")]
    return {topic: float(number) for _, topic, number in found if topic != "all"}


def labels_by_truescore(path: Path) -> Any:
    loaded = tool("truescore.io").load_labels(path, judge="judge", gold="truth", id_column="doc")
    return loaded.ids.tolist(), loaded.judge.tolist(), loaded.gold.tolist(), loaded.gold_index.tolist()


def mean_by_ppi(path: Path) -> Any:
    """Let ppi-python correct the labels' mean by the truth, from the arrays of the table's columns."""
    ppi_py, frame = tool("ppi_py"), tool("pandas").read_csv(path)
    looked = frame["truth"].notna()
    arrays = frame.truth[looked], frame.judge[looked], frame.judge[~looked]
    return ppi_py.ppi_mean_pointestimate(*(one.to_numpy(float) for one in arrays), lam=1).tolist()


# -- which tool reads which format ----------------------------------------------------------------------------


class Reader(NamedTuple):
    """A tool that reads a format: its package, if it is one, and what it must find in what is written."""

    form: str
    package: str
    read: Callable[[Path], Any]
    expected: Any
    ending: str = ""


PRELS = [("q1", "d1", 2, 1, 0.5), ("q1", "d2", 0, 1, 0.25), ("q1", "d3", 1, 1, 1.0),
         ("q2", "d1", 0, 1, 0.125), ("q2", "d2", 3, 1, 0.5)]  # fmt: skip
# Of the run d1 d3 d2 (q1) and d2 d1 (q2): ann and ben find d1, d3 and d2 relevant, eve d1, d2 and d2.
GROUPS = {
    ("q1", "P_avgjg_1"): 1.0,
    ("q1", "P_avgjg_2"): 0.8333,
    ("q2", "P_avgjg_1"): 1.0,
    ("q2", "P_avgjg_2"): 0.5,
}
READERS = (
    Reader("run", "pytrec-eval-terrier", by_trec_eval, SCORES),
    Reader("run", "ranx", by_ranx, SCORES, ".trec"),
    Reader("run", "pyterrier", by_pyterrier, SCORES),
    Reader("run", "beir", by_beir, SCORES),
    Reader("run", "ir-measures", by_ir_measures, SCORES),
    Reader("msmarco", "ir-measures", by_msmarco,
           {"q1": {"d1": 1, "d3": 2, "d2": 3, "d4": 4, "d5": 5, "d6": 6}, "q2": {"d2": 1, "d1": 2}}),
    Reader("json_run", "ranx", by_ranx, SCORES, ".json"),
    Reader("json_run", "mteb", by_mteb, {topic: list(scores) for topic, scores in SCORES.items()}),
    Reader("pyterrier", "pyterrier", by_experiment, SCORES),
    Reader("qrels", "pytrec-eval-terrier", qrels_by_trec_eval, NESTED),
    Reader("qrels", "ranx", qrels_by_ranx, NESTED),
    Reader("qrels", "pyterrier", qrels_by_pyterrier, NESTED),
    Reader("qrels", "ir-measures", qrels_by_ir_measures, NESTED),
    Reader("qrels_jg", "", groups_by_trec_eval, GROUPS),
    Reader("crowd", "crowd-kit", votes_by_crowdkit, SAID),
    Reader("gold", "pandas", gold_by_pandas,
           [("q1", "d1", 2, 0.72), ("q1", "d3", None, 0.72), ("q2", "d1", 0, 0.72), ("q2", "d2", 3, 0.72)]),
    Reader("beir", "beir", qrels_by_beir, NESTED),
    Reader("prels", "ir-datasets", prels_by_ir_datasets, PRELS),
    Reader("prels", "pyterrier", prels_by_pyterrier, NESTED),
    Reader("stratified", "", strata_by_sample_eval, {"q1": 2.0, "q2": 1.0}),
    Reader("mteb", "datasets", qrels_by_datasets, NESTED),
    Reader("pairs", "truescore", labels_by_truescore,
           (["d1", "d2", "d3", "d1", "d2"], [2, 1, 0, 0, 3], [2, 0, 3], [0, 1, 4]), ".csv"),
    # 0 is the mean label of the two pairs nobody looked at; 5/3 is the mean truth of the others, 2 their mean label.
    Reader("pairs", "ppi-python", mean_by_ppi, [pytest.approx(0 + 5 / 3 - 2)]),
)  # fmt: skip
# Formats that are written and that no tool reads: umbrela writes its judgments, and reads requests alone.
UNREAD = {"umbrela"}
FILES_OF = [*((name, key) for name, (key, _) in RUN_FILES.items()), *JUDGMENT_FILES.items()]
ROUNDS = [(name, reader) for name, key in FILES_OF for reader in READERS if reader.form == key]


def test_every_format_that_is_written_is_read_by_a_tool() -> None:
    written = {one.key for one in formats.FORMATS if one.write is not None}
    assert {one.form for one in READERS} == written - UNREAD


@pytest.mark.parametrize(
    ("name", "reader"), ROUNDS, ids=[f"{name}-{reader.read.__name__}" for name, reader in ROUNDS]
)
def test_the_tool_reads_what_is_written(name: str, reader: Reader, tmp_path: Path, record_property) -> None:
    if formats.format_of(reader.form).holds == RUNS:
        called, columns = formats.read_run_columns(FILES / name)
    else:
        called, columns = "", formats.read_judgment_columns(FILES / name, **requests_of(name))
    path = tmp_path / f"again{reader.ending}"
    formats.write(columns, path, format=reader.form, name=called or "run")
    found = reader.read(path)
    assert found == reader.expected
    record_property("rows", len(columns["doc_id"]))
    record_property("tool", f"{reader.package} {metadata.version(reader.package)}" if reader.package else "")


def test_sample_eval_weighs_strata_by_what_was_sampled(tmp_path: Path) -> None:
    columns = {
        "topic_id": ["q1"] * 4,
        "doc_id": ["d1", "d2", "d3", "d4"],
        "stratum": [1, 2, 2, 2],
        "grade": [1, 1, None, None],
    }
    formats.write(columns, tmp_path / "a.strata", format="stratified")
    assert strata_by_sample_eval(tmp_path / "a.strata") == {"q1": 1 + 3.0}  # one of three was sampled


def test_trec_eval_scores_the_run_as_it_is_written() -> None:
    pytrec_eval = tool("pytrec_eval")
    stream = io.BytesIO()
    formats.write(formats.read_run_columns(FILES / "ranx.json")[1], stream, format="run")
    run = pytrec_eval.parse_run(io.StringIO(stream.getvalue().decode()))
    found = pytrec_eval.RelevanceEvaluator(NESTED, {"P_5"}).evaluate(run)
    assert {topic: values["P_5"] for topic, values in found.items()} == {"q1": 0.4, "q2": 0.2}
