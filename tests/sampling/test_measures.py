import math

import ir_measures
import numpy as np
import pytest

from sampling.measures.families import grade_gains, rank_weights, run_weights
from sampling.measures.registry import (
    FAMILIES,
    WrongKind,
    parse_linear,
    parse_measure,
    parse_pairs,
    parse_ratio,
    reported_measures,
    spellings,
    sums_among,
)
from sampling.measures.scoring import measure_on_scale


@pytest.mark.parametrize("name", ["P@10", "P(rel=2)@5", "RBP@100", "RBP(p=0.5)@20", "RBP(p=0.95,rel=2)@7"])
def test_a_name_is_spelled_as_ir_measures_reads_it(name):
    assert ir_measures.parse_measure(parse_linear(name).name) == ir_measures.parse_measure(name)
    assert parse_linear(str(ir_measures.parse_measure(name))).name == parse_linear(name).name


def test_numbers_are_found_under_the_names_that_they_had_and_p_is_always_said():
    assert spellings("RBP@20") == spellings("RBP(p=0.8)@20") == ("RBP(p=0.8)@20", "RBP@20")
    assert spellings("RBP(p=0.8,rel=2)@7") == ("RBP(p=0.8,rel=2)@7", "RBP(rel=2)@7")
    assert spellings("RBP(p=0.5)@20") == ("RBP(p=0.5)@20",)
    assert spellings("no measure") == ("no measure",)
    fine = measure_on_scale("RBP(p=0.1234567)@5", [0, 1, 2], 2)
    assert fine.ir_measures == "RBP(p=0.1234567,rel=2)@5"


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("RBP@100", "RBP(p=0.8)@100"),
        ("RBP(rel=2)@7", "RBP(p=0.8,rel=2)@7"),
        ("RBP(rel=2, p=0.5)@9", "RBP(p=0.5,rel=2)@9"),
        ("DCG(dcg='log2')@10", "DCG@10"),
        ('DCG(dcg="ln")@10', "DCG(dcg='ln')@10"),
        ("Gain@3", "Gain@3"),
    ],
)
def test_a_canonical_name_leaves_defaults_out_and_reads_back_as_the_same_measure(written, canonical):
    assert parse_linear(written).name == canonical
    assert parse_linear(canonical) == parse_linear(written)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nDCG@10", "ratio"),
        ("Recall@10", "is a ratio, not a sum over documents"),
        ("MAE", "family must be one of"),
        ("DCG", "needs a cutoff"),
        ("P@0", r"cutoff must be within \[1, 100000\], got 0"),
        ("P@9999999", "cutoff must be within"),
        ("RBP(p=1)@10", r"p must be within \(0, 1\), got 1"),
        ("RBP(p=x)@10", "p must be a number"),
        ("RBP(p=nan)@10", "p must be within"),
        ("P(rel=0)@10", "rel must be a grade"),
        ("P(p=0.5)@10", "takes the parameters"),
        ("P(rel=1,rel=2)@10", "given twice"),
        ("DCG(dcg='exp-log2')@10", "gains belong to the scale"),
        ("DCG(dcg='log10')@10", "dcg must be one of"),
        ("Nothing@10", "family must be one of"),
        ("P()@10", "parameter must be spelled"),
        ("", "must be spelled"),
        ("P@10 or 1=1", "must be spelled"),
    ],
)
def test_a_measure_that_is_not_linear_or_not_spelled_right_is_refused_with_its_reason(name, reason):
    with pytest.raises(ValueError, match=reason):
        parse_linear(name)


def test_precision_and_gain_weigh_every_rank_alike_up_to_the_cutoff():
    assert rank_weights(parse_linear("P@4"), 5).tolist() == [0.25, 0.25, 0.25, 0.25, 0]
    assert rank_weights(parse_linear("Gain@4"), 2).tolist() == [0.25, 0.25]


def test_dcg_discounts_by_the_binary_logarithm_unless_told_otherwise():
    assert rank_weights(parse_linear("DCG@3"), 4) == pytest.approx([1, 1 / math.log2(3), 0.5, 0])
    assert rank_weights(parse_linear("DCG(dcg='ln')@1"), 1) == pytest.approx([1 / math.log(2)])


def test_discounts_to_rank_2000_sum_to_the_constants_of_the_verified_method():
    assert rank_weights(parse_linear("DCG(dcg='ln')@2000"), 2000).sum() == pytest.approx(314.7633, abs=5e-5)
    assert rank_weights(parse_linear("DCG@2000"), 2000).sum() == pytest.approx(218.1773, abs=5e-5)


def test_rbp_starts_at_one_minus_p_and_sums_to_one_minus_p_to_the_depth():
    weights = rank_weights(parse_linear("RBP(p=0.8)@100"), 100)
    assert weights[:3] == pytest.approx([0.2, 0.16, 0.128])
    assert weights.sum() == pytest.approx(1 - 0.8**100, rel=1e-12)


def test_rbp_far_down_is_zero_and_does_not_warn():
    weights = rank_weights(parse_linear("RBP(p=0.01)@100000"), 100000)
    assert weights[-1] == 0
    assert np.all(weights >= 0)


def test_weights_times_gains_is_what_trec_eval_prints():
    """P@3 directly; DCG@3 divided by the ideal ranking's DCG@3 is trec_eval's nDCG@3 (linear gains, log2)."""
    qrels = {"1": {"a": 2, "b": 0, "c": 1, "d": 3}, "2": {"a": 0, "b": 1, "c": 0, "d": 0}}
    run = {"1": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}, "2": {"c": 3.0, "b": 2.0, "a": 1.0}}
    ranks = np.array([1, 2, 3, 4, 3, 2, 1, 0])
    grades = np.array([2, 0, 1, 3, 0, 1, 0, 0])
    precision, dcg = parse_linear("P@3"), parse_linear("DCG@3")
    reference = {
        (metric.query_id, str(metric.measure)): metric.value
        for metric in ir_measures.iter_calc([ir_measures.P @ 3, ir_measures.nDCG @ 3], qrels, run)
    }
    value = run_weights(precision, ranks, 2) @ grade_gains(precision, [0, 1, 2, 3], 1)[grades]
    assert value == pytest.approx((reference["1", "P@3"] + reference["2", "P@3"]) / 2)
    ideal = np.array([rank_weights(dcg, 3) @ [3, 2, 1], rank_weights(dcg, 3) @ [1, 0, 0]])
    per_topic = (
        (run_weights(dcg, ranks, 1) * grade_gains(dcg, [0, 1, 2, 3], 1)[grades]).reshape(2, 4).sum(axis=1)
    )
    assert per_topic / ideal == pytest.approx([reference["1", "nDCG@3"], reference["2", "nDCG@3"]])


def test_binary_gains_follow_the_relevant_grade_and_the_rel_of_the_name_goes_before_it():
    assert grade_gains(parse_linear("P@10"), [0, 1, 2], 2).tolist() == [0, 0, 1]
    assert grade_gains(parse_linear("RBP(rel=1)@10"), [0, 1, 2], 2).tolist() == [0, 1, 1]


def test_gains_are_a_copy_of_the_scale():
    scale = np.array([0.0, 1.0, 7.0])
    grade_gains(parse_linear("DCG@10"), scale, 1)[2] = 0
    assert scale[2] == 7


@pytest.mark.parametrize(
    ("gains", "relevant", "reason"),
    [
        ([0], 1, "at least 2 grades"),
        ([0, -1], 1, "not negative"),
        ([0, math.nan], 1, "finite"),
        ([0, math.inf], 1, "finite"),
        ([0, 1], 0, r"within \[1, 1\], got 0"),
        ([0, 1], 2, r"within \[1, 1\], got 2"),
    ],
)
def test_impossible_gains_and_grades_are_refused(gains, relevant, reason):
    with pytest.raises(ValueError, match=reason):
        grade_gains(parse_linear("P@10"), gains, relevant)


def test_an_empty_ranking_weighs_nothing_and_divides_by_nothing():
    assert run_weights(parse_linear("RBP@10"), np.zeros(4, dtype=int), 2).tolist() == [0, 0, 0, 0]


def test_a_rank_beyond_the_cutoff_weighs_nothing():
    assert run_weights(parse_linear("P@2"), [2, 3, 10**9], 1).tolist() == [0.5, 0, 0]


@pytest.mark.parametrize(
    ("ranks", "n_topics", "reason"),
    [([-1], 1, "at least 0"), ([1.0], 1, "integers"), ([1], 0, "n_topics must be at least 1, got 0")],
)
def test_impossible_ranks_are_refused(ranks, n_topics, reason):
    with pytest.raises(ValueError, match=reason):
        run_weights(parse_linear("P@2"), ranks, n_topics)


def test_a_depth_below_one_is_refused():
    with pytest.raises(ValueError, match="depth must be within"):
        rank_weights(parse_linear("P@2"), 0)


@pytest.mark.parametrize(
    "name", ["nDCG@10", "nDCG", "AP", "AP@20", "AP(rel=2)@20", "NDCG@5", "MAP@7", "nDCG(dcg='log2')@10"]
)
def test_a_ratio_is_spelled_as_ir_measures_spells_it(name):
    assert parse_ratio(name).name == str(ir_measures.parse_measure(name))
    assert parse_ratio(name).averaging == "macro"
    assert parse_ratio(f"macro {name}") == parse_ratio(name)


def test_the_ratio_of_sums_is_spelled_with_micro_before_the_name():
    micro, macro = parse_ratio("micro AP(rel=2)@20"), parse_ratio("AP(rel=2)@20")
    assert (micro.name, micro.averaging) == ("micro AP(rel=2)@20", "micro")
    assert (micro.family, micro.cutoff, micro.relevant_grade) == (
        macro.family,
        macro.cutoff,
        macro.relevant_grade,
    )
    assert parse_ratio(micro.name) == micro


def test_the_base_of_the_logarithm_cancels_out_of_ndcg():
    assert parse_ratio("nDCG(dcg='ln')@10") == parse_ratio("nDCG@10")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nDCG(dcg='exp-log2')@10", "gains belong to the scale"),
        ("nDCG(gains={0:0,1:5})@10", "gains belong to the scale"),
        ("nDCG(judged_only=True)@10", "must be spelled key=value"),
        ("AP(p=0.5)", r"AP takes the parameters \['rel'\]"),
        ("AP(rel=0)", "rel must be a grade"),
        ("AP@0", r"cutoff must be within \[1, 100000\], got 0"),
        ("P@10", "is a sum over documents, not a ratio"),
        ("micro P@10", "is a sum over documents: only a ratio"),
        ("Recall", "needs a cutoff, as in Recall@10"),
        ("Rprec", "is a ratio that is not served: choose one of"),
        ("micro", "got 'micro'"),
        ("micro micro AP", "must be spelled"),
        ("", "must be spelled"),
    ],
)
def test_a_ratio_that_is_not_served_is_refused_with_its_reason(name, reason):
    with pytest.raises(ValueError, match=reason):
        parse_ratio(name)


def test_the_kind_of_a_measure_says_what_its_value_is_made_of():
    names = ("P@10", "DCG(dcg='ln')@5", "AP", "micro nDCG@10", "Swaps")
    assert [parse_measure(name).kind.key for name in names] == ["linear", "linear", "ratio", "ratio", "pairs"]
    assert sums_among(names) == ["P@10", "DCG(dcg='ln')@5"]
    for name, reason in [
        ("RPrec", "ratio that is not served"),
        ("Nothing@10", r"family must be one of \['AP', 'DCG', "),
        ("micro P@10", "is a sum over documents: only a ratio has a micro average"),
        ("?", "spelled"),
    ]:
        with pytest.raises(ValueError, match=reason):
            parse_measure(name)


@pytest.mark.parametrize(
    ("parse", "name", "words"),
    [
        (
            parse_linear,
            "AP",
            r"is a ratio, not a sum over documents: choose one of \['DCG', 'Gain', 'P', 'RBP'\]",
        ),
        (parse_linear, "Swaps@5", "is a sum over pairs of documents, not a sum over documents"),
        (
            parse_ratio,
            "P@10",
            r"is a sum over documents, not a ratio: choose one of \['AP', 'R', 'nDCG', 'statAP'\]",
        ),
        (parse_pairs, "P@10", r"not a sum over pairs of documents: choose one of \['Swaps', 'wSwaps'\]"),
    ],
)
def test_a_measure_of_another_kind_is_refused_by_the_name_of_its_kind(parse, name, words):
    with pytest.raises(WrongKind, match=words):
        parse(name)


def test_a_campaign_has_the_measure_it_was_drawn_for_and_the_usual_ones_that_its_pool_reaches():
    assert reported_measures("DCG@10", 10) == [
        "DCG@10",
        "P@10",
        "nDCG@10",
        "AP@10",
        "R@10",
        "ERR@10",
        "RR@10",
    ]
    assert reported_measures("RBP(p=0.5)@5", 20) == [
        "RBP(p=0.5)@5", "P@10", "DCG@10", "RBP(p=0.8)@20", "nDCG@10", "AP@20", "R@20", "ERR@10", "RR@10",
    ]  # fmt: skip
    assert reported_measures("P@3", 5) == ["P@3", "AP@5", "R@5"]


def test_every_family_has_words_and_measures_that_read_back():
    for family in FAMILIES:
        assert family.label
        assert family.help.endswith(".")
        for name in (*family.suggested, *(one.format(depth=20) for one in family.reported)):
            assert parse_measure(name).name == name
            assert parse_measure(name).family is family
    keys = [key for family in FAMILIES for key in (family.key, *family.aliases)]
    assert len(set(keys)) == len(keys)


def test_ap_has_gains_of_0_and_1_and_ndcg_those_of_the_scale():
    assert grade_gains(parse_ratio("AP"), [0, 1, 3], 2).tolist() == [0, 0, 1]
    assert grade_gains(parse_ratio("AP(rel=1)"), [0, 1, 3], 2).tolist() == [0, 1, 1]
    assert grade_gains(parse_ratio("nDCG@5"), [0, 1, 3], 2).tolist() == [0, 1, 3]
