import itertools

import numpy as np
import pytest
import pytrec_eval
from enumeration import poisson_samples

from analytics.agreement.inferred import ideal_dcg, inferred_ap, inferred_ndcg
from analytics.estimation.estimate import Refusal

# docs/methods/derivations/bailey.md, section 4: B1
B1_DOCUMENTS = [
    *(f"h{i}" for i in range(1, 5)),
    *(f"p{i}" for i in range(1, 7)),
    *(f"n{i}" for i in range(1, 21)),
]
B1_STRATUM = np.repeat([2, 1, 0], [4, 6, 20])
B1_GRADES = {"h1": 2, "h2": 1, "p1": 1, "p2": 0, "p3": 2, "n1": 0, "n2": 0}
B1_RUN = ["h1", "p4", "h3", "p1", "zz", "h4", "n5"]
# B4: all grades, how many of each stratum are judged, and the run
B4_GRADE = np.array([2, 2, 1, 0, 2, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0])
B4_STRATUM = np.repeat([0, 1, 2], [4, 6, 5])
B4_SAMPLES = (2, 3, 2)
B4_RUN = ["a1", "b2", None, "a3", "b5", "c2", "b1", "c4"]
B4_PLACES = {
    f"{letter}{i + 1}": start + i for letter, start in (("a", 0), ("b", 4), ("c", 10)) for i in range(6)
}


def six(values):
    return pytest.approx(values, abs=5e-7)


def b1(form, **settings):
    grade = np.array([B1_GRADES.get(document, -1) for document in B1_DOCUMENTS])
    rank = np.array([B1_RUN.index(document) + 1 if document in B1_RUN else 0 for document in B1_DOCUMENTS])
    return inferred_ndcg(rank, grade, B1_STRATUM, form=form, **settings)


def b4_rank():
    rank = np.zeros(15, dtype=int)
    for place, document in enumerate(B4_RUN, 1):
        if document:
            rank[B4_PLACES[document]] = place
    return rank


def stratified_samples(stratum, n_each):
    """Yield every equally likely sample of n_each documents of each stratum."""
    parts = [itertools.combinations(np.flatnonzero(stratum == s), n) for s, n in enumerate(n_each)]
    for chosen in itertools.product(*parts):
        yield np.concatenate(chosen).astype(int)


def over_all_samples(estimator, grade, stratum, n_each):
    """The mean numerator and mean denominator over every sample."""
    made = []
    for sample in stratified_samples(stratum, n_each):
        seen = np.full(grade.size, -1)
        seen[sample] = grade[sample]
        made.append(estimator(seen))
    return [float(np.mean(column)) for column in zip(*made, strict=True)], len(made)


# ---- infNDCG --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "dcg", "ndcg"),
    [("ht", 4.861353, 0.746170), ("printed", 6.861353, 1.053151), ("literal", 3.287118, 0.504541)],
)
def test_b1_the_forms_of_infndcg(form, dcg, ndcg):
    got = b1(form)
    assert got.denominator == six(6.515071)
    assert got.found.tolist() == [22, 4, 4]
    assert (got.numerator[0], got.value[0]) == six((dcg, ndcg))
    assert got.form == f"infNDCG {form}"


def test_b1_the_difference_form_by_hand():
    # strata's means: high 3/2, possible 3/3, not 0; run: high at 1, 3, 6, possible at 2, 4, not at 7
    d = 1 / np.log2(np.arange(2, 9))
    expected = 1.5 * (d[0] + d[2] + d[5]) + 1.0 * (d[1] + d[3])
    errors = 2 * (2 - 1.5) * d[0] + 2 * (1 - 1.0) * d[3]
    assert b1("difference").numerator[0] == pytest.approx(expected + errors)


def test_a_score_above_one_is_warned_of_and_a_stratum_without_judged_returned_documents_too():
    outside, empty = b1("printed").warnings
    assert outside == "1 of 1 scores lie outside [0, 1], 1.053 to 1.053"
    assert "counts as 0" in empty
    assert b1("ht").warnings == ()


def test_b2_the_ideal_of_fractional_counts():
    assert ideal_dcg([0, 2.25, 1.5], [0, 1, 2]) == six(3.769402)
    assert ideal_dcg([5, 0, 0], [0, 1, 2]) == 0


def test_b3_complete_judgments_give_ndcg():
    # grades 2, 0, 1 at ranks 1 to 3, and one document of grade 1 that is not returned
    for form in ("ht", "difference", "printed", "literal"):
        got = inferred_ndcg([1, 2, 3, 0], [2, 0, 1, 1], [0, 0, 0, 1], form=form)
        assert (got.numerator[0], got.denominator, got.value[0]) == six((2.5, 3.130930, 0.798485))


def bias_of_the_difference_form():
    """-sum over strata of N (1 - n/N)/n times the covariance of grade and discount: the means use the same sample."""
    discount = np.where(b4_rank() > 0, 1 / np.log2(b4_rank() + 1.0, where=b4_rank() > 0, out=np.ones(15)), 0)
    total = 0.0
    for s, n in enumerate(B4_SAMPLES):
        here = s == B4_STRATUM
        N = np.count_nonzero(here)
        total -= N * (1 - n / N) / n * np.cov(B4_GRADE[here], discount[here])[0, 1]
    return total


@pytest.mark.parametrize(
    ("form", "mean"),
    [
        ("ht", 4.084480),
        ("printed", 3.507625),
        ("literal", 2.006619),
        ("difference", 4.084480 + bias_of_the_difference_form()),
    ],
)
def test_b4_over_all_samples_only_ht_is_unbiased(form, mean):
    def estimator(seen):
        got = inferred_ndcg(b4_rank(), seen, B4_STRATUM, form=form, gains=[0, 1, 2])
        # A sample without a relevant document has no ratio; its numerator and ideal are 0.
        return (0, 0) if isinstance(got, Refusal) else (got.numerator[0], got.denominator)

    (numerator, ideal), n = over_all_samples(estimator, B4_GRADE, B4_STRATUM, B4_SAMPLES)
    truth = inferred_ndcg(b4_rank(), B4_GRADE, B4_STRATUM)
    assert n == 1200
    assert (truth.numerator[0], truth.denominator) == six((4.084480, 5.768929))
    assert numerator == pytest.approx(mean, abs=1e-6)
    assert ideal == six(5.618360)


def test_the_difference_form_varies_less_than_ht_when_the_strata_tell_the_gain():
    grade, stratum = np.array([2, 2, 2, 1, 0, 0, 0, 1]), np.repeat([1, 0], 4)
    rank = np.array([1, 4, 2, 6, 3, 5, 0, 7])
    spread = {}
    for form in ("ht", "difference"):
        values = []
        for sample in stratified_samples(stratum, (2, 2)):
            seen = np.full(8, -1)
            seen[sample] = grade[sample]
            values.append(inferred_ndcg(rank, seen, stratum, form=form).numerator[0])
        spread[form] = np.var(values)
        assert np.mean(values) == pytest.approx(inferred_ndcg(rank, grade, stratum).numerator[0], rel=0.05)
    assert spread["difference"] < spread["ht"] / 2


@pytest.mark.parametrize("judged", [np.array([1, 1, 1, 1, 1]), np.array([1, 0, 1, 1, 0])])
def test_with_recorded_probabilities_ht_is_unbiased_over_poisson_draws(judged):
    grade, stratum, rank = np.array([2, 1, 0, 1, 2]), np.array([0, 0, 1, 1, 1]), np.array([1, 0, 2, 4, 3])
    pi = np.where(judged == 1, 0.4, 0.9)
    mean = 0.0
    for sample, chance in poisson_samples(pi):
        got = inferred_ndcg(
            rank, np.where(sample, grade, -1), stratum, gains=[0, 1, 2], inclusion_probability=pi
        )
        mean += chance * (0 if isinstance(got, Refusal) else got.numerator[0])
    assert mean == pytest.approx(2 + 2 / np.log2(4) + 1 / np.log2(5), abs=1e-12)


def test_the_literal_and_printed_forms_take_strata_whose_documents_have_unequal_probabilities():
    # all judged with probability 1: every form is the truth
    grade, stratum, rank = np.array([2, 1, 0]), np.array([0, 0, 1]), np.array([1, 2, 3])
    whole = 2 + 1 / np.log2(3)
    for form in ("ht", "difference", "printed", "literal"):
        got = inferred_ndcg(rank, grade, stratum, form=form, inclusion_probability=np.ones(3))
        assert got.numerator[0] == pytest.approx(whole)


def test_with_recorded_probabilities_the_counts_by_grade_are_unbiased_and_sum_to_the_pool_in_the_difference_form():
    grade, stratum, rank = np.array([2, 1, 0, 1, 2]), np.array([0, 0, 1, 1, 1]), np.array([1, 0, 2, 4, 3])
    pi = np.array([0.4, 0.9, 0.5, 0.8, 0.6])
    mean = np.zeros(3)
    for sample, chance in poisson_samples(pi):
        seen = np.where(sample, grade, -1)
        got = inferred_ndcg(rank, seen, stratum, gains=[0, 1, 2], inclusion_probability=pi)
        if isinstance(got, Refusal):  # nothing relevant judged: what is found are the others
            mean += chance * np.array([np.sum(1 / pi[sample & (grade == 0)]), 0, 0])
        else:
            mean += chance * got.found
    assert mean == pytest.approx(np.array([1, 2, 2]), abs=1e-12)
    seen = np.array([2, 1, 0, 1, -1])
    got = inferred_ndcg(rank, seen, stratum, form="difference", gains=[0, 1, 2], inclusion_probability=pi)
    # stratum 0: two documents, weights 1/.4 and 1/.9; stratum 1: three, weights 1/.5 and 1/.8
    first, second = (1 / 0.4) / (1 / 0.4 + 1 / 0.9), (1 / 0.5) / (1 / 0.5 + 1 / 0.8)
    assert got.found == pytest.approx([3 * second, 2 * (1 - first) + 3 * (1 - second), 2 * first])


# ---- infAP ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codes", "unreturned", "expected"),
    [
        ([1, 0, -1, 1, -2, 1, 0, -1, 1], 0, 0.703472),
        ([0, -1, -1, 1], 0, 0.250007),
        ([1, 1], 2, 0.499999),
    ],
)
def test_the_printed_infap_has_the_values_of_the_methods_file(codes, unreturned, expected):
    # docs/methods/derivations/bailey.md, section 1.2; -2 is a document outside the pool
    rank = [place for place, code in enumerate(codes, 1) if code != -2] + [0] * unreturned
    grade = [code for code in codes if code != -2] + [1] * unreturned
    got = inferred_ap(rank, grade, [0] * len(grade), form="printed")
    assert got.value[0] == six(expected)


def test_the_printed_infap_is_trec_evals():
    rng = np.random.default_rng(6)
    qrels, run, ours = {}, {}, {}
    for topic in range(20):
        grade = rng.choice([-1, 0, 1], 30, p=[0.4, 0.4, 0.2])
        order = rng.permutation(40)[:25]  # documents 30 to 39 are outside the pool
        rank = np.zeros(40, dtype=int)
        rank[order] = np.arange(1, 26)
        qrels[str(topic)] = {f"d{i}": int(g) for i, g in enumerate(grade)}
        run[str(topic)] = {f"d{i}": 100.0 - place for place, i in enumerate(order)}
        ours[str(topic)] = inferred_ap(rank[:30], grade, np.zeros(30, dtype=int), form="printed").value[0]
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"infAP"}).evaluate(run)
    assert ours == pytest.approx({topic: scores["infAP"] for topic, scores in theirs.items()}, abs=1e-9)


@pytest.mark.parametrize("form", ["ht", "difference", "stratified"])
def test_complete_judgments_give_average_precision_in_every_form(form):
    rank = np.array([[1, 2, 3, 4, 0, 6], [6, 5, 0, 3, 1, 2]])
    got = inferred_ap(rank, [1, 0, 2, 1, 1, 0], [0, 1, 0, 1, 0, 1], form=form)
    by_hand = [(1 / 1 + 2 / 3 + 3 / 4) / 4, (1 / 1 + 2 / 3 + 3 / 6) / 4]
    assert got.value == pytest.approx(by_hand, abs=1e-4 if form == "stratified" else 1e-12)
    assert got.found.tolist() == [2, 4]


def test_the_stratified_form_takes_a_third_where_nothing_above_was_sampled():
    # 1e-5/3e-5 (docs/methods/derivations/bailey.md, section 1.3): (1 + 1/3)/2 at rank 2, for two documents
    got = inferred_ap([1, 2], [-1, 1], [0, 0], form="stratified")
    assert (got.numerator[0], got.denominator) == (pytest.approx(2 * (1 + 1 / 3) / 2), 2)
    # at rank 4 below one relevant and one unjudged document of stratum 0 and an unjudged one of stratum 1
    both = inferred_ap([1, 2, 3, 4], [1, -1, -1, 1], [0, 0, 1, 1], form="stratified")
    assert both.numerator[0] == pytest.approx(2 * 1 + 2 * (1 + 2 * 1 + 1 / 3) / 4, abs=1e-4)


@pytest.mark.parametrize(("form", "is_unbiased"), [("ht", True), ("stratified", False)])
def test_over_all_samples_the_pair_sum_of_ht_is_unbiased(form, is_unbiased):
    relevant = np.minimum(B4_GRADE, 1)

    def estimator(seen):
        got = inferred_ap(b4_rank(), seen, B4_STRATUM, form=form)
        return (0, 0) if isinstance(got, Refusal) else (got.numerator[0], got.denominator)

    truth = inferred_ap(b4_rank(), relevant, B4_STRATUM)
    # relevant at ranks 1, 2, 4, 6, 7: the run has a1, b2, a3, c2, b1
    assert truth.numerator[0] == pytest.approx(1 + 2 / 2 + 3 / 4 + 4 / 6 + 5 / 7)
    (numerator, total), _ = over_all_samples(estimator, relevant, B4_STRATUM, B4_SAMPLES)
    assert total == pytest.approx(7)
    assert (abs(numerator - truth.numerator[0]) < 1e-9) == is_unbiased


def test_with_recorded_probabilities_the_pair_sum_is_unbiased_over_poisson_draws():
    grade, rank = np.array([1, 1, 0, 1, 1]), np.array([1, 5, 2, 4, 3])
    pi = np.array([0.3, 0.9, 0.5, 0.6, 0.7])
    truth = inferred_ap(rank, grade, np.zeros(5, dtype=int)).numerator[0]
    mean = 0.0
    for sample, chance in poisson_samples(pi):
        got = inferred_ap(rank, np.where(sample, grade, -1), np.zeros(5, dtype=int), inclusion_probability=pi)
        mean += chance * (0 if isinstance(got, Refusal) else got.numerator[0])
    assert mean == pytest.approx(truth, abs=1e-12)


def test_the_difference_form_of_infap_is_its_pair_sum_written_out():
    rng = np.random.default_rng(4)
    n = 12
    grade, stratum = rng.integers(0, 2, n), np.repeat([0, 1], 6)
    judged = np.zeros(n, dtype=bool)
    judged[[0, 2, 5, 6, 8, 9, 11]] = True
    grade[[0, 6]] = 1
    rank = rng.permutation(n) + 1
    got = inferred_ap(rank, np.where(judged, grade, -1), stratum, form="difference")
    x, pools, samples = grade.astype(float), [6, 6], [3, 4]
    mean = np.array([x[judged & (stratum == s)].mean() for s in stratum])

    def chance(i, j):
        (N, n_), (M, m) = ((pools[stratum[k]], samples[stratum[k]]) for k in (i, j))
        if i == j:
            return n_ / N
        return n_ * (n_ - 1) / (N * (N - 1)) if stratum[i] == stratum[j] else n_ * m / (N * M)

    total = 0.0
    for i, j in itertools.product(range(n), repeat=2):
        if rank[j] > rank[i]:
            continue
        prior = mean[i] if i == j else mean[i] * mean[j]
        true = x[i] * x[j]
        total += (prior + (judged[i] & judged[j]) * (true - prior) / chance(i, j)) / rank[i]
    assert got.numerator[0] == pytest.approx(total, rel=1e-12)
    assert got.denominator == pytest.approx(mean.sum())


def test_only_grades_from_the_threshold_on_are_relevant():
    rank, grade = [1, 2, 3], [1, 2, 2]
    assert inferred_ap(rank, grade, [0, 0, 0]).value[0] == 1
    assert inferred_ap(rank, grade, [0, 0, 0], relevant_grade=2).value[0] == pytest.approx(
        (1 / 2 + 2 / 3) / 2
    )


# ---- refusals -------------------------------------------------------------------------------------------------


def test_what_cannot_be_inferred_is_refused_with_a_reason():
    rank, stratum = [1, 2, 3, 4], [0, 0, 1, 1]
    assert inferred_ndcg(rank, [-1] * 4, stratum) == Refusal("no document of the topic was judged", 1)
    unseen = inferred_ndcg(rank, [1, -1, -1, -1], stratum)
    assert unseen == Refusal("at least 1 judged documents a stratum are needed, got 0 of 2 in stratum 1", 1)
    alone = inferred_ap(rank, [1, 0, 1, -1], stratum)
    assert alone == Refusal("at least 2 judged documents a stratum are needed, got 1 of 2 in stratum 1", 1)
    assert not isinstance(inferred_ap(rank, [1, 0, 1, -1], stratum, form="stratified"), Refusal)
    for none in (inferred_ndcg(rank, [0] * 4, stratum), inferred_ap(rank, [0] * 4, stratum)):
        assert "none of the 4 judged documents of the topic is relevant" in none.reason


def test_with_recorded_probabilities_ht_needs_no_document_of_every_stratum_but_the_difference_does():
    given = {"ranks": [1, 2], "grade": [1, -1], "stratum": [0, 1], "inclusion_probability": [0.5, 0.5]}
    assert inferred_ndcg(**given).numerator[0] == 2
    assert isinstance(inferred_ndcg(**given, form="difference"), Refusal)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"form": "best"}, "form must be one of"),
        ({"ranks": [1, 1]}, "two documents at one rank"),
        ({"ranks": [1, -1]}, "ranks must be at least 0, got -1"),
        ({"ranks": [1.0, 2.0]}, "ranks must be integers of shape"),
        ({"ranks": [1, 2, 3]}, "ranks must be integers of shape"),
        ({"grade": [1, -2]}, "grade must be at least -1, got -2"),
        ({"stratum": [0]}, "stratum must have 2 documents, got 1"),
        ({"stratum": [0, -1]}, "stratum must be at least 0, got -1"),
        ({"gains": [0]}, "gains must be flat, not negative and hold grade 1"),
        ({"gains": [0, -1]}, "gains must be flat, not negative"),
        ({"inclusion_probability": [0.5, 0]}, r"inclusion_probability must be in \(0, 1\], got 0"),
    ],
)
def test_impossible_input_to_infndcg_is_refused(changed, reason):
    with pytest.raises(ValueError, match=reason):
        inferred_ndcg(**{"ranks": [1, 2], "grade": [1, 0], "stratum": [0, 0], **changed})


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"form": "best"}, "form must be one of"),
        ({"form": "printed", "stratum": [0, 1]}, "the printed form is for 1 stratum"),
        ({"form": "stratified", "inclusion_probability": [0.5, 0.5]}, "judged alike within strata"),
        ({"relevant_grade": 0}, "relevant_grade must be at least 1, got 0"),
    ],
)
def test_impossible_input_to_infap_is_refused(changed, reason):
    with pytest.raises(ValueError, match=reason):
        inferred_ap(**{"ranks": [1, 2], "grade": [1, 0], "stratum": [0, 0], **changed})


@pytest.mark.parametrize(
    ("found", "gains", "reason"),
    [
        ([1, -1], [0, 1], "not negative"),
        ([1, 1], [0, -1], "not negative"),
        ([1, 1], [0], "gains must have shape"),
        ([1, 1e9], [0, 1], "found must sum to at most 1e[+]07 documents"),
    ],
)
def test_an_impossible_ideal_is_refused(found, gains, reason):
    with pytest.raises(ValueError, match=reason):
        ideal_dcg(found, gains)
