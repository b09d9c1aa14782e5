"""experiments/goldberg_*.py: the paper's numbers come out, and a wrong formula or input is noticed."""

import json

import numpy as np
import pytest
from scipy.stats import norm

from analytics.estimation.estimate import Refusal
from experiments import goldberg_ebay, goldberg_simulation, goldberg_trec
from experiments.parts import goldberg
from experiments.parts.rows import Report, as_text, failures

PROGRAMS = {
    goldberg_ebay: ["naive", "corrected", "eq10", "shared_audit", "algorithm1", "audit", "drift", "budget"],
    goldberg_trec: ["accuracy", "corrected", "sample_size", "refusal", "right"],
    goldberg_simulation: ["means", "coverage", "every_run", "figure1", "as_printed"],
}
DRAWS = {goldberg_ebay: 20_000, goldberg_trec: 100, goldberg_simulation: 2000}


@pytest.fixture(scope="module")
def made() -> dict[object, Report]:
    return {program: program.report(DRAWS[program], 2017) for program in PROGRAMS}


def planted(report: Report) -> list[str]:
    return [sentence.split(":")[0] for sentence in failures(report)]


def value(report: Report, part: str, name: str) -> float:
    return next(line.computed for line in report[part] if line.name == name)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__.split(".")[-1])
def test_every_number_is_as_demanded_and_has_the_keys(program, made):
    assert failures(made[program]) == []
    assert list(made[program]) == PROGRAMS[program]
    assert list(program.HEADINGS) == PROGRAMS[program]
    for lines in made[program].values():
        names = [line.name for line in lines]
        assert len(names) == len(set(names))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__.split(".")[-1])
def test_the_json_holds_the_papers_number_beside_the_computed_one(program, capsys):
    assert program.main(["--json", "--draws", str(DRAWS[program])]) == 0
    read = json.loads(capsys.readouterr().out)
    assert list(read) == PROGRAMS[program]
    for lines in read.values():
        for line in lines:
            assert {"name", "paper", "computed", "expected", "ok", "note"} <= line.keys()
            assert np.isfinite(line["computed"])


def test_the_headline_of_ebay(made):
    report = made[goldberg_ebay]
    assert value(report, "naive", "p") == pytest.approx(0.011598, abs=6e-7)
    eq11 = next(line for line in report["eq10"] if line.name == "p")
    assert (eq11.paper, eq11.computed) == (0.841, pytest.approx(0.854131, abs=6e-7))
    assert value(report, "shared_audit", "p Wald") == pytest.approx(0.017125, abs=6e-7)
    assert value(report, "shared_audit", "p score, Fieller") == pytest.approx(0.011590, abs=6e-7)
    interval = [value(report, "shared_audit", f"95 % {end}, Fieller") for end in ("low", "high")]
    assert interval == pytest.approx([-0.045979, -0.005254], abs=6e-7)


def test_the_headline_of_trec_and_the_refusal_beside_it(made):
    report = made[goldberg_trec]
    assert value(report, "sample_size", "queries") == 569_154
    assert value(report, "sample_size", "gold relevant") == 23_027_371
    refusal = next(line for line in report["refusal"] if line.name == "refused, YORK07ED4")
    assert refusal.computed == 1
    assert "j = 0.513 lies above the sensitivity" in refusal.note
    assert value(report, "right", "topics a run, unpaired, no gold") == pytest.approx(2450, abs=0.5)


def test_the_text_has_every_row(made):
    text = as_text(goldberg_trec.HEADINGS, made[goldberg_trec], significant=9)
    assert all(line.name in text for lines in made[goldberg_trec].values() for line in lines)
    queries = next(line for line in text.splitlines() if line.startswith("queries  "))
    assert queries.split()[1:4] == ["569154", "569154", "ok:"]


def test_the_same_seed_gives_the_same_numbers_and_another_others():
    first, again = (goldberg_simulation.report(300, 1) for _ in range(2))
    assert first == again
    other = goldberg_simulation.report(300, 2)
    assert value(first, "means", "naive P@10") != value(other, "means", "naive P@10")


def test_the_exact_chance_of_a_run_at_or_below_the_truth_is_that_of_the_characteristic_function():
    exact, normal = goldberg_simulation.not_above_truth()
    label = goldberg_simulation.RELEVANT_SHARE * 0.9 + (1 - goldberg_simulation.RELEVANT_SHARE) * 0.2
    turns = np.exp(-2j * np.pi * np.arange(501) / 501)
    masses = np.fft.ifft(np.prod(1 - label + label * turns[:, None], axis=1) ** 50).real
    assert exact == pytest.approx(masses[:201].sum(), rel=1e-9)
    spread = np.sqrt(50 * (label * (1 - label)).sum()) / 500
    assert normal == pytest.approx(norm.sf((label.mean() - 0.4) / spread), rel=1e-9)


# -- what is wrong is noticed -------------------------------------------------------------------------------


def test_another_number_of_queries_is_noticed(monkeypatch):
    monkeypatch.setattr(goldberg_ebay, "EBAY_TOPICS", (10278, 20654))
    monkeypatch.setattr(goldberg_ebay, "EBAY_VARIANCES", (0.414**2 / 10278, 0.402**2 / 20654))
    wrong = planted(goldberg_ebay.report(1000, 1))
    assert {"naive, t", "naive, p", "shared_audit, p score, Fieller"} <= set(wrong)


def test_leaving_out_the_covariance_is_noticed(monkeypatch):
    right = goldberg_ebay.shared_audit_difference

    def as_if_separate(j, variance, *rates):
        return right(j, 4 * variance, *rates)

    monkeypatch.setattr(goldberg_ebay, "shared_audit_difference", as_if_separate)
    wrong = planted(goldberg_ebay.report(1000, 1))
    assert "shared_audit, SE" in wrong
    assert "shared_audit, p Wald" in wrong
    assert not any(name.startswith("naive") for name in wrong)


def test_other_hidden_deviations_are_noticed(monkeypatch):
    monkeypatch.setattr(goldberg_trec, "TREC_SPREADS", (0.24, 0.26))
    assert {"sample_size, queries", "sample_size, gold relevant"} <= set(
        planted(goldberg_trec.report(100, 1))
    )


def test_a_product_that_does_not_refuse_is_noticed(monkeypatch):
    right = goldberg_trec.corrected_interval
    monkeypatch.setattr(goldberg_trec, "corrected_interval", lambda *given: right(*given, refuse=False))
    monkeypatch.setattr(goldberg_trec, "audit_refusal", lambda *given: None)
    assert planted(goldberg_trec.report(100, 1)) == [
        "refusal, refused, YORK07ED4",
        "refusal, refused, the difference by one matrix",
    ]
    assert goldberg.refused("x", Refusal("why")).ok


def test_judges_without_errors_are_noticed(monkeypatch):
    monkeypatch.setattr(goldberg_simulation, "SENSITIVITY", 0.95)
    wrong = planted(goldberg_simulation.report(500, 1))
    assert "means, naive P@10" in wrong


def test_the_program_says_what_was_not_reproduced_and_fails(monkeypatch, capsys):
    monkeypatch.setattr(goldberg_trec, "TREC_SPREADS", (0.24, 0.26))
    assert goldberg_trec.main([]) == 1
    assert "not reproduced: sample_size, queries" in capsys.readouterr().err


def test_too_few_draws_are_refused(capsys):
    with pytest.raises(SystemExit):
        goldberg_simulation.main(["--draws", "5"])
    assert "draws must be at least 100" in capsys.readouterr().err
