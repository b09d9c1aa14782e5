"""verify.py of a release: finds everything right that is, and everything wrong that was made wrong."""

import ast
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from small_release import SEEDS, change_lines, made_once, unpacked

from analytics.releases.verify import merkle_root, verify
from analytics.releases.verify_estimates import poisson
from analytics.releases.verify_measures import grade_gains, rank_weights
from analytics.releases.verify_quantiles import beta_quantile, t_quantile, t_tail
from sampling.measures.families import grade_gains as gains_of_measure
from sampling.measures.families import rank_weights as weights_of_measure
from sampling.measures.registry import parse_linear

SCRIPTS = sorted((Path(__file__).parents[3] / "analytics" / "releases").glob("verify*.py"))
KINDS = {
    "drawn in part": {},
    "an exact count of every topic": {"selection": "pareto"},
    "two batches": {"budget": 24, "top_up": 34, "audited": 26},
    "drawn with replacement": {"selection": "replacement", "kind": "pair", "budget": 30, "audited": 20},
    "drawn with replacement in two batches": {
        "selection": "replacement",
        "kind": "pair",
        "budget": 22,
        "top_up": 32,
        "audited": 20,
    },
    "drawn for a pair": {"kind": "pair", "budget": 30},
    "everything drawn and audited": {"budget": 42, "audited": 42},
    "no audit": {"audited": 0},
    "few audited": {"audited": 11},
    "some items judged once where two are wanted": {"unfinished": 3, "audited": 20},
    "judged by gold judges": {"tier": "gold", "audited": 0},
    "judged by gold judges in two batches": {"tier": "gold", "budget": 24, "top_up": 34, "audited": 0},
    "judged by gold judges, with replacement": {
        "tier": "gold",
        "selection": "replacement",
        "kind": "pair",
        "budget": 30,
        "audited": 0,
    },
    "no gold answers": {"gold": False, "checks": 0.0},
    "majority, without gold": {"aggregation": "majority", "prefers_gold": False},
    "supermajority": {
        "aggregation": "supermajority",
        "bronze_score": "supermajority",
        "relevant_grade": 2,
        "prefers_gold": False,
    },
}


@pytest.fixture
def release(db, tmp_path):
    return unpacked(made_once(), tmp_path)


def run_verify(folder, *arguments):
    command = [sys.executable, str(folder / "verify.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=folder.parent)


# -- what is right -----------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("kind", KINDS)
def test_every_number_of_a_release_is_found_again(kind, tmp_path):
    folder = unpacked(made_once(**KINDS[kind]), tmp_path)
    report = verify(folder)
    assert report.different == []
    assert report.same["numbers of estimates"] + report.same["refusals"] >= 150
    assert report.same["chances"] >= 24
    assert report.same["lines of qrels.txt"] >= 24
    told = json.loads((folder / "estimates.json").read_text())
    left_out = {("matrix-inverse", name) for name in told["measures"]}
    refused = [row for row in told["estimates"] if row["value"] is None]
    checked = [row for row in refused if (row["method"], row["measure"]) not in left_out]
    assert report.same["refusals"] == len(checked)
    assert set(report.not_recomputed) <= {"estimates by matrix-inverse", "matrices by period"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    "kind",
    ["drawn in part", "two batches", "few audited", "everything drawn and audited", "judged by gold judges"],
)
def test_ratios_are_found_again_with_the_seed_of_their_bootstrap_and_not_with_another(kind, tmp_path):
    content = made_once(**KINDS[kind])
    folder = unpacked(content, tmp_path)
    change_lines(folder, "estimates.json", lambda estimates: estimates.update(seed=SEEDS[content]))
    right = verify(folder)
    assert right.different == []
    assert not any(f"{name}@10" in reason for name in ("nDCG", "AP", "R") for reason in right.not_recomputed)
    change_lines(folder, "estimates.json", lambda estimates: estimates.update(seed=SEEDS[content] + 1))
    wrong = verify(folder).different
    ratios = tuple(f"estimates.json {name}@10" for name in ("nDCG", "AP", "R"))
    assert all(words.startswith(ratios) for words in wrong)
    if kind == "everything drawn and audited":  # nothing is drawn at random: the judges' grades alone differ
        assert wrong == []
    else:
        assert len(wrong) > 20


def test_a_changed_ratio_is_found_although_all_hashes_were_repaired(release):
    def change(estimates):
        estimates["seed"] = SEEDS[made_once()]
        row = next(
            r for r in estimates["estimates"] if (r["measure"], r["method"]) == ("nDCG@10", "corrected")
        )
        row["high"] *= 1 + 1e-6

    change_lines(release, "estimates.json", change)
    told = verify(release).different
    assert len(told) == 1
    assert told[0].startswith("estimates.json nDCG@10 corrected run0 high: recorded")


def test_what_is_not_computed_again_is_told_and_not_counted_as_right(db, tmp_path):
    report = verify(unpacked(made_once(hidden=("run1",)), tmp_path))
    told = dict(report.not_recomputed)
    assert "estimates of runs that are not in the release" not in told  # there are none of unpublished runs
    assert any("matrix-inverse" in reason for reason in told)
    assert report.different == []
    whole = verify(unpacked(made_once(), tmp_path / "whole"))
    assert whole.same["numbers of estimates"] > report.same["numbers of estimates"]


def test_a_measure_that_the_verifier_does_not_know_is_told_and_not_taken_for_one_that_begins_alike(release):
    def rename(told):
        told["measures"]["Pleasure@10"] = {**told["measures"].pop("P@10"), "family": "Pleasure"}
        for row in told["estimates"]:
            if row["measure"] == "P@10":
                row["measure"] = "Pleasure@10"

    def rename_compared(told):
        for row in told["comparisons"]:
            row["measure"] = "Pleasure@10" if row["measure"] == "P@10" else row["measure"]

    change_lines(release, "estimates.json", rename)
    change_lines(release, "comparisons.json", rename_compared)
    report = verify(release)
    assert report.different == []
    # three runs and three pairs, by two methods at least
    assert report.not_recomputed["estimates of Pleasure@10, which this verifier does not know"] >= 12


def test_the_script_alone_says_so_and_leaves_nothing_behind(release):
    before = sorted(release.rglob("*"))
    found = run_verify(release)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.endswith("ok: everything that was compared is the same\n")
    assert "estimates by matrix-inverse" in found.stdout
    assert sorted(release.rglob("*")) == before
    told = json.loads(run_verify(release, "--json").stdout)
    assert told["different"] == []
    assert told["same"]["Merkle root of judgments.jsonl"] == 1


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_the_scripts_need_numpy_and_the_standard_library_alone(path):
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module).split(".")[0])
    beside = {script.stem for script in SCRIPTS} | {
        "analytics"
    }  # the package, when it is not run as a script
    assert names - beside - set(sys.stdlib_module_names) <= {"numpy"}
    assert len(SCRIPTS) == 18


# -- what is wrong -----------------------------------------------------------------------------------------------


def test_a_flipped_byte_of_any_file_is_found(release):
    found = {}
    for path in sorted(path for path in release.rglob("*") if path.is_file()):
        name, content = path.relative_to(release).as_posix(), path.read_bytes()
        if name == "manifest.json" or not content:
            continue
        place = len(content) // 2
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        found[name] = run_files_alone(release)
        path.write_bytes(content)
    assert len(found) >= 30
    assert all(any(words.startswith(f"{name}:") for words in told) for name, told in found.items())
    assert run_files_alone(release) == []


def run_files_alone(folder):
    from analytics.releases.verify import Report, check_files

    report = Report()
    check_files(folder, json.loads((folder / "manifest.json").read_text("utf-8")), report)
    return report.different


def test_a_flipped_byte_ends_the_script_with_1_and_names_the_file(release):
    path = release / "qrels.txt"
    path.write_bytes(path.read_bytes().replace(b" 1\n", b" 2\n", 1))
    found = run_verify(release)
    assert found.returncode == 1
    assert "DIFFERENT  qrels.txt: recorded" in found.stdout
    assert found.stdout.endswith("NOT what it says\n")


def test_a_file_that_was_added_or_removed_is_found(release):
    (release / "extra.txt").write_text("hello")
    (release / "LICENSE.txt").unlink()
    assert run_files_alone(release) == ["extra.txt: not in manifest.json", "LICENSE.txt: missing"]


def estimate_of(estimates, method, pair):
    rows = estimates["estimates"]
    return next(
        r
        for r in rows
        if (r["measure"], r["method"], r["run_b"] is not None) == ("P@10", method, pair) and r["value"]
    )


@pytest.mark.parametrize("method", ["naive", "corrected", "true"])
@pytest.mark.parametrize(
    "field", ["value", "standard_error", "low", "high", "topics_low", "always_high", "p_value"]
)
def test_a_changed_number_of_an_estimate_is_found_although_all_hashes_were_repaired(release, method, field):
    pair = field == "p_value"

    def change(estimates):
        row = estimate_of(estimates, method, pair)
        row[field] = 0.5 if row[field] in (None, 0) else row[field] * (1 + 1e-6)

    change_lines(release, "estimates.json", change)
    assert run_files_alone(release) == []
    told = [words for words in verify(release).different if not words.startswith("comparisons.json")]
    assert len(told) == 1
    assert told[0].startswith(f"estimates.json P@10 {method} run")
    assert f" {field}: recorded" in told[0]


def test_changed_degrees_components_and_refusals_are_found(release):
    def change(estimates):
        rows = [r for r in estimates["estimates"] if (r["measure"], r["method"]) == ("DCG@10", "corrected")]
        rows[0]["components"]["gold"] *= 1.001
        rows[1]["degrees_of_freedom"] += 1
        rows[2]["n"] += 1
        rows[3]["value"] = None

    change_lines(release, "estimates.json", change)
    told = [words.split(":")[0].split()[-1] for words in verify(release).different]
    assert told[:3] == ["gold", "degrees_of_freedom", "n"]
    assert len(told) == 4


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("items.jsonl", lambda rows: rows[0].update(grade=3 - rows[0]["grade"]), "grade"),
        ("items.jsonl", lambda rows: first_judged(rows).update(chance_judged=0.5), "chance_judged"),
        ("items.jsonl", lambda rows: first_judged(rows).update(bronze_class=7), "bronze_class"),
        ("confusion.json", lambda rows: rows[0]["matrix"][0].__setitem__(0, 0.123), "matrix"),
        ("confusion.json", lambda rows: rows[0]["high"][0].__setitem__(0, 0.9), "high"),
        ("confusion.json", lambda rows: rows[0].update(accuracy_low=0.1), "accuracy_low"),
        ("confusion.json", lambda rows: rows[0]["counts"][0].__setitem__(0, 99.0), "counts"),
        ("confusion.json", lambda rows: rows[0].update(n_audited=99), "n_audited"),
    ],
)  # fmt: skip
def test_a_changed_fact_or_matrix_is_found_although_all_hashes_were_repaired(release, name, change, expected):
    change_lines(release, name, change)
    told = verify(release).different
    assert any(words.startswith(f"{name} ") and f"{expected}: recorded" in words for words in told)


def first_judged(rows):
    return next(row for row in rows if row["judged"])


def test_a_changed_judgment_moves_the_numbers_that_rest_on_it(release):
    def change(rows):
        row = next(row for row in rows if row["label"] and row["grade"] == 0)
        row["grade"] = 3

    change_lines(release, "judgments.jsonl", change)
    assert run_files_alone(release) == []
    told = verify(release).different
    assert any(" naive " in words for words in told)
    assert any(words.startswith("qrels_jg.txt line") for words in told)


def test_a_removed_judgment_is_found(release):
    change_lines(
        release, "judgments.jsonl", lambda rows: rows.remove(next(row for row in rows if row["counted"]))
    )
    assert any(words.startswith("qrels_jg.txt line") for words in verify(release).different)


@pytest.mark.parametrize("name", ["estimates.json", "items.jsonl", "manifest.json", "runs/0001.run.gz"])
def test_a_release_that_cannot_be_read_is_an_answer_and_no_traceback(release, name):
    (release / name).write_bytes(b"{")
    found = run_verify(release)
    assert (found.returncode, found.stderr) == (1, "")
    assert "the release cannot be read" in found.stdout


# -- the parts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("df", [1.0, 1.5, 2, 9, 18.25, 57.3, 99, 480, 9999, 54321.5, 3e6])
@pytest.mark.parametrize("tail", [0.2, 0.025, 1e-3, 1.2e-5])
def test_quantiles_and_tails_of_t_are_those_of_scipy(df, tail):
    quantile = -stats.t.ppf(tail, df)
    assert t_quantile(df, tail) == pytest.approx(quantile, rel=1e-10)
    assert t_tail(df, quantile) == pytest.approx(tail, rel=1e-8 if df > 1e5 else 1e-10)


def test_far_tails_of_t_and_of_the_normal_are_those_of_scipy():
    assert t_quantile(19.0, 1e-130) == pytest.approx(-stats.t.ppf(1e-130, 19), rel=1e-10)
    assert t_quantile(float("inf"), 0.01) == pytest.approx(-stats.norm.ppf(0.01), rel=1e-12)
    assert t_tail(float("inf"), 12.5) == pytest.approx(stats.norm.sf(12.5), rel=1e-12)


@pytest.mark.parametrize(
    ("a", "b"), [(0.5, 10.5), (1.5, 0.5), (7.25, 2.125), (0.51, 300.2), (900.5, 4.5), (2e4, 3e4)]
)
@pytest.mark.parametrize("share", [0.025, 0.5, 0.975])
def test_quantiles_of_beta_are_those_of_scipy(a, b, share):
    assert beta_quantile(share, a, b) == pytest.approx(stats.beta.ppf(share, a, b), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    "name", ["P@7", "P(rel=2)@10", "Gain@5", "DCG@10", "DCG(dcg='ln')@8", "RBP@20", "RBP(p=0.5,rel=2)@12"]
)
def test_weights_of_ranks_are_those_of_the_measures(name):
    parsed = parse_linear(name)
    expected = weights_of_measure(parsed, parsed.cutoff)
    assert rank_weights(parsed.name) == pytest.approx(expected, rel=1e-14)
    scale = np.array([0.0, 1.0, 3.0])
    assert grade_gains(parsed.name, scale, 1).tolist() == gains_of_measure(parsed, scale, 1).tolist()


def test_the_variance_of_a_poisson_draw_by_hand():
    # two pairs, drawn with .5 and .25: (1 - .5) 2^2 + (1 - .25) 4^2 = 14; spread .5 2^2 + .75 12^2 = 110
    variance, df = poisson(np.array([2.0, 4.0]), np.array([0.5, 0.25]))
    assert variance == pytest.approx(14.0)
    assert df == pytest.approx(2 * 14.0**2 / 110)


def test_the_merkle_root_is_that_of_the_definition():
    def node(lines):
        if len(lines) == 1:
            return hashlib.sha256(b"\x00" + lines[0]).digest()
        left = 1
        while left * 2 < len(lines):
            left *= 2
        return hashlib.sha256(b"\x01" + node(lines[:left]) + node(lines[left:])).digest()

    for n in (1, 2, 3, 5, 8, 13):
        lines = [f"line {number}".encode() for number in range(n)]
        assert merkle_root(lines) == node(lines).hex()
    assert merkle_root([]) == hashlib.sha256(b"").hexdigest()
