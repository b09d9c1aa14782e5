"""The training round: documents with a known grade, told at once, before the first item that counts.

An attempt is a pass through all training items. The order of the second attempt is another one.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Count
from django.db.models.functions import Now

from judging.models import Assessor, Campaign, GoldAnswer, Item, TrainingAnswer, TrainingGrant, TrainingItem
from judging.services.errors import (
    AssessorSuspended,
    CampaignNotOpen,
    GradeOffScale,
    TrainingFixed,
    TrainingNotPossible,
    TrainingOver,
)
from touchstone.models import User, record

MOST_TRAINING_ITEMS = 20


# -- the manager's part ---------------------------------------------------------------------------------------


def choose_training_items(
    *, campaign: Campaign, n: int, seed: int, user: User | None = None
) -> list[TrainingItem]:
    """Take n gold answers for training in place of those chosen before: spread over grades, then over topics.

    Never a pair the campaign wants judged or uses as a check: whoever met one here knows its grade.
    """
    if not 0 <= n <= MOST_TRAINING_ITEMS:
        raise TrainingNotPossible(f"choose 0 to {MOST_TRAINING_ITEMS} items, not {n}")
    with transaction.atomic():
        campaign = _lock(campaign)
        _check_nobody_answered(campaign)
        if n and not campaign.items.exists():
            raise TrainingNotPossible(
                "draw the campaign's items first, so that training uses other documents"
            )
        chosen = _spread(_free_gold_answers(campaign), n, random.Random(seed))
        if len(chosen) < n:
            raise TrainingNotPossible(
                f"only {len(chosen)} gold answers are neither drawn nor used as checks; {n} are requested"
            )
        campaign.training_items.all().delete()
        made = TrainingItem.objects.bulk_create(
            TrainingItem(
                campaign=campaign,
                topic_id=answer.topic_id,
                document_id=answer.document_id,
                grade=answer.grade,
                position=position,
            )
            for position, answer in enumerate(chosen, start=1)
            if answer.grade is not None  # always so: `_spread` takes no others
        )
        record("chose training items", campaign, actor=user, items=n)
    return made


def _free_gold_answers(campaign: Campaign) -> list[GoldAnswer]:
    taken = set(Item.objects.filter(campaign=campaign).values_list("topic_id", "document_id"))
    known = GoldAnswer.objects.filter(
        topic__collection=campaign.collection_id, grade__in=campaign.scale.values()
    ).order_by("topic_id", "document_id")
    return [answer for answer in known if (answer.topic_id, answer.document_id) not in taken]


def _spread(answers: Sequence[GoldAnswer], n: int, rng: random.Random) -> list[GoldAnswer]:
    """Take n answers, the grades in turn, and of each grade one whose topic was taken least; in random order."""
    by_grade: dict[int, list[GoldAnswer]] = defaultdict(list)
    for answer in answers:
        if answer.grade is not None:  # never so: those were withdrawn
            by_grade[answer.grade].append(answer)
    for same in by_grade.values():
        rng.shuffle(same)
    times: dict[int, int] = defaultdict(int)
    chosen: list[GoldAnswer] = []
    while len(chosen) < min(n, len(answers)):
        for grade in sorted(by_grade):
            same = by_grade[grade]
            if not same or len(chosen) == n:
                continue
            best = min(range(len(same)), key=lambda place: times[same[place].topic_id])
            answer = same.pop(best)
            times[answer.topic_id] += 1
            chosen.append(answer)
    rng.shuffle(chosen)
    return chosen


def set_training_rules(*, campaign: Campaign, attempts: int, pass_share: float, user: User) -> None:
    """Change how often one may try, and the share right that passes; whoever has passed, has passed."""
    with transaction.atomic():
        Campaign.objects.filter(pk=campaign.pk).update(
            training_attempts=attempts, training_pass_share=pass_share
        )
        record("set training rules", campaign, actor=user, attempts=attempts, pass_share=pass_share)


def set_explanations(*, campaign: Campaign, texts: Mapping[int, str], user: User) -> None:
    """Write the reasons, by position, that a trainee reads with the reference grade."""
    with transaction.atomic():
        campaign = _lock(campaign)
        _check_nobody_answered(campaign)
        for position, text in texts.items():
            campaign.training_items.filter(position=position).update(explanation=text)
        record("wrote training explanations", campaign, actor=user)


def is_fixed(campaign: Campaign) -> bool:
    """Return whether somebody has answered: from then on all trainees get the same training."""
    return TrainingAnswer.objects.filter(item__campaign=campaign).exists()


def _check_nobody_answered(campaign: Campaign) -> None:
    if is_fixed(campaign):
        raise TrainingFixed("an assessor has already answered, and all assessors need the same training")


def _lock(campaign: Campaign) -> Campaign:
    """Return the campaign, its row locked: nobody answers while a manager changes the items, and the reverse."""
    return (
        Campaign.objects.select_for_update(no_key=True, of=["self"])
        .select_related("scale")
        .get(pk=campaign.pk)
    )


def grant_attempt(*, assessor: Assessor, user: User) -> None:
    """Give a trainee who used up the attempts one more."""
    with transaction.atomic():
        Assessor.objects.select_for_update(no_key=True).get(pk=assessor.pk)
        if training_of(assessor=assessor).attempts_left or assessor.trained_at is not None:
            return  # the button was pressed twice, or the trainee was faster
        TrainingGrant.objects.create(assessor=assessor, granted_by=user)
        record("granted a training attempt", assessor.campaign, actor=user, assessor=assessor.user_id)


# -- the trainee's part ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Training:
    """Where an assessor stands: the attempt at hand, the answers in it, which item comes next."""

    attempt: int
    items: list[TrainingItem]  # in the order of this attempt
    answers: dict[int, TrainingAnswer]  # of this attempt, by item
    attempts_allowed: int
    pass_share: float
    is_passed: bool

    @property
    def next_item(self) -> TrainingItem | None:
        return next((item for item in self.items if item.pk not in self.answers), None)

    @property
    def is_complete(self) -> bool:
        return bool(self.items) and self.next_item is None

    @property
    def n_right(self) -> int:
        return sum(answer.grade == item.grade for item in self.items if (answer := self.answers.get(item.pk)))

    @property
    def share_right(self) -> float:
        return self.n_right / len(self.items)

    @property
    def attempts_left(self) -> int:
        """How many attempts there are after the one at hand."""
        return max(0, self.attempts_allowed - self.attempt) if not self.is_passed else 0


def training_of(*, assessor: Assessor, again: bool = False) -> Training:
    """Return where the assessor stands; `again` looks at the next attempt when this one is complete and failed."""
    items = list(assessor.campaign.training_items.select_related("topic", "document"))
    given = list(TrainingAnswer.objects.filter(assessor=assessor))
    return _standing(assessor, items, given, assessor.training_grants.count(), again=again)


def _standing(
    assessor: Assessor, items: list[TrainingItem], given: list[TrainingAnswer], n_grants: int, *, again: bool
) -> Training:
    campaign = assessor.campaign

    def in_attempt(attempt: int) -> Training:
        order = list(items)
        if attempt > 1:
            random.Random(f"{assessor.pk} {attempt}").shuffle(order)
        return Training(
            attempt=attempt,
            items=order,
            answers={answer.item_id: answer for answer in given if answer.attempt == attempt},
            attempts_allowed=campaign.training_attempts + n_grants,
            pass_share=campaign.training_pass_share,
            is_passed=assessor.trained_at is not None,
        )

    newest = in_attempt(max((answer.attempt for answer in given), default=1))
    return in_attempt(newest.attempt + 1) if again and newest.is_complete and newest.attempts_left else newest


def answer(*, assessor: Assessor, position: int, attempt: int, grade: int) -> TrainingAnswer:
    """Store an answer; the last one of an attempt decides. The first answer to an item stands, however often it comes.

    Training is passed when the share of exactly right grades reaches the campaign's threshold.
    """
    with transaction.atomic():
        _lock(assessor.campaign)  # always campaign, then assessor
        assessor = (
            Assessor.objects.select_for_update(no_key=True, of=["self"])
            .select_related("campaign__scale", "user")
            .get(pk=assessor.pk)
        )
        _check_may_train(assessor)
        known = TrainingAnswer.objects.filter(
            assessor=assessor, item__position=position, attempt=attempt
        ).first()
        if known is not None:
            return known
        now = training_of(assessor=assessor, again=True)
        item = next((item for item in now.items if item.position == position), None)
        if item is None or attempt != now.attempt or now.is_complete or now.is_passed:
            raise TrainingOver("load the page again to see where you are")
        if grade not in assessor.campaign.scale.values():
            raise GradeOffScale(f"{grade} is not on the scale")
        made = TrainingAnswer.objects.create(assessor=assessor, item=item, attempt=attempt, grade=grade)
        _decide(assessor)
    return made


def _decide(assessor: Assessor) -> None:
    now = training_of(assessor=assessor)
    if not now.is_complete:
        return
    # Compared in whole answers: 7 of 10 reach a share of 0.7 whatever the last bit of 7 / 10 is.
    has_passed = now.n_right + 1e-9 >= now.pass_share * len(now.items)
    if has_passed:
        Assessor.objects.filter(pk=assessor.pk).update(trained_at=Now())
    verb = "passed training" if has_passed else "failed training"
    record(verb, assessor, actor=assessor.user, attempt=now.attempt, right=now.n_right, of=len(now.items))


def _check_may_train(assessor: Assessor) -> None:
    if assessor.status == Assessor.Status.SUSPENDED:
        raise AssessorSuspended
    if assessor.campaign.state == Campaign.State.CLOSED:
        raise CampaignNotOpen


@dataclass(frozen=True)
class Trainee:
    """A line of the manager's list."""

    assessor: Assessor
    training: Training

    @property
    def is_stuck(self) -> bool:
        return not self.training.is_passed and self.training.is_complete and not self.training.attempts_left


def trainees(*, campaign: Campaign) -> list[Trainee]:
    """Return everybody who has to pass the training, in three queries; who needs the manager comes first."""
    people: Iterable[Any] = (  # Any: an assessor, and the count that is annotated
        campaign.assessors.filter(kind=Assessor.Kind.HUMAN)
        .exclude(tier=Assessor.Tier.GOLD)
        .select_related("user", "campaign")
        .annotate(n_grants=Count("training_grants"))
        .order_by("-id")
    )
    items = list(campaign.training_items.all())
    given: dict[int, list[TrainingAnswer]] = defaultdict(list)
    for row in TrainingAnswer.objects.filter(item__campaign=campaign):
        given[row.assessor_id].append(row)
    rows = [
        Trainee(person, _standing(person, items, given[person.pk], person.n_grants, again=False))
        for person in people
    ]
    return sorted(rows, key=lambda row: not row.is_stuck)
