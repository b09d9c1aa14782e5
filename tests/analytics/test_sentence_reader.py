"""The reader of the demo's sentences: what it lets pass, and what it must find."""

from itertools import combinations

import pytest

from benchmarks.sentences import blocks_of, planted_faults, read_page

RUNS = {"bm25", "dense", "rm3"}
ADJUSTED = {
    frozenset(("bm25", "dense")): 0.01,
    frozenset(("bm25", "rm3")): 0.05,
    frozenset(("dense", "rm3")): 0.4,
}
PAGE = """
<h1>Pairs</h1><p>Compare runs here: an arrow points to the higher run.</p>
<blockquote><p>dense has a higher P@10 than bm25: mean difference +0.2 (p = .003), significant at .05.</p></blockquote>
<p>The difference in P@10 between bm25 and rm3, +0.1 (p = .05), is not significant at .05.</p>
<table><tr><th>dense − bm25</th><td>+0.2</td><td><span class="tag ok">dense is higher</span></td></tr>
<tr><th>dense − rm3</th><td>+0.1</td><td><span>no</span></td></tr></table>
<p>It does not contain 0 either: you may stop here and report the difference.</p>
"""


def faults(texts, adjusted=ADJUSTED):
    return read_page(texts, "P@10", adjusted, RUNS, "here").faults


def test_what_is_significant_may_be_called_higher():
    found = read_page(blocks_of(PAGE), "P@10", ADJUSTED, RUNS, "here")
    assert (found.faults, found.called_higher, found.about_runs) == ([], 2, 5)


@pytest.mark.parametrize("pair", list(combinations(sorted(RUNS), 2)))
def test_the_same_page_is_wrong_where_p_is_not_below_the_level(pair):
    adjusted = ADJUSTED | {frozenset(pair): 0.05}
    assert len(faults(blocks_of(PAGE), adjusted)) == (2 if pair == ("bm25", "dense") else 0)


def test_every_planted_fault_is_found():
    plain = ["bm25 − rm3", "no"]
    planted = list(planted_faults(plain, "P@10", ADJUSTED, RUNS))
    assert len(planted) == 5
    assert [len(faults(texts)) > 0 for texts in planted] == [True] * 5
    assert faults(plain) == []
    assert "contradicts itself" in faults(planted[3])[-1]
    assert "advises to report" in faults(planted[4])[0]


def test_a_comparison_outside_the_family_is_never_called_higher():
    said = "dense has a higher P@10 than bm25: mean difference +0.2 (p = .003), significant at .05."
    assert faults([said], adjusted={})
    assert not faults([said])
