"""Whether a campaign can be opened for judging, and what is better done before: one answer for pages and the API."""

from dataclasses import dataclass

from judging.models import Assessor, Campaign


@dataclass(frozen=True)
class Opening:
    """Why a campaign cannot be opened, and what somebody should know who opens it; sentences."""

    refusals: tuple[str, ...]
    advice: tuple[str, ...]


def opening(campaign: Campaign) -> Opening:
    """Return what speaks against opening a campaign now."""
    there = Campaign.objects.filter(pk=campaign.pk, deleted_at=None, collection__deleted_at=None)
    if not there.exists():
        return Opening(("the campaign is deleted; restore it first",), ())
    refusals = () if campaign.slots.exists() else ("draw its items first",)
    return Opening(refusals, tuple(_advice(campaign)))


def _advice(campaign: Campaign) -> list[str]:
    people = campaign.assessors.filter(status=Assessor.Status.ACTIVE)
    tiers = list(people.order_by().values_list("tier", flat=True))
    others = campaign.assessors.exclude(tier=Assessor.Tier.GOLD).exists()
    n_gold = tiers.count(Assessor.Tier.GOLD)
    n_judges = len(tiers) - n_gold if others else n_gold
    wanted = campaign.judgments_per_item
    found = []
    if not n_judges:
        found.append("Nobody can judge yet: add or invite an assessor.")
    elif n_judges < wanted:
        who = "One assessor" if n_judges == 1 else f"{n_judges} assessors"
        found.append(f"{who} cannot give {wanted} judgments of each item: nobody judges an item twice.")
    if not n_gold:
        found.append("There is no gold assessor: without audits, no number can be corrected.")
    return found
