"""Labels of a fallible judge and 174 gold labels on CLEF TAR 2017: to six digits, from whatever holds them."""

import numpy as np
import pandas
import pytest
import scipy
from clef import DEPTH, FOLDER, N_TOPICS, A, B, clef_fixture, run_path

import touchstone_ir as ts
from analytics.estimation.correction import correct
from analytics.estimation.samples import AuditSample
from touchstone_ir.command import main
from touchstone_ir.numbers import basis_of
from touchstone_ir.results import result_from_json
from touchstone_ir.samples import arrays_of, knowledge_of

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="CLEF_TAR names no folder with CLEF's files")
# By class means, by an earlier program: value, low, high, p; and with the topics as a sample.
CLASS_MEANS = (-0.109763, -0.174923, -0.044602, 0.000962)
CLASS_MEANS_LIKE_THESE = (-0.192508, -0.027017)


@pytest.fixture(scope="module")
def runs():
    return ts.read_run(run_path(A), name=A).vstack(ts.read_run(run_path(B), name=B))


def compared(runs, **given):
    fixture = clef_fixture()
    return ts.compare(runs, f"P@{DEPTH}", **{"labels": fixture.labels, "gold": fixture.gold} | given, of=A)


def numbers(result):
    row = result.frame.row(0, named=True)
    return [row[name] for name in ("value", "low", "high", "p", "low_other", "high_other", "p_other")]


def by_hand(fixture, after):
    """The reported number and its interval, from h alone: value, standard error and degrees of freedom."""
    w, a, seen = fixture.weight, fixture.chance, fixture.audited
    surprise = np.where(seen, (fixture.truth - after) / a, 0.0)
    certain = seen & (a == 1)
    after = np.where(certain, fixture.truth, after)
    surprise = np.where(certain, 0.0, surprise)
    value = (w * (after + surprise)).sum()
    terms = np.where(seen, w**2 * (1 - a) * surprise**2, 0.0)
    variance = terms.sum()
    spread = np.where(seen, (1 - a) * terms**2, 0.0).sum()
    return value, np.sqrt(variance), 2 * variance**2 / spread, after + surprise


def test_the_fixture_is_the_issues_own():
    fixture = clef_fixture()
    assert len(fixture.pairs) == 1130
    assert np.count_nonzero(fixture.weight) == 1060
    assert fixture.audited.sum() == 174
    assert fixture.weight @ fixture.truth == pytest.approx(-0.1, abs=1e-9)
    assert fixture.weight @ fixture.label == pytest.approx(-0.083333, abs=1e-6)


def test_class_means_give_the_numbers_of_the_issue():
    fixture = clef_fixture()
    audit = AuditSample(
        draw_probability=np.ones(len(fixture.pairs)),
        bronze_class=fixture.label,
        audited=fixture.audited,
        gold_grade=fixture.truth,
        audit_probability=np.where(fixture.chance > 0, fixture.chance, 0.5),
        n_grades=2,
    )
    found = correct(fixture.weight, audit, [0, 1])
    one = found.estimates[0]
    p = 2 * scipy.special.ndtr(-abs(one.value) / one.standard_error)
    assert (one.value, one.low, one.high, p) == pytest.approx(CLASS_MEANS, abs=1e-6)
    topic = np.unique([pair[0] for pair in fixture.pairs], return_inverse=True)[1]
    values = N_TOPICS * np.bincount(topic, fixture.weight * found.item_corrections, N_TOPICS)
    half = scipy.special.stdtrit(N_TOPICS - 1, 0.975) * values.std(ddof=1) / np.sqrt(N_TOPICS)
    assert (values.mean() - half, values.mean() + half) == pytest.approx(CLASS_MEANS_LIKE_THESE, abs=1e-6)


def test_the_reported_number_is_the_one_that_its_formula_gives_by_hand(runs):
    """The predictions are those of the product; what is made of them is written out here a second time."""
    fixture = clef_fixture()
    known = knowledge_of(fixture.labels, fixture.gold, None, None)
    arrays = arrays_of(runs, known, DEPTH, 1)
    assert list(arrays.frame.select("topic", "doc").iter_rows()) == fixture.pairs
    after = basis_of(arrays, np.array([0.0, 1.0])).gold_prediction(np.array([0.0, 1.0]), 1).after
    value, error, df, corrected = by_hand(fixture, after)
    half = scipy.special.stdtrit(df, 0.975) * error
    p = 2 * scipy.special.stdtr(df, -abs(value) / error)
    topic = np.unique([pair[0] for pair in fixture.pairs], return_inverse=True)[1]
    values = N_TOPICS * np.bincount(topic, fixture.weight * corrected, N_TOPICS)
    wide = scipy.special.stdtrit(N_TOPICS - 1, 0.975) * values.std(ddof=1) / np.sqrt(N_TOPICS)
    t = values.mean() / (values.std(ddof=1) / np.sqrt(N_TOPICS))
    expected = [value, value - half, value + half, p]
    like_these = [values.mean() - wide, values.mean() + wide, 2 * scipy.special.stdtr(N_TOPICS - 1, -abs(t))]
    assert numbers(compared(runs, claim="these-topics")) == pytest.approx([*expected, *like_these], abs=1e-9)


def test_the_corrected_number_is_nearer_to_the_truth_than_the_labels_are(runs):
    row = compared(runs).frame.row(0, named=True)
    assert row["as_given"] == pytest.approx(-0.083333, abs=1e-6)
    assert abs(row["value"] + 0.1) < abs(row["as_given"] + 0.1)
    assert row["low"] < -0.1 < row["high"]
    assert (row["n_judged"], row["verdict"]) == (1060, f"{B} is higher")


def test_files_tables_and_dicts_give_the_same_to_six_digits(runs, tmp_path, capsys):
    fixture = clef_fixture()
    expected = pytest.approx(numbers(compared(runs)), abs=1e-9)
    labels, gold = tmp_path / "labels.csv", tmp_path / "gold.csv"
    fixture.labels.write_csv(labels)
    fixture.gold.write_csv(gold)
    nested = {}
    for topic, doc, grade in fixture.labels.iter_rows():
        nested.setdefault(topic, {})[doc] = grade
    frames = {
        name: pandas.DataFrame({column: table[column].to_list() for column in table.columns})
        for name, table in (("labels", fixture.labels), ("gold", fixture.gold))
    }
    renamed = frames["labels"].rename(columns={"topic": "qid", "doc": "docno", "grade": "label"})
    columns = {name: fixture.gold[name].to_list() for name in fixture.gold.columns}
    assert numbers(compared(runs, labels=labels, gold=gold)) == expected
    assert numbers(compared(runs, **frames)) == expected
    assert numbers(compared(runs, labels=renamed, gold=columns)) == expected
    assert numbers(compared(runs, labels=nested)) == expected
    by_frame = pandas.DataFrame({name: runs[name].to_list() for name in runs.columns})
    assert numbers(compared(ts.read_run(by_frame))) == expected

    files = [str(run_path(name)) for name in (A, B)]
    asked = [
        "-m",
        f"P@{DEPTH}",
        "--labels",
        str(labels),
        "--gold",
        str(gold),
        "--output",
        "json",
        "--of",
        "es",
    ]
    code = main(["compare", *files, *asked])

    assert code == 0
    assert numbers(result_from_json(capsys.readouterr().out)) == expected
