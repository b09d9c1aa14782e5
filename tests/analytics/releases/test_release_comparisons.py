"""The comparisons of a release: its verifier finds every p again, and `evaluate --against` gives the same numbers."""

import gzip
import json

import pytest
from django.core.management import CommandError, call_command
from release_runs import new_run, write_run
from small_release import change_lines, judged_campaign, made_once, release_of, unpacked

from analytics.estimation.claims import CLAIMS
from analytics.estimation.comparison import holm
from analytics.estimation.wording import sentence
from analytics.releases.verify import verify
from analytics.releases.verify_claims import holm as holm_again
from analytics.releases.verify_claims import like_these
from analytics.services.comparisons import Comparisons
from analytics.services.families import asked_family
from analytics.services.recomputation import recompute

pytestmark = pytest.mark.django_db


@pytest.fixture
def release(tmp_path):
    return unpacked(made_once(), tmp_path)


def told_by(folder, *arguments, capsys):
    call_command("evaluate", str(folder), *arguments, "--output", "json")
    return json.loads(capsys.readouterr().out)


def test_every_pair_of_the_family_has_both_claims_and_the_verifier_finds_each_p_again(release):
    told = json.loads((release / "comparisons.json").read_text())
    estimates = json.loads((release / "estimates.json").read_text())
    assert estimates["claims"] == ["topics-like-these", "these-topics"]
    assert told["family"]["name"] == "question"
    assert told["adjustment"] == "holm"
    rows = [row for row in told["comparisons"] if row["measure"] == "DCG@10"]
    assert len(rows) == 3
    for claim in ("topics-like-these", "these-topics"):
        p = [row[claim]["p"] for row in rows]
        assert [row[claim]["p_adjusted"] for row in rows] == pytest.approx(holm(p).tolist(), rel=1e-12)
    report = verify(release)
    assert report.different == []
    assert report.same["comparisons"] >= 4 * len(told["comparisons"])


def test_one_changed_adjusted_p_is_found(release):
    def change(told):
        told["comparisons"][0]["topics-like-these"]["p_adjusted"] *= 1 + 1e-6

    change_lines(release, "comparisons.json", change)
    [words] = verify(release).different
    assert words.startswith("comparisons.json ")
    assert "topics-like-these" in words
    assert "p_adjusted: recorded" in words


def test_a_comparison_that_was_taken_out_is_missed(release):
    change_lines(release, "comparisons.json", lambda told: told["comparisons"].pop())
    assert any("comparisons.json pairs" in words for words in verify(release).different)


def test_the_verifiers_own_forms():
    p = [0.01, 0.04, 0.03, 0.5]
    assert holm_again(p) == pytest.approx(holm(p).tolist(), rel=1e-15)
    row = {
        "low": 0.0, "high": 1.0, "standard_error": 0.25, "degrees_of_freedom": None, "n": 60, "p_value": 0.05,
        "over_topics": (0.5, 0.01, 30),
    }  # fmt: skip
    found = like_these(row, is_older=False)
    assert (found["topics_standard_error"], found["topics_degrees_of_freedom"]) == (0.25, None)
    assert (found["topics_low"], found["topics_high"], found["topics_p_value"]) == (0.0, 1.0, 0.05)
    assert "topics_p_value" not in like_these(row, is_older=True)


@pytest.mark.parametrize("claim", ["topics-like-these", "these-topics"])
def test_a_run_of_the_release_against_another_one_equals_the_release(claim, release, capsys):
    told = told_by(release, "run0", "DCG@10", "P@10", "--against", "run2", "--claim", claim, capsys=capsys)
    rows = {
        row["measure"]: row
        for row in json.loads((release / "estimates.json").read_text())["estimates"]
        if (row["method"], row["run"], row["run_b"]) == ("corrected", "run0", "run2")
    }
    recorded = json.loads((release / "comparisons.json").read_text())["comparisons"]
    adjusted = {row["measure"]: row for row in recorded if (row["run"], row["run_b"]) == ("run0", "run2")}
    assert [one["measure"] for one in told["comparisons"]] == ["DCG@10", "P@10"]
    for one in told["comparisons"]:
        row = rows[one["measure"]]
        sides = {one["claim"]: one, one["other"]["claim"]: one["other"]}
        assert one["claim"] == claim
        assert one["value"] == pytest.approx(row["value"], rel=1e-9)
        for key, prefix in (("these-topics", ""), ("topics-like-these", "topics_")):
            side = sides[key]
            assert side["low"] == pytest.approx(row[f"{prefix}low"], rel=1e-9)
            assert side["high"] == pytest.approx(row[f"{prefix}high"], rel=1e-9)
            assert side["p"] == pytest.approx(row[f"{prefix}p_value"], rel=1e-9)
            assert side["degrees_of_freedom"] == pytest.approx(row[f"{prefix}degrees_of_freedom"], rel=1e-9)
            assert side["p_adjusted"] == adjusted[one["measure"]][key]["p_adjusted"]
        tested = [row for row in recorded if row["measure"] == one["measure"] and row[claim]["p"] is not None]
        assert (one["family"], one["n_family"]) == ("question", len(tested))
        assert ("higher" in one["verdict"]) == one["significant"]


def test_files_are_compared_in_a_family_of_the_runs_that_are_named(release, tmp_path, capsys):
    mine = write_run(tmp_path / "mine.run", new_run())
    told = told_by(
        release,
        str(mine),
        "DCG@10",
        "--against",
        "run1",
        "--against",
        "run2",
        "--family",
        "all",
        capsys=capsys,
    )
    found = told["comparisons"]
    assert [one["against"] for one in found] == ["run1", "run2"]
    assert {one["n_family"] for one in found} == {3}
    assert all(one["p"] <= one["p_adjusted"] <= 1 for one in found)
    # in the declared family a run of one's own is not adjusted
    alone = told_by(release, str(mine), "DCG@10", "--against", "run1", capsys=capsys)["comparisons"][0]
    assert (alone["p_adjusted"], alone["significant"]) == (None, False)
    assert "is not among the declared comparisons" in alone["verdict"]
    call_command("evaluate", str(release), str(mine), "DCG@10", "--against", "run1")
    text = capsys.readouterr().out
    assert text.splitlines()[0].split()[:3] == ["measure", "run", "against"]
    assert alone["verdict"] in text


def test_a_file_with_the_name_of_a_run_has_its_adjusted_p_only_where_it_is_that_run(
    release, tmp_path, capsys
):
    with gzip.open(release / "runs" / "0001.run.gz", "rt") as published:
        lines = published.read().splitlines()
    tag = lines[0].split()[5]
    others = [run for run in ("run0", "run1", "run2") if run != tag]
    same, other = tmp_path / "same.run", tmp_path / "other.run"
    same.write_text("\n".join(lines) + "\n")
    swapped = [line.split() for line in lines]
    for fields in swapped:
        fields[4] = str(-float(fields[4]))  # the last document becomes the first one
    other.write_text("".join(" ".join(fields) + "\n" for fields in swapped))
    asked = ("DCG@10", "--against", others[0])
    by_name = told_by(release, tag, *asked, capsys=capsys)["comparisons"][0]
    by_file = told_by(release, str(same), *asked, capsys=capsys)["comparisons"][0]
    assert by_name["p_adjusted"] is not None
    assert by_file == by_name
    changed = told_by(release, str(other), *asked, capsys=capsys)["comparisons"][0]
    assert changed["run"] == tag
    assert changed["p"] != pytest.approx(by_name["p"], rel=1e-3)
    assert (changed["p_adjusted"], changed["other"]["p_adjusted"], changed["significant"]) == (
        None,
        None,
        False,
    )
    assert "is not among the declared comparisons" in changed["verdict"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run0", "DCG@10", "--against", "run0"], "a run against itself is no comparison"),
        (["DCG@10", "P@10", "--against", "run0"], "name at least one run"),
        (["run0", "DCG@10", "--against", "run1", "--family", "runs:run0,nobody"], "names the run nobody"),
        (["run0", "DCG@10", "--against", "run1", "--family", "best"], "family must be"),
        (["run0", "DCG@10", "--against", "nobody"], "nobody"),
        (["run0", "DCG@10", "--claim", "these-topics"], "name a run with --against"),
        (["run0", "DCG@10", "--family", "all"], "name a run with --against"),
        (["run0", "P@10", "--against", "run1", "--format", "prels"], "leave out --format"),
    ],
)
def test_what_cannot_be_compared_is_refused_by_name(arguments, words, release):
    with pytest.raises(CommandError, match=words):
        call_command("evaluate", str(release), *arguments)


def test_every_pair_has_offline_the_numbers_of_the_page_for_both_claims(tmp_path, capsys):
    """With nearly every document audited some differences are exact: what rounding leaves of 0 is no difference."""
    made = judged_campaign(tmp_path, budget=42, audited=40)
    computed = recompute(campaign=made)
    folder = unpacked(release_of(made), tmp_path)
    n_exact = 0
    for measure in ("DCG@10", "P@10", "nDCG@10", "AP@10"):
        rows = computed.estimates.filter(measure=measure, method="corrected", run_b__isnull=False)
        for claim in CLAIMS:
            among = Comparisons(computed, measure, asked_family(made), claim)
            for row in rows.select_related("run", "run_b"):
                runs = row.run.run_id, row.run_b.run_id
                arguments = (runs[0], measure, "--against", runs[1], "--claim", claim.key)
                [told] = told_by(folder, *arguments, capsys=capsys)["comparisons"]
                page = among.of(row)
                where = (measure, claim.key, *runs)
                for name in ("low", "high", "t", "degrees_of_freedom", "p", "p_adjusted", "effect_size"):
                    for side, test in ((told, page.test), (told["other"], page.other)):
                        assert side[name] == near(getattr(test, name)), (*where, name)
                assert told["significant"] == page.test.significant, where
                assert told["n_family"] == page.n_family, where
                assert sentence(page).startswith(told["verdict"]), where
                n_exact += row.standard_error == 0 and row.value == 0
    assert n_exact > 0


def near(number):
    return number if number is None else pytest.approx(number, rel=1e-6, abs=1e-9)
