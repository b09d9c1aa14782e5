"""Pages of a campaign whose topics are audited: pairs, ranking, results and audits."""

from topic_campaign import make_audited

from analytics.services.recomputation import recompute


def test_the_pages_show_pairs_and_ranks_by_the_corrected_number(page, tmp_path):
    campaign = make_audited(tmp_path, items=200)
    recompute(campaign=campaign, measures=["nDCG@4"])
    asked = {"measure": "nDCG@4"}
    pairs = page(campaign, name="console:pairs", **asked)
    assert "p is adjusted among the 3 tested comparisons of the family" in pairs
    assert "not estimable:" not in pairs
    ranking = page(campaign, name="console:ranking", **asked)
    assert "Simultaneous ranks" in ranking
    assert "There is no ranking" not in ranking
    results = page(campaign, name="console:campaign-results", **asked)
    assert "Audits of whole topics correct the numbers." in results
    assert "nDCG@4 by the corrected number with 95" in results
    audits = page(campaign, name="console:audits")
    assert "Whole topics are audited." in audits
    assert "topic_numbers" in audits
    assert "Declared looks" not in audits


def test_before_an_audit_is_complete_they_say_what_is_missing(page, tmp_path):
    campaign = make_audited(tmp_path, leave=1)
    recompute(campaign=campaign, measures=["nDCG@4"])
    for name in ("console:pairs", "console:ranking"):
        shown = page(campaign, name=name, measure="nDCG@4")
        assert "no audit is complete yet; 1 selected items wait for the gold tier" in shown
