"""The sentences about a difference: their exact words, and that nothing is called higher without significance."""

import re
from dataclasses import replace

import numpy as np
import pytest

from analytics.estimation import claims, wording
from analytics.estimation.claims import LIKE_THESE, THESE, Family, claim_of, family_of, other_claim
from analytics.estimation.wording import ClaimTest, PairComparison, p_words, sentence
from analytics.latex import latex_sentence

LIKE = ClaimTest(
    LIKE_THESE,
    low=0.109344,
    high=1.535043,
    p=0.024777,
    p_adjusted=0.024777,
    t=2.324503,
    degrees_of_freedom=44.0,
    effect_size=0.349883,
)
HERE = ClaimTest(THESE, low=0.726, high=0.918, p=2.6e-63, p_adjusted=2.6e-63)
PAIR = PairComparison("A", "B", "DCG@10", 0.822193, LIKE, HERE, n_topics=45, n_items=620)


def test_a_significant_difference_in_the_words_of_the_field():
    assert sentence(PAIR) == (
        "A has a higher DCG@10 than B: mean difference +0.822 (95 % confidence interval 0.109 to 1.535; paired t-test "
        "over 45 topics, t(44) = 2.32, p = .025), significant at .05; standardised mean difference 0.35. For these 45 "
        "topics alone: 0.726 to 0.918, p < .001."
    )


def test_among_28_declared_comparisons_it_is_not_significant():
    pair = replace(PAIR, test=replace(LIKE, p_adjusted=0.371655), n_family=28)
    assert sentence(pair) == (
        "The difference in DCG@10 between A and B, +0.822 (95 % confidence interval 0.109 to 1.535; paired t-test "
        "over 45 topics, t(44) = 2.32, p = .025), is not significant at .05 among 28 declared comparisons (p = .37 "
        "adjusted by Holm). For these 45 topics alone: 0.726 to 0.918, p < .001."
    )


def test_for_these_topics_the_other_claim_stands_beside_it():
    pair = replace(PAIR, test=HERE, other=LIKE, n_family=28)
    assert sentence(pair) == (
        "A has a higher DCG@10 than B: mean difference +0.822 (95 % confidence interval 0.726 to 0.918; these 45 "
        "topics alone, p < .001, n = 620 audited items), significant at .05 among 28 declared comparisons (p < .001 "
        "adjusted by Holm). For topics like these: 0.109 to 1.535, p = .025."
    )


def test_where_the_judging_limits_what_is_known_there_is_no_t():
    limited = replace(LIKE, t=None, effect_size=None)
    words = sentence(replace(PAIR, test=limited))
    assert "limited by the judging, not by the topics, p = .025), significant at .05. For these" in words
    assert "t(" not in words


def test_the_higher_run_comes_first_with_all_numbers_turned():
    words = sentence(
        replace(
            PAIR,
            value=-0.822193,
            test=replace(LIKE, low=-1.535043, high=-0.109344, t=-2.324503, effect_size=-0.349883),
            other=replace(HERE, low=-0.918, high=-0.726),
        )
    )
    assert words == sentence(replace(PAIR, run="B", run_b="A"))


def test_a_comparison_outside_the_family_is_not_called_significant_however_small_its_p():
    words = sentence(replace(PAIR, test=replace(LIKE, p=1e-9, p_adjusted=None), n_family=28))
    assert "p < .001), is not among the declared comparisons: its p is not adjusted. For these" in words
    assert "higher" not in words


def test_refusals_and_equal_runs_stand_where_the_number_would():
    assert sentence(replace(PAIR, value=None, refusal="no audit")) == "No corrected number: no audit."
    assert sentence(replace(PAIR, same="the two runs are the same inside the cutoff")) == (
        "A and B do not differ in DCG@10: the two runs are the same inside the cutoff."
    )
    none = ClaimTest(LIKE_THESE, refusal="1 topic says nothing about others")
    assert sentence(replace(PAIR, test=none)) == (
        "The difference in DCG@10 between A and B is +0.822; for topics like these there is no number: 1 topic says "
        "nothing about others. For these 45 topics alone: 0.726 to 0.918, p < .001."
    )
    exact = replace(HERE, low=0.822, high=0.822, p=0.0)
    assert sentence(replace(PAIR, other=exact)).endswith("For these 45 topics alone: exactly 0.822.")


def test_notes_follow_as_sentences_and_max_t_is_named():
    noted = replace(PAIR, notes=("only 24 topics: t is approximate",), n_family=3, adjustment="max-t")
    words = sentence(noted)
    assert words.endswith("p < .001. Only 24 topics: t is approximate.")
    assert "3 declared comparisons (p = .025 adjusted by step-down max-t with random signs)" in words


def said(rng):
    """Return a random pair, every number of it at random."""

    def one(claim):
        low, width = rng.normal(), abs(rng.normal())
        p = float(rng.choice([rng.random(), 0.05, 0.0499999, 0.0500001, 0.0, 1.0]))
        adjusted = None if rng.random() < 0.2 else min(1.0, p * int(rng.integers(1, 5)))
        t = None if rng.random() < 0.5 else rng.normal()
        return ClaimTest(claim, low, low + width, p, adjusted, t, 44.0 if t else None, rng.normal())

    main = LIKE_THESE if rng.random() < 0.5 else THESE
    return PairComparison(
        "A", "B", "P@5", rng.normal(), one(main), one(other_claim(main)), n_family=int(rng.integers(1, 40))
    )


def test_of_many_random_pairs_none_is_called_higher_or_better_with_an_adjusted_p_of_the_level_or_more(
    monkeypatch,
):
    rng, words = np.random.default_rng(8), re.compile(r"\b(higher|better|significant at \.05(?! among))\b")
    pairs = [said(rng) for _ in range(2000)]
    n_higher = 0
    for pair in pairs:
        text = sentence(pair)
        is_sure = pair.test.p_adjusted is not None and pair.test.p_adjusted < 0.05
        assert ("higher" in text) == is_sure
        assert "better" not in text
        n_higher += is_sure
    assert 200 < n_higher < 1500
    # the control: a looser level says higher where the adjusted p is larger
    monkeypatch.setattr(wording, "LEVEL", 0.2)
    assert any("higher" in sentence(pair) and pair.test.p_adjusted >= 0.05 for pair in pairs)
    assert words.search("a higher value")


def test_p_at_the_level_keeps_its_side():
    assert p_words(0.0499) == "p = .0499"
    assert p_words(0.0501) == "p = .0501"
    assert p_words(0.05) == "p = .0500"
    assert p_words(0.04999999) == "p < .05"


def test_latex_escapes_names_and_sets_statistics_as_formulas():
    assert latex_sentence("run_a & b{1}: p = .0499, n = 1,620; 95 %") == (
        r"run\_a \& b\{1\}: $p = .0499$, $n = 1{,}620$; 95 \%"
    )


def test_latex_sets_signs_of_numbers_as_minus_and_leaves_names_alone():
    pair = replace(PAIR, run="a-2|b", test=replace(LIKE, low=-0.109344, p_adjusted=0.37))
    written = latex_sentence(sentence(pair))
    assert r"between a-2\textbar{}b and B, $+0.822$ (95 \% confidence interval $-0.109$ to 1.535;" in written
    assert latex_sentence("x--y, bm25-1 and 5-3 of -0.5.") == "x-{}-y, bm25-1 and 5-3 of $-0.5$."


# -- claims and families ------------------------------------------------------------------------------------------


def test_the_first_claim_is_the_default_and_an_unknown_one_is_named():
    assert [claim.key for claim in claims.CLAIMS] == ["topics-like-these", "these-topics"]
    assert claim_of("these-topics") is THESE
    assert other_claim(THESE) is LIKE_THESE
    with pytest.raises(ValueError, match="claim must be topics-like-these or these-topics, got all"):
        claim_of("all")


def test_families_have_the_pairs_that_their_names_say():
    runs = ["a", "b", "c", "d"]
    assert len(family_of("all", runs).pairs) == 6
    against = family_of("baseline:b", runs)
    assert against.pairs == {frozenset("ab"), frozenset("bc"), frozenset("bd")}
    some = family_of("runs:a,c,d", runs)
    assert len(some.pairs) == 3
    assert ("d", "a") in some
    assert ("a", "b") not in some
    assert Family("question", ()).pairs == frozenset()


def test_a_run_whose_name_holds_commas_counts_as_a_whole():
    runs = ["bm25", "bm25,k=1", "bm25,k=1,b=0", "rm3"]
    assert family_of("runs:bm25,k=1,rm3", runs).runs == ("bm25,k=1", "rm3")
    assert family_of("runs:rm3,bm25,k=1,b=0,bm25", runs).runs == ("rm3", "bm25,k=1,b=0", "bm25")
    assert family_of("baseline:bm25,k=1", runs).baseline == "bm25,k=1"
    with pytest.raises(ValueError, match="names the run k=2"):
        family_of("runs:bm25,k=2", runs)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pairs", "family must be question, all, baseline:<run> or runs:<run>,<run>, got pairs"),
        ("baseline:z", "names the run z, which is not there"),
        ("runs:a,a", "a run against itself is no comparison"),
        ("runs:a", "has no pair of runs"),
        ("runs:", r"names the run \(none\)"),
    ],
)
def test_a_family_that_is_none_is_refused_by_name(name, words):
    with pytest.raises(ValueError, match=words):
        family_of(name, ["a", "b"])
