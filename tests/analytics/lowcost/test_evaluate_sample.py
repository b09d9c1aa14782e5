"""`manage.py evaluate --format`: runs on somebody else's sample, from files alone, beside pytrec_eval and by hand."""

import gzip
import json
from io import BytesIO, StringIO
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
from django.core.management import CommandError, call_command

from analytics.estimation.estimate import Refusal
from analytics.lowcost.evaluating import RunScores, evaluate_sample, prel_measure, stratified_measure
from analytics.lowcost.samples import prel_topics, stratified_topics
from analytics.lowcost.statap import statap
from judging.trec import PrelRecord, StratifiedRecord, read_prels, read_stratified
from sampling.rejudging import SampledTopic

SIX_DIGITS = 1e-6
PRELS = "1 a 1 1 0.5\n1 b 0 1 1\n1 c 2 2 0.25\n2 a 0 1 0.5\n3 a 1 0 1\n"


def scored(answers: list[RunScores | Refusal]) -> list[RunScores]:
    """Return the scores of measures of which none is refused."""
    assert not [one for one in answers if isinstance(one, Refusal)]
    return [one for one in answers if isinstance(one, RunScores)]


def run_text(tag: str, rankings: dict[str, list[str]]) -> str:
    return "".join(
        f"{topic} Q0 {doc} {place} {-place} {tag}\n"
        for topic, docs in rankings.items()
        for place, doc in enumerate(docs, 1)
    )


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    texts = {
        "prels": PRELS,
        "one": run_text("one", {"1": ["a", "x", "c"], "2": ["a"], "9": ["z"]}),
        "two": run_text("two", {"1": ["c"], "3": ["a"]}),
        "far": run_text("far", {"9": ["z"]}),
        "strata": "1 0 a 1 1\n1 0 b 1 0\n1 0 c 2 -1\n1 0 d 2 2\n2 0 a 5 0\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: str(tmp_path / name) for name in texts}


def output_of(*arguments: str, **options: object) -> str:
    out = StringIO()
    call_command("evaluate", *arguments, stdout=out, **options)
    return out.getvalue()


def report_of(*arguments: str, **options: object) -> dict:
    return json.loads(output_of(*arguments, output="json", **options))


def test_the_values_by_hand(files: dict[str, str]) -> None:
    """Topic 1: R = 2 + 4 = 6; run one has a at 1, c at 3: (2 * 1 + 4 * (1 + 2) / 3) / 6 = 1, two 4 * 1 / 6."""
    report = report_of(files["prels"], files["one"], files["two"], "statAP", "P@2", "DCG@10", format="prels")
    values = {one["measure"]: one for one in report["measures"]}
    assert report["runs"] == ["one", "two"]
    assert values["statAP"]["values"] == pytest.approx({"one": 1 / 3, "two": (2 / 3 + 1) / 3})
    assert values["statAP"]["n_empty_topics"] == 1
    assert values["P@2"]["values"] == pytest.approx({"one": 2 / 2 / 3, "two": (4 / 2 + 1 / 2) / 3})
    assert values["DCG@10"]["values"] == pytest.approx({"one": (2 + 8 / 2) / 3, "two": (8 + 1) / 3})
    assert report["n_topics"] == 3


def test_empty_topics_may_be_left_out(files: dict[str, str]) -> None:
    report = report_of(files["prels"], files["one"], "statAP", "P@2", format="prels", empty_topics="skip")
    statistic, precision = report["measures"]
    assert (statistic["values"]["one"], statistic["n_topics"]) == (pytest.approx(1 / 2), 2)
    assert (precision["values"]["one"], precision["n_topics"]) == (pytest.approx(2 / 2 / 3), 3)


def test_method_codes_of_the_track(files: dict[str, str]) -> None:
    """c of method 2 is certain then, and topic 3, of method 0 alone, is left out."""
    report = report_of(files["prels"], files["two"], "statAP", format="prels", method_codes="track")
    assert report["measures"][0]["values"]["two"] == pytest.approx(1 / 3 / 2)
    assert (report["n_topics"], report["n_topics_left_out"]) == (2, 1)


def test_by_topic_with_the_variances_by_name(files: dict[str, str]) -> None:
    report = report_of(
        files["prels"], files["two"], "statAP", "statAP(form=printed)", format="prels", by_topic=True
    )
    usual, printed = report["measures"]
    one = usual["by_topic"]["1"]["two"]
    assert set(one) == {"value", "linearised_variance", "program_variance"}
    assert one["value"] == pytest.approx(4 / 6)
    assert printed["by_topic"]["1"]["two"] == pytest.approx({"value": 4 * 4 / 6})
    assert usual["empty_topics"] == ["2"]


def test_the_table_says_of_how_many_topics_and_that_there_is_no_interval(files: dict[str, str]) -> None:
    text = output_of(files["prels"], files["one"], files["two"], "statAP", "P@10", format="prels", places=3)
    lines = text.splitlines()
    assert lines[0] == "prels: 3 topics, 5 documents"
    assert [line.split() for line in lines[2:7]] == [
        ["measure", "run", "value"],
        ["statAP", "one", "0.333"],
        ["statAP", "two", "0.556"],
        ["P@10", "one", "0.200"],
        ["P@10", "two", "0.167"],
    ]
    assert "statAP: mean over 3 topics, no interval; 1 without a sampled relevant document count 0" in lines
    assert "P@10: mean over 3 topics, no interval" in lines


def test_lines_by_topic_alone(files: dict[str, str]) -> None:
    text = output_of(files["prels"], files["two"], "statAP", format="prels", by_topic=True, no_summary=True)
    assert text.splitlines()[:2] == ["topic\tmeasure\trun\tvalue", "1\tstatAP\ttwo\t0.6667"]
    assert len(text.splitlines()) == 4


def test_values_above_1_are_pointed_at(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("1 a 1 1 0.1\n1 b 1 1 0.1\n")
    (tmp_path / "r").write_text(run_text("r", {"1": ["a", "b"]}))
    text = output_of(str(tmp_path / "p"), str(tmp_path / "r"), "statAP", format="prels")
    assert "statAP: 1 of 1 values of a topic exceed 1" in text


def test_gzip_is_read(tmp_path: Path, files: dict[str, str]) -> None:
    (tmp_path / "p.gz").write_bytes(gzip.compress(PRELS.encode()))
    assert "3 topics" in output_of(str(tmp_path / "p.gz"), files["one"], "statAP", format="prels")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["prels", "one", "two"], "prels needs a measure after the run files"),
        (["prels", "statAP", "P@10"], "prels needs a run file before the measures"),
        (["prels", "one", "mAP"], "mAP is neither a file nor a measure"),
        (["prels", "one", "nDCG@10"], "nDCG@10 is neither a file nor a measure: .*statAP, DCG, Gain, P, RBP"),
        (["prels", "one", "statAP", "two"], "runs stand before the measures"),
        (["prels", "one", "one", "statAP"], "two sources hold a run of the name one"),
        (["prels", "far", "statAP"], "returns nothing for the topics of"),
        (["prels", "gone.run", "statAP"], "gone.run is neither a file nor a measure"),
        (["gone.prels", "one", "statAP"], "gone.prels: No such file"),
        (["strata", "one", "statAP"], "strata:1:5: grade must be an integer"),
        (["one", "two", "statAP"], "one:1:.*: expected 5 columns .*, found 6"),
        (["prels", "one", "statAP(form=exact)"], "form of statAP must be one of usual, printed"),
        (["prels", "one", "statAP(p=1)"], r"statAP takes the parameters \['form', 'rel'\]"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(files: dict[str, str], arguments: list[str], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        output_of(*(files.get(one, one) for one in arguments), format="prels")


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (["strata", "one", "P@10"], {}, "P@10 is neither a file nor a measure: .*must be infAP or infNDCG"),
        (["strata", "one", "infAP@10"], {}, "infAP takes no cutoff"),
        (["prels", "one", "infAP"], {}, "prels:1:.*: stratum must be an integer|prels:1:9: grade must be"),
        (["strata", "one", "infAP"], {"method_codes": "track"}, "a pool in strata has none"),
    ],
)
def test_what_cannot_be_evaluated_on_strata_is_refused(files, arguments, options, words) -> None:
    with pytest.raises(CommandError, match=words):
        output_of(*(files.get(one, one) for one in arguments), format="stratified", **options)


def test_a_bad_probability_names_its_line(tmp_path: Path, files: dict[str, str]) -> None:
    for value in ("0", "1.2", "NA", "-1"):
        (tmp_path / "bad").write_text(f"1 a 1 1 1\n1 b 1 1 {value}\n")
        with pytest.raises(CommandError, match="bad:2:9: inclusion probability must be"):
            output_of(str(tmp_path / "bad"), files["one"], "statAP", format="prels")


def test_a_file_without_judgments_is_refused(tmp_path: Path, files: dict[str, str]) -> None:
    (tmp_path / "nothing").write_text("")
    with pytest.raises(CommandError, match="nothing: no judgments in the file"):
        output_of(str(tmp_path / "nothing"), files["one"], "statAP", format="prels")
    (tmp_path / "chosen").write_text("1 a 1 0 1\n")
    with pytest.raises(CommandError, match="no judgments in the file: 1 topics have method 0 alone"):
        output_of(str(tmp_path / "chosen"), files["one"], "statAP", format="prels", method_codes="track")


def test_nothing_relevant_in_any_topic_is_refused_where_the_number_would_stand(tmp_path, files) -> None:
    (tmp_path / "none").write_text("1 a 0 1 0.5\n2 a 0 1 1\n")
    report = report_of(str(tmp_path / "none"), files["one"], "statAP", "P@10", format="prels")
    statistic, precision = report["measures"]
    assert statistic["refusal"] == "no sampled document is relevant in any of the 2 topics"
    assert precision["values"] == {"one": 0.0}
    text = output_of(str(tmp_path / "none"), files["one"], "statAP", format="prels")
    assert "statAP: no sampled document is relevant" in text
    assert "statAP   one  refused" in text


def random_collection(rng: np.random.Generator) -> tuple[dict, dict]:
    """Return qrels and a run of a few topics; some documents of the run are not judged."""
    qrels, run = {}, {}
    for topic in map(str, range(1, 6)):
        docs = [f"d{i}" for i in range(30)]
        qrels[topic] = {doc: int(rng.choice([0, 0, 0, 1, 2])) for doc in docs}
        returned = rng.permutation([*docs, *(f"u{i}" for i in range(10))])[: rng.integers(5, 40)]
        run[topic] = {str(doc): float(len(returned) - place) for place, doc in enumerate(returned)}
    return qrels, run


def ranking_of(run: dict) -> dict[str, list[str]]:
    return {topic: sorted(docs, key=lambda doc: -docs[doc]) for topic, docs in run.items()}


def test_a_complete_sample_gives_the_values_of_pytrec_eval() -> None:
    rng = np.random.default_rng(5)
    for _ in range(10):
        qrels, run = random_collection(rng)
        topics, _ = prel_topics(
            PrelRecord(topic, doc, grade, 1, 1.0)
            for topic, docs in qrels.items()
            for doc, grade in docs.items()
        )
        names = {"statAP": "map", "P@10": "P_10", "statAP(form=printed)": "map", "statAP@10": "map_cut_10"}
        scores = scored(evaluate_sample(topics, [ranking_of(run)], [prel_measure(name) for name in names]))
        theirs = pytrec_eval.RelevanceEvaluator(qrels, {"map", "P.10", "map_cut.10"}).evaluate(run)
        for ours, measure in zip(scores, names.values(), strict=True):
            expected = [theirs[topic.topic_id][measure] for topic in topics]
            assert ours.by_topic[0] == pytest.approx(expected, abs=1e-9), ours.measure


def test_pools_sampled_completely_give_the_values_of_pytrec_eval() -> None:
    """Every document of the run is in the pool: elsewhere infAP takes another view of what is above."""
    rng = np.random.default_rng(6)
    for _ in range(10):
        qrels, run = random_collection(rng)
        run = {
            topic: {doc: s for doc, s in docs.items() if doc in qrels[topic]} for topic, docs in run.items()
        }
        topics = stratified_topics(
            StratifiedRecord(topic, doc, int(doc[-1]) % 2, grade)
            for topic, docs in qrels.items()
            for doc, grade in docs.items()
        )
        names = ["infAP", "infAP(form=ht)", "infNDCG", "infNDCG(form=ht)"]
        scores = scored(
            evaluate_sample(topics, [ranking_of(run)], [stratified_measure(name) for name in names])
        )
        theirs = pytrec_eval.RelevanceEvaluator(qrels, {"map", "infAP", "ndcg"}).evaluate(run)
        for ours, measure, error in zip(
            scores, ("infAP", "map", "ndcg", "ndcg"), (1e-4, 1e-9, 1e-9, 1e-9), strict=True
        ):
            expected = [theirs[topic.topic_id][measure] for topic in topics]
            assert ours.by_topic[0] == pytest.approx(expected, abs=error), ours.measure


def test_infap_of_strata_by_hand() -> None:
    """Two strata: 1 of 2 and 2 of 2 sampled; the precision above takes each by its share, as sample_eval does."""
    text = b"1 0 a 1 1\n1 0 b 1 -1\n1 0 c 2 0\n1 0 d 2 1\n"
    topics = stratified_topics(read_stratified(BytesIO(text), "s"))
    scores = scored(evaluate_sample(topics, [{"1": ["a", "b", "c", "d"]}], [stratified_measure("infAP")]))[0]
    e = 1e-5
    above = 2 * (1 + e) / (1 + 3 * e) + 1 * e / (1 + 3 * e)  # documents above d: two of stratum 1, one of 2
    expected = (2 * 1 + 1 * (1 + above) / 4) / 3
    assert scores.by_topic[0, 0] == pytest.approx(expected, abs=1e-12)


def test_a_stratum_without_a_sample_is_refused_by_its_topic() -> None:
    topics = stratified_topics([StratifiedRecord("7", "a", 1, 1), StratifiedRecord("7", "b", 2, -1)])
    refusal = evaluate_sample(topics, [{"7": ["a"]}], [stratified_measure("infAP")])[0]
    assert isinstance(refusal, Refusal)
    assert refusal.reason.startswith("infAP of topic 7: at least 1 judged documents a stratum are needed")


def test_topics_without_relevant_documents_are_empty_in_strata_too(files: dict[str, str]) -> None:
    report = report_of(files["strata"], files["one"], "infAP", "infNDCG", format="stratified")
    assert [one["n_empty_topics"] for one in report["measures"]] == [1, 1]


def test_a_sample_with_a_grade_that_is_relevant_only_from_2_on() -> None:
    records = [
        PrelRecord("1", "a", 1, 1, 0.5),
        PrelRecord("1", "b", 2, 1, 0.5),
        PrelRecord("1", "c", -2, 1, 1.0),
    ]
    topics, _ = prel_topics(records)
    run = {"1": ["a", "b", "c"]}
    by_name = evaluate_sample(
        topics, [run], [prel_measure(name) for name in ("statAP(rel=2)", "P(rel=2)@2", "DCG@3")]
    )
    assert [one.by_topic[0, 0] for one in scored(by_name)] == pytest.approx([0.5, 1.0, 2 + 4 / np.log2(3)])


def test_identical_runs_have_identical_values_and_empty_ones_are_0() -> None:
    topics, _ = prel_topics(read_prels(BytesIO(PRELS.encode()), "p"))
    runs = [{"1": ["a", "c"]}, {"1": ["a", "c"]}, {}]
    values = scored(evaluate_sample(topics, runs, [prel_measure("statAP")]))[0].by_topic
    assert values[0].tolist() == values[1].tolist()
    assert not values[2].any()


def test_the_command_and_the_function_agree_on_the_fixture(tmp_path: Path) -> None:
    ranks, labels = [1, 3, 4, 8, None], [1, 0, 1, 1, 1]
    chances = [0.9, 0.6, 0.5, 0.2, 0.1]
    (tmp_path / "p").write_text(
        "".join(f"1 d{i} {x} 1 {p}\n" for i, (x, p) in enumerate(zip(labels, chances, strict=True)))
    )
    docs = [f"u{place}" for place in range(1, 9)]
    for document, rank in enumerate(ranks):
        if rank:
            docs[rank - 1] = f"d{document}"
    (tmp_path / "r").write_text(run_text("r", {"1": docs}))
    report = report_of(str(tmp_path / "p"), str(tmp_path / "r"), "statAP", format="prels")
    value = report["measures"][0]["values"]["r"]
    assert value == pytest.approx(0.261503, abs=SIX_DIGITS)
    floats = [[np.inf if rank is None else rank for rank in ranks]]
    assert value == pytest.approx(statap(SampledTopic.of(floats, labels, chances))[0], abs=1e-12)


def test_method_codes_of_another_name_are_refused() -> None:
    with pytest.raises(ValueError, match="method_codes must be one of"):
        prel_topics([], "other")  # type: ignore[arg-type]  # what a caller without types may send
