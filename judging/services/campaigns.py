"""Setting a campaign up and running it: scale, assessors, gold checks, opening, closing."""

import random
import secrets
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db import IntegrityError, transaction

from judging.judging_orders import RANDOM_ORDER
from judging.kinds import DEFAULT_KIND, kind_keys
from judging.label_aggregation import label_score_keys
from judging.models import (
    Assessor,
    Campaign,
    CampaignTopic,
    Collection,
    Document,
    Grade,
    Item,
    Scale,
    Slot,
    Topic,
)
from judging.scheduler import N_POSITIONS, plan_checks, positions
from judging.services.check_gold import as_allotted, gold_by_grade, in_turn, told_by_topic
from judging.services.collections import really_changed
from judging.services.errors import AssessorKnown, KindUnknown, LabelScoreUnknown, NameTaken, Refused
from judging.services.leases import lock_requests, release_all
from judging.services.opening import opening
from judging.services.orders import refuse_judgments, refuse_order
from touchstone.models import User, record

DEFAULT_GRADES = [
    (0, "Not relevant", 0.0),
    (1, "Marginal", 1.0),
    (2, "Relevant", 2.0),
    (3, "Highly relevant", 3.0),
]


class CampaignNotReady(Refused):
    status = 409
    title = "The campaign cannot be opened yet"


def create_campaign(
    *,
    collection: Collection,
    name: str,
    user: User | None,
    grades: Sequence[tuple[int, str, float]],
    **fields: Any,
) -> Campaign:
    """Create a campaign with a scale of its own."""
    relevant_grade = fields.pop("relevant_grade", 1)
    if fields.get("kind", DEFAULT_KIND) not in kind_keys():
        raise KindUnknown
    refuse_judgments(fields.get("judging_order", RANDOM_ORDER), fields.get("judgments_per_item", 1))
    try:
        with transaction.atomic():
            scale = Scale.objects.create(name=f"Scale of {name}", relevant_grade=relevant_grade)
            Grade.objects.bulk_create(
                Grade(scale=scale, value=value, label=label, gain=gain) for value, label, gain in grades
            )
            campaign = Campaign.objects.create(
                collection=collection, name=name, scale=scale, created_by=user, **fields
            )
            record("created", campaign, actor=user, name=name)
    except IntegrityError as error:
        if Campaign.objects.filter(name=name, deleted_at=None).exists():
            raise NameTaken from error
        raise
    return campaign


def change_campaign(*, campaign: Campaign, changes: Mapping[str, Any], actor: User | None) -> None:
    """Set the fields that really differ: what may change after the draw, which the caller decides."""
    changed = really_changed(campaign, changes)
    if not changed:
        return
    try:
        with transaction.atomic():
            if "judging_order" in changed:
                refuse_order(campaign, changed["judging_order"])
            Campaign.objects.filter(pk=campaign.pk).update(**changed)
            record("changed", campaign, actor=actor, fields=sorted(changed))
    except IntegrityError as error:
        if (
            Campaign.objects.filter(name=changed.get("name"), deleted_at=None)
            .exclude(pk=campaign.pk)
            .exists()
        ):
            raise NameTaken from error
        raise


def add_assessor(
    *, campaign: Campaign, user: User, tier: str, kind: str = Assessor.Kind.HUMAN, actor: User | None = None
) -> Assessor:
    with transaction.atomic():
        assessor = Assessor.objects.create(campaign=campaign, user=user, tier=tier, kind=kind)
        record("added assessor", campaign, actor=actor, assessor=user.pk, tier=tier)
    return assessor


def add_by_username(
    *, campaign: Campaign, username: str, tier: str, actor: User | None
) -> tuple[Assessor, str | None]:
    """Add the user of this name; a name nobody has becomes an account, whose password is returned and nowhere kept."""
    password = secrets.token_urlsafe(12)
    try:
        with transaction.atomic():
            user, is_new = User.objects.get_or_create(username=username)
            if is_new:
                user.set_password(password)
                user.save(update_fields=["password"])
            made = add_assessor(campaign=campaign, user=user, tier=tier, actor=actor)
    except IntegrityError as error:
        if Assessor.objects.filter(campaign=campaign, user__username=username).exists():
            raise AssessorKnown(username) from error
        raise
    return made, password if is_new else None


def set_status(*, assessor: Assessor, status: str, actor: User | None, **detail: Any) -> None:
    """Pause or resume an assessor; their judgments stay, and open leases go back at once. `detail` says why."""
    with transaction.atomic():
        lock_requests(assessor)  # else one in flight might lease what is released here
        Assessor.objects.filter(pk=assessor.pk).update(status=status)
        if status == Assessor.Status.SUSPENDED:
            release_all(assessor=assessor)
        record(f"set {status}", assessor.campaign, actor=actor, assessor=assessor.user_id, **detail)


def set_score_and_costs(
    *,
    campaign: Campaign,
    bronze_score: str,
    cost_per_judgment: float | None,
    cost_per_gold: float | None,
    actor: User | None,
) -> None:
    """Say what the audit's classes are made of, and what judgments cost. Neither touches a judgment."""
    if bronze_score not in label_score_keys():
        raise LabelScoreUnknown
    with transaction.atomic():
        fields = {"cost_per_judgment": cost_per_judgment, "cost_per_gold": cost_per_gold}
        Campaign.objects.filter(pk=campaign.pk).update(bronze_score=bronze_score, **fields)
        record("set score and costs", campaign, actor=actor, score=bronze_score, **fields)


def set_assessor_rules(
    *,
    assessor: Assessor,
    quota: int | None,
    team: str,
    first_topics: Iterable[Topic],
    actor: User | None,
) -> None:
    """Say how much the assessor may judge, for which team, and which topics they get before all others."""
    with transaction.atomic():
        Assessor.objects.filter(pk=assessor.pk).update(quota=quota, team=team)
        assessor.first_topics.set(first_topics)
        rules = {"quota": quota, "team": team}
        record("set rules", assessor.campaign, actor=actor, assessor=assessor.user_id, **rules)


def set_topic_teams(*, campaign: Campaign, teams: Mapping[int, str], actor: User | None) -> None:
    """Keep topics for the team named, or open them to everybody (an empty name)."""
    with transaction.atomic():
        rules = [
            CampaignTopic(campaign=campaign, topic_id=topic, team=team, check_rate=campaign.gold_check_rate)
            for topic, team in teams.items()
        ]
        CampaignTopic.objects.bulk_create(
            rules, update_conflicts=True, unique_fields=["campaign", "topic"], update_fields=["team"]
        )
        record("set teams", campaign, actor=actor, n_topics=len(rules))


def open_campaign(*, campaign: Campaign, actor: User | None) -> None:
    """Let its assessors judge; never what was deleted, nor anything of a deleted collection."""
    with transaction.atomic():
        # First the row, then a look at the collection: deletion locks all campaigns before it hides their collection.
        Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
        refusals = opening(campaign).refusals
        if refusals:
            raise CampaignNotReady("; ".join(refusals))
        Campaign.objects.filter(pk=campaign.pk).update(state=Campaign.State.OPEN)
        record("opened", campaign, actor=actor)


def close_campaign(*, campaign: Campaign, actor: User | None) -> None:
    with transaction.atomic():
        Campaign.objects.filter(pk=campaign.pk).update(state=Campaign.State.CLOSED)
        record("closed", campaign, actor=actor)


def open_slots(*, items: Sequence[Item], purpose: str, n_each: int, seed: int) -> None:
    """Open `n_each` slots of the purpose for every item, each at a random place in the order of its topic.

    A slot that is there already stays as it is: an item that two audits select is judged once.
    """
    wanted = [(item, number) for item in items for number in range(1, n_each + 1)]
    is_audit = purpose in (Slot.Purpose.AUDIT, Slot.Purpose.SILVER)
    _create_slots(wanted, purpose, positions(len(wanted), seed), is_audit)


def open_numbered_slots(*, items: Sequence[tuple[Item, int]], seed: int) -> None:
    """Want one judgment of each item, under this number; a slot that is there already stays as it is."""
    _create_slots(items, Slot.Purpose.JUDGE, _places_by_topic(items, seed), ignore_conflicts=True)


def _create_slots(
    wanted: Iterable[tuple[Item, int]], purpose: str, places: Iterable[int], ignore_conflicts: bool = False
) -> None:
    Slot.objects.bulk_create(
        (
            Slot(
                item=item,
                purpose=purpose,
                number=number,
                campaign_id=item.campaign_id,
                topic_id=item.topic_id,
                position=place,
            )
            for (item, number), place in zip(wanted, places, strict=True)
        ),
        batch_size=2000,
        ignore_conflicts=ignore_conflicts,
    )


def _places_by_topic(wanted: Iterable[tuple[Item, int]], seed: int) -> Iterator[int]:
    """Yield a place for each wanted slot: in every topic the same ones, whatever other topics come with it."""
    rng: dict[int, random.Random] = {}
    for item, _ in wanted:
        if item.topic_id not in rng:
            rng[item.topic_id] = random.Random(f"{seed} {item.topic.topic_id}")
        yield rng[item.topic_id].randrange(N_POSITIONS)


def want_judgments(*, items: Sequence[Item], k: int, seed: int) -> None:
    """Want k judgments of every item, new ones and such as have been checks or were imported.

    Nobody judges an item twice: k slots more could not be filled by those who met it as a check. So the slots it has
    as a check become slots of judgments, filled ones first, and only what is then missing is opened. A check that
    somebody holds at this moment stays one, and counts; nobody is waited for, and nobody has to wait.
    """
    known = Slot.objects.filter(item__in=items, purpose__in=[Slot.Purpose.JUDGE, Slot.Purpose.CHECK])
    at_rest = known.filter(purpose=Slot.Purpose.CHECK).exclude(state=Slot.State.LEASED)
    free = set(at_rest.select_for_update(no_key=True, skip_locked=True).values_list("pk", flat=True))
    asked: dict[uuid.UUID, list[Slot]] = defaultdict(list)
    for slot in known.order_by("number"):
        asked[slot.item_id].append(slot)
    wanted: list[tuple[Item, int]] = []
    for item in items:
        mine = asked[item.pk]
        numbers = [n for n in range(1, k + 1) if not _has(mine, n)]
        checks = [slot for slot in mine if slot.purpose == Slot.Purpose.CHECK]
        done = [slot for slot in checks if slot.pk in free and slot.state == Slot.State.DONE]
        waiting = [slot for slot in checks if slot.pk in free and slot.state == Slot.State.OPEN]
        n_held = len(checks) - len(done) - len(waiting)
        n_open = max(0, len(numbers) - len(done) - n_held)
        for slot in [*done[: len(numbers)], *waiting[:n_open]]:
            _make_judgment_slot(slot, numbers.pop(0))
        n_missing = max(0, n_open - len(waiting))
        wanted += [(item, number) for number in numbers[:n_missing]]
    _create_slots(wanted, Slot.Purpose.JUDGE, _places_by_topic(wanted, seed))


def _has(slots: Iterable[Slot], number: int) -> bool:
    return any(slot.purpose == Slot.Purpose.JUDGE and slot.number == number for slot in slots)


def _make_judgment_slot(slot: Slot, number: int) -> None:
    Slot.objects.filter(pk=slot.pk).update(purpose=Slot.Purpose.JUDGE, number=number)


def add_check_slots(
    *,
    campaign: Campaign,
    seed: int,
    new_items: Mapping[int, int],
    undrawn: Callable[[str], Sequence[str]],
    grades: Mapping[int, Sequence[int]] | None = None,
) -> int:
    """Make unannounced gold checks, and decoys where checks are shown more often than other items.

    `new_items` says how many items each topic (by its key) has just got; what earlier batches made stays. Checks are
    never items drawn so far: whoever met one as a check could not fill a wanted judgment of it. `undrawn` gives the
    pooled documents of a topic that were not drawn. `grades` says of how many checks of a topic the grade is 0, 1, ...;
    without it the grades are taken in turn. Returns how many items.
    """
    topics = list(campaign.collection.topics.filter(pk__in=new_items).order_by("pk"))
    rng = {topic.pk: random.Random(f"{seed} {topic.topic_id}") for topic in topics}
    gold, told = gold_by_grade(campaign, list(rng)), told_by_topic(campaign, topics)
    here, scale = _items_by_topic(campaign, topics), campaign.scale.values()
    rules = CampaignTopic.objects.filter(campaign=campaign, topic__in=topics)
    earlier = dict(rules.values_list("topic_id", "check_rate"))
    made: list[tuple[Item, int]] = []
    rates = []
    with transaction.atomic():
        for topic in topics:
            pooled = _pooled_documents(campaign, undrawn(topic.topic_id)) if topic.pk in gold else set()
            answers = (
                in_turn(gold[topic.pk], rng[topic.pk])
                if grades is None
                else as_allotted(
                    gold[topic.pk],
                    dict(zip(scale, grades.get(topic.pk, ()), strict=False)),
                    pooled.__contains__,
                    rng[topic.pk],
                )
            )
            # Documents that no run returned would look odd among the others: they come last.
            answers.sort(key=lambda document: document not in pooled)
            others = sorted(pooled - told[topic.pk] - here[topic.pk])
            rng[topic.pk].shuffle(others)
            n_new = new_items[topic.pk]
            plan = plan_checks(
                n_items=n_new,
                judgments_per_item=campaign.judgments_per_item,
                gold_rate=campaign.gold_check_rate,
                n_gold=len(answers),
                max_exposures=campaign.gold_check_exposures,
                decoys_per_check=campaign.decoys_per_check,
                n_undrawn=len(others),
            )
            chosen = answers[: plan.n_checks] + others[: plan.n_decoys]
            items = [Item(campaign=campaign, topic=topic, document_id=document) for document in chosen]
            made += [(item, plan.exposures) for item in items]
            before = earlier.get(topic.pk, plan.rate)
            rate = before + (plan.rate - before) * n_new / max(n_new, len(here[topic.pk]))
            rates.append(CampaignTopic(campaign=campaign, topic=topic, check_rate=rate))
        Item.objects.bulk_create([item for item, _ in made], batch_size=2000)
        slots = [(item, number) for item, n_each in made for number in range(1, n_each + 1)]
        _create_slots(slots, Slot.Purpose.CHECK, _places_by_topic(slots, seed))
        CampaignTopic.objects.bulk_create(
            rates, update_conflicts=True, unique_fields=["campaign", "topic"], update_fields=["check_rate"]
        )
    return len(made)


def _items_by_topic(campaign: Campaign, topics: Sequence[Topic]) -> dict[int, set[int]]:
    """Return by topic the documents that are items of the campaign."""
    found: dict[int, set[int]] = defaultdict(set)
    for topic, document in campaign.items.filter(topic__in=topics).values_list("topic_id", "document_id"):
        found[topic].add(document)
    return found


def _pooled_documents(campaign: Campaign, doc_ids: Sequence[str]) -> set[int]:
    found = Document.objects.filter(collection=campaign.collection, doc_id__in=doc_ids)
    return set(found.values_list("pk", flat=True))
