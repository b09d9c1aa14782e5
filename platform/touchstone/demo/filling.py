"""Fill a campaign with the judgments of simulated assessors who err in known ways, through claim and submit."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, QuerySet

from judging.erring_assessors import Pace
from judging.models import Assessor, Campaign, GoldAnswer, Slot
from judging.services.assign import claim
from judging.services.claims import LeasedItem
from judging.services.errors import CampaignNotOpen, Refused
from judging.services.leases import release_all
from touchstone.demo.mixes import MixMember
from touchstone.demo.simulated_campaign import SimulatedCampaign
from touchstone.models import User, record

ASSESSOR_EFFECT, TOPIC_EFFECT = 0.25, 0.2  # standard deviations of the logarithm of the seconds
Say = Callable[[str], None]


class PeopleInCampaign(Refused):
    status = 409
    title = "A campaign with people cannot be simulated"


class GoldMissing(Refused):
    status = 409
    title = "Simulated assessors need the true grades"


@dataclass
class _Judge:
    """A simulated assessor at work."""

    assessor: Assessor
    member: MixMember
    rng: np.random.Generator
    effect: float  # on the logarithm of the seconds
    n_judged: int  # in the campaign so far


def fill(
    campaign: Campaign,
    members: Sequence[MixMember],
    *,
    share: float = 1.0,
    seed: int,
    most_each: int | None = None,
    say: Say = lambda words: None,
) -> int:
    """Let simulated assessors judge a share of the open places, a topic at a time; return the number of judgments.

    Parameters
    ----------
    share
        Of the places of ordinary judgments that are open now, in (0, 1]; gold checks come in addition.
    seed
        Of the errors and the seconds. Which documents an assessor is given, the campaign decides, as for people.
    most_each
        Judgments of one assessor in the campaign at most, gold checks and earlier ones included.

    Raises
    ------
    Refused
        If the campaign is not open, has people in it or lacks true grades.
    ValueError
        If the share or `most_each` is out of its bounds.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must be in (0, 1], got {share}")
    if most_each is not None and most_each < 1:
        raise ValueError(f"most_each must be at least 1, got {most_each}")
    if seed < 0:
        raise ValueError(f"seed must be at least 0, got {seed}")
    _check(campaign, members)
    filling = _Filling(campaign, share, most_each)
    return filling.run(members, seed, say)


def _check(campaign: Campaign, members: Sequence[MixMember]) -> None:
    if campaign.state != Campaign.State.OPEN:
        raise CampaignNotOpen(f"the campaign is {campaign.state}; open it first")
    people = campaign.assessors.exclude(kind=Assessor.Kind.SIMULATED).values_list("user__username", flat=True)
    if people or campaign.entry != Campaign.Entry.CLOSED:
        names = ", ".join(people[:3]) or "anyone with its link"
        raise PeopleInCampaign(f"{names} may judge in it; make another campaign for the simulation")
    _check_accounts(members)
    _check_gold(campaign)


def _check_accounts(members: Sequence[MixMember]) -> None:
    users = User.objects.filter(username__in=[member.username for member in members])
    simulated = Assessor.objects.filter(user=OuterRef("pk"), kind=Assessor.Kind.SIMULATED)
    others = Assessor.objects.filter(user=OuterRef("pk")).exclude(kind=Assessor.Kind.SIMULATED)
    taken = users.filter(~Exists(simulated) | Exists(others)).values_list("username", flat=True)
    if taken:
        raise PeopleInCampaign(f"the account {taken[0]} is a person's; rename it")


def _check_gold(campaign: Campaign) -> None:
    items = list(campaign.items.values_list("topic_id", "document_id"))
    answers = GoldAnswer.objects.filter(topic__collection=campaign.collection_id)
    grades = {
        (topic, document): grade
        for topic, document, grade in answers.values_list("topic_id", "document_id", "grade")
        if grade is not None
    }
    n_missing = sum(1 for pair in items if pair not in grades)
    if n_missing:
        raise GoldMissing(f"{n_missing} of {len(items)} items have no gold answer")
    off_scale = {grades[pair] for pair in items} - set(campaign.scale.values())
    if off_scale:
        raise GoldMissing(f"the gold grade {min(off_scale)} is not on the campaign's scale")


class _Filling(SimulatedCampaign):
    """The work of `fill`: assessors take turns, a topic each time."""

    def __init__(self, campaign: Campaign, share: float, most_each: int | None) -> None:
        super().__init__(campaign)
        self.scale = campaign.scale.values()
        self.lowest = campaign.scale.relevant_grade
        self.n_open = self._places().count()
        self.n_wanted = math.ceil(share * self.n_open)
        self.most_each = most_each

    def _places(self) -> QuerySet[Slot]:
        return self.campaign.slots.filter(purpose=Slot.Purpose.JUDGE).exclude(state=Slot.State.DONE)

    def run(self, members: Sequence[MixMember], seed: int, say: Say) -> int:
        judges = self._judges(members, seed)
        per_topic = self.campaign.items.values("topic").annotate(n=Count("pk")).values_list("n", flat=True)
        # One more than a topic has: then the first topic held is whole.
        session = min(max(per_topic, default=0) + 1, math.ceil(self.n_wanted / len(judges)))
        n_judged, at_work = 0, list(judges)
        while at_work and self._n_missing() > 0:
            for judge in list(at_work):
                n = self._session(judge, min(session, self._n_missing()))
                n_judged += n
                if not n:
                    release_all(assessor=judge.assessor)
                    at_work.remove(judge)
            say(f"{n_judged:,} simulated judgments")
        for judge in at_work:
            release_all(assessor=judge.assessor)
        return n_judged

    def _n_missing(self) -> int:
        """Return how many places are to be filled yet."""
        return self.n_wanted - (self.n_open - self._places().count())

    def _judges(self, members: Sequence[MixMember], seed: int) -> list[_Judge]:
        streams = np.random.SeedSequence(seed).spawn(len(members))
        with transaction.atomic():
            if not self.campaign.is_simulated:
                Campaign.objects.filter(pk=self.campaign.pk).update(is_simulated=True)
            judges = []
            for member, stream in zip(members, streams, strict=True):
                rng = np.random.default_rng(stream)
                assessor = self.assessor(member.username, Assessor.Tier.BRONZE)
                effect = ASSESSOR_EFFECT * rng.standard_normal()
                judges.append(_Judge(assessor, member, rng, effect, assessor.n_judged))
            mix = Counter(member.spelling for member in members)
            words = ", ".join(f"{spelling}={n}" for spelling, n in mix.items())
            record("simulated assessors", self.campaign, mix=words, seed=seed)
        return judges

    def _session(self, judge: _Judge, n: int) -> int:
        """Let one assessor judge a topic, or what is left of it; return the number of judgments."""
        if self.most_each is not None:
            n = min(n, self.most_each - judge.n_judged)
        if n <= 0:
            return 0
        with transaction.atomic():  # one commit a topic
            held = claim(assessor=judge.assessor, n=n).items
            # What is held of another topic waits until that topic is whole.
            first_topic = [item for item in held if item.topic_id == held[0].topic_id][:n]
            if first_topic:
                self._judge_topic(judge, first_topic)
        judge.n_judged += len(first_topic)
        return len(first_topic)

    def _judge_topic(self, judge: _Judge, held: Sequence[LeasedItem]) -> None:
        pairs = [self.pair(item.item_id) for item in held]
        grades = np.array([self.truth[pair] for pair in pairs])
        shares = [self.share(pair) for pair in pairs]
        given = judge.member.model.grades(judge.rng, grades, shares, self.scale, self.lowest)
        quits_after = judge.member.model.quits_after((grades >= self.lowest).astype(np.int64))
        seconds = Pace().seconds(
            (given >= self.lowest).astype(np.int64),
            judge.rng.standard_normal(len(held)),
            effect=judge.effect + TOPIC_EFFECT * judge.rng.standard_normal(),
            quits_after=quits_after,
        )
        for item, grade, second in zip(held, given, seconds, strict=True):
            self.give(judge.assessor, item, grade, float(second))
