"""Audits: which judged items a higher tier judges again, at random, by a recorded strategy."""

import secrets
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Coalesce
from django.utils import timezone
from numpy.typing import NDArray

from judging.models import Assessor, Campaign, Item, Slot
from judging.services.campaigns import open_slots
from sampling.audit_plan import Auditable, items_of_next_audit
from sampling.draws import permanent_random_numbers
from sampling.frames import newest_draw
from sampling.measures.families import FloatArray, Measure
from sampling.models import Audit, AuditEntry, AuditSchedule, AuditTier, Draw, DrawEntry
from sampling.services.audit_schedules import has_ended, last_due_time, next_look
from sampling.services.auditable import (
    NOT_DRAWN,
    AuditRefused,
    audit_measure,
    auditable,
    draws_without_audits,
    refuse_foreign,
    refuse_gold_judges,
)
from sampling.services.census import census_measure, census_probabilities, refuse_question
from sampling.services.layout import BATCH
from sampling.services.learned_audits import (
    GoldSpread,
    chosen_gold_fit,
    fixed_gold_fit,
    gold_spread,
    has_learned,
)
from sampling.services.topic_audits import auditable_topics, fitting_schedules, refuse_strategy
from sampling.strategies import DEFAULT_STRATEGY, strategy_keys, strategy_of
from sampling.whole_topics import topic_numbers
from touchstone import jobs
from touchstone.models import Job, User, record

PURPOSES: dict[str, Slot.Purpose] = {
    AuditTier.GOLD: Slot.Purpose.AUDIT,
    AuditTier.SILVER: Slot.Purpose.SILVER,
}


def audit(
    *,
    campaign: Campaign,
    items_each_time: float | None = None,
    items_in_total: float | None = None,
    strategy: str = DEFAULT_STRATEGY,
    tier: str = AuditTier.GOLD,
    gold_fit: str | None = None,
    measure: str = "",
    run: str = "",
    against: str = "",
    seed: int | None = None,
    joined: Campaign | None = None,
    user: User | None = None,
) -> Audit | None:
    """Select judged items at random for a tier; None when the planned number has been reached.

    Poisson with one permanent random number an item and tier, so a later audit contains the earlier ones, whatever
    their strategies. Where whole topics are audited it is one number a topic, and the audit waits until all that was
    drawn is judged: which topics are done first is not random. Probabilities rest on bronze grades, gold checks and
    gold of other folds, never on what an audit brought on the item's own fold. Whoever audits sees no earlier grade.
    `seed` is of the tier's first audit; later ones keep it, as they keep `gold_fit` once an audit has learned.
    `measure` is what influence and learning go by; empty: that of the newest draw, as for whole topics always. `joined`
    is a campaign whose audits of the tier give the random numbers: a document of both is then audited as by one audit
    of both. A census has no size and is of `run`, or of its difference from `against`: it takes all that counts there,
    is no declared look, and counts towards the tier's total.
    """
    if strategy not in strategy_keys():
        raise AuditRefused(f"strategy must be one of {strategy_keys()}, got {strategy!r}")
    has_size = (items_each_time, items_in_total) != (None, None)
    refuse_question(campaign, strategy, run=run, against=against, has_size=has_size)
    takes_all = strategy_of(strategy).takes_all
    with transaction.atomic():
        with connection.cursor() as cursor:  # one audit of a campaign at a time
            cursor.execute("SELECT 1 FROM judging_campaign WHERE id = %s FOR UPDATE", [campaign.pk])
        refuse_foreign(campaign)
        refuse_gold_judges(campaign)
        newest = newest_draw(campaign)
        if newest is None:
            raise AuditRefused(NOT_DRAWN)
        refuse_strategy(campaign, strategy)
        parsed = _measure_of_audit(campaign, newest, strategy, measure)
        by_topic = parsed is None
        items = complete_items(campaign)
        n_drawn = sum(campaign.draws.values_list("n_drawn", flat=True))
        if by_topic and len(items) < n_drawn:
            raise AuditRefused(_still_judged(n_drawn - len(items)))
        already = _expected_so_far(campaign, tier)
        sizes = (items_each_time, items_in_total)
        n_more = _next_size(already, sizes, len(items), n_drawn) if not takes_all else None
        if not items or (n_more is None and not takes_all):
            return None
        seed = _seed(campaign, tier, seed if joined is None else _seed_of(joined, campaign, tier, seed))
        learns = strategy_of(strategy).learns
        fit = chosen_gold_fit(campaign, gold_fit) if learns else ""
        told = gold_spread(campaign, items, parsed) if learns and parsed is not None else None
        of_runs = tuple(filter(None, (run, against)))
        open_items = _auditable(campaign, newest, items, tier, parsed, told, of_runs)
        if n_more is not None:
            pi = open_items.probabilities(strategy, n_more)
        else:
            pi = census_probabilities(open_items, run, against)
            n_more = float((pi - open_items.earlier).sum())
            if n_more == 0:
                return None
        selected = _numbers(items, seed, by_topic=by_topic) < pi
        made = Audit.objects.create(
            campaign=campaign,
            sequence=campaign.audits.count() + 1,
            strategy=strategy,
            tier=tier,
            seed=seed,
            expected_in_total=already + n_more,
            n_eligible=len(items),
            n_selected=int(np.count_nonzero(selected)),
            gold_fit=fit,
            measure=parsed.name if parsed else newest.parameters["measure"],
            learned_from=(told.n_audits if told else 0) if learns else None,
            run=run,
            against=against,
            **({} if by_topic or takes_all else next_look(campaign, tier, n_drawn)),
        )
        _add_entries(made, items, pi, selected)
        about = {"sequence": made.sequence, "n_selected": made.n_selected, "tier": tier, "strategy": strategy}
        about |= {name: runs for name, runs in (("run", run), ("against", against)) if runs}
        if joined is not None:
            about["joined"] = str(joined.pk)
        record("audited", campaign, actor=user, **about)
    return made


def _measure_of_audit(campaign: Campaign, newest: Draw, strategy: str, measure: str) -> Measure[Any] | None:
    """Return what the audit goes by; None where it takes whole topics, which go by the measure of their draw."""
    if not strategy_of(strategy).takes_topics:
        parsed = audit_measure(campaign, newest, measure)
        return census_measure(parsed) if strategy_of(strategy).takes_all else parsed
    if measure:
        raise AuditRefused("an audit of whole topics goes by the measure of its draw: ask for no other")
    return None


def _expected_so_far(campaign: Campaign, tier: str) -> float:
    """Return how many items the tier's audits expect so far."""
    earlier = campaign.audits.filter(tier=tier, declaration="").order_by("sequence")
    return earlier.values_list("expected_in_total", flat=True).last() or 0.0


def _next_size(
    already: float, sizes: tuple[float | None, float | None], n_judged: int, n_drawn: int
) -> float | None:
    """Return how many items more the next audit expects, of sizes each time and in total; None for none."""
    each_time, in_total = sizes
    if each_time is None or in_total is None:
        raise AuditRefused("say how many items to audit, and how many in all")
    return items_of_next_audit(
        already=already,
        each_time=each_time,
        in_total=in_total,
        n_judged=min(n_judged, n_drawn),
        n_drawn=n_drawn,
    )


def _auditable(
    campaign: Campaign,
    newest: Draw,
    items: list[Item],
    tier: str,
    measure: Measure[Any] | None,
    told: GoldSpread | None,
    of_runs: tuple[str, ...],
) -> Auditable:
    """Return what an audit can select; without a measure whole topics, by that of their draw."""
    if measure is None:
        return auditable_topics(campaign, newest, items, tier)
    return auditable(
        campaign,
        newest,
        items,
        tier,
        measure=measure,
        gold_spread=told.variance if told else None,
        has_learned=has_learned(campaign, tier),
        of_runs=of_runs,
    )


def _numbers(items: list[Item], seed: int, *, by_topic: bool) -> FloatArray:
    """Return the permanent random number of every item, or of its topic."""
    topics = [item.key.topic for item in items]
    if by_topic:
        return topic_numbers(topics, seed)
    return permanent_random_numbers(topics, [item.key.document for item in items], seed)


def _still_judged(n_missing: int) -> str:
    documents = "1 document is" if n_missing == 1 else f"{n_missing:,} documents are"
    return f"an audit of whole topics waits until all drawn documents are judged: {documents} not"


def _add_entries(made: Audit, items: list[Item], pi: FloatArray, selected: NDArray[np.bool_]) -> None:
    """Record each item's probability, and open a slot for each that was selected."""
    rows = zip(items, pi.tolist(), selected.tolist(), strict=True)
    AuditEntry.objects.bulk_create(
        (
            AuditEntry(audit=made, item=item, inclusion_probability=probability, selected=is_selected)
            for item, probability, is_selected in rows
        ),
        batch_size=BATCH,
    )
    chosen = [item for item, is_selected in zip(items, selected, strict=True) if is_selected]
    chosen.sort(key=lambda item: item.pk)
    open_slots(items=chosen, purpose=PURPOSES[made.tier], n_each=1, seed=made.seed + made.sequence)


def complete_items(campaign: Campaign) -> list[Item]:
    """Return the drawn items whose required judgments are all in, in frame order."""
    return list(complete_items_query(campaign))


def complete_items_query(campaign: Campaign) -> QuerySet[Item]:
    """Return the drawn items whose required judgments are all in, in frame order, not read yet.

    A check that a later batch drew has slots of a check that count. Where a file is all there is, an item wants as many
    judgments as the file has of it.
    """
    fewest = Coalesce("judgments_wanted", Value(campaign.judgments_per_item))
    is_done = Q(slots__purpose__in=["judge", "check"], slots__state="done")
    return (
        campaign.items.filter(Exists(DrawEntry.objects.filter(item=OuterRef("pk"))))
        .annotate(n_done=Count("slots", filter=is_done))
        .filter(n_done__gte=fewest)
        .select_related("topic", "document")
        .only("topic__topic_id", "document__doc_id", "campaign_id")
        .order_by("topic__topic_id", "document__doc_id")
    )


def _seed_of(joined: Campaign, campaign: Campaign, tier: str, seed: int | None) -> int:
    """Return the seed of another campaign's audits of the tier, which this campaign's must not contradict."""
    if seed is not None:
        raise AuditRefused(
            "the other campaign's audits have a seed already: give a seed or a campaign, not both"
        )
    if joined.pk == campaign.pk:
        raise AuditRefused(
            "a campaign's own audits always have the same random numbers: choose another campaign"
        )
    first, own = (
        one.audits.filter(tier=tier, declaration="").order_by("sequence").first()
        for one in (joined, campaign)
    )
    if first is None:
        raise AuditRefused(f"{joined.name} has no audit of the {tier} tier that was drawn here")
    if own is not None and own.seed != first.seed:
        raise AuditRefused(
            f"{campaign.name} has audits of the {tier} tier already, with other random numbers: one audit of both "
            "campaigns starts with the first audit of either"
        )
    return first.seed


def _seed(campaign: Campaign, tier: str, seed: int | None) -> int:
    """Return the seed of the tier's audit numbers: fixed at its first audit, never the draw's or another tier's."""
    first = campaign.audits.filter(tier=tier, declaration="").order_by("sequence").first()
    if first is not None:
        return first.seed
    taken = set(campaign.draws.values_list("seed", flat=True))
    if seed in taken:  # the numbers of drawn items all lie below their probability there
        raise AuditRefused(f"the audit's seed must differ from the draw's, got {seed}")
    taken |= set(campaign.audits.values_list("seed", flat=True))
    if seed in taken:
        raise AuditRefused(f"the seed must differ from that of the other tier's audits, got {seed}")
    return secrets.randbits(62) if seed is None else seed


# -- as jobs --------------------------------------------------------------------------------------------------


def queue_audit(*, campaign: Campaign, user: User | None, **options: int | str | None) -> Job | None:
    """Queue an audit of the campaign: the schedule's, or with what `audit` takes. None while another one waits."""
    refuse_foreign(campaign)
    refuse_gold_judges(campaign)
    if options.get("strategy") is not None:
        refuse_strategy(campaign, str(options["strategy"]))
        refuse_question(
            campaign,
            str(options["strategy"]),
            run=str(options.get("run") or ""),
            against=str(options.get("against") or ""),
            has_size=any(options.get(name) is not None for name in ("items_each_time", "items_in_total")),
        )
    given = {name: value for name, value in options.items() if value is not None}
    payload = {"campaign": str(campaign.pk), **({"audit": given} if given else {})}
    return jobs.enqueue(kind="audit", payload=payload, active_key=str(campaign.pk), user=user)


def start_due_audits() -> None:
    """Queue the audits that are due. Idempotent: one job a schedule and due time, and of missed times the newest.

    Where gold judges judge the drawn items themselves, and of samples without audits, none is due.
    """
    now = timezone.now()
    gold_judges = Assessor.objects.filter(campaign=OuterRef("campaign"), tier=Assessor.Tier.GOLD).judges()
    active = AuditSchedule.objects.filter(is_active=True, campaign__state=Campaign.State.OPEN)
    unaudited = draws_without_audits().filter(campaign=OuterRef("campaign"))
    auditable_schedules = fitting_schedules(active.exclude(Exists(gold_judges)).exclude(Exists(unaudited)))
    for schedule in auditable_schedules:
        due = last_due_time(schedule, now)
        if due is not None and not has_ended(schedule):
            jobs.enqueue(
                kind="audit",
                payload={"campaign": str(schedule.campaign_id)},
                period_key=f"audit:{schedule.pk}:{due.isoformat()}",
            )


def run_audit(*, campaign_id: str, user: User | None = None, **options: Any) -> Audit | None:
    """Audit as a job asks: with the sizes, strategy and tier given, else with the schedule's."""
    campaign = Campaign.objects.select_related("collection", "scale").get(pk=campaign_id)
    if not campaign.draws.exists():
        raise AuditRefused(NOT_DRAWN)
    if not options:
        schedule = AuditSchedule.objects.filter(campaign=campaign).first()
        if schedule is None:
            raise AuditRefused("the campaign has no audit schedule: say how many items to audit")
        fields = ("items_each_time", "items_in_total", "strategy", "tier", "measure")
        options = {name: getattr(schedule, name) for name in fields}
        options["gold_fit"] = fixed_gold_fit(campaign) or schedule.gold_fit
        if strategy_of(schedule.strategy).takes_topics:
            options["measure"] = ""  # of a plan from before the draw
        n_drawn = sum(campaign.draws.values_list("n_drawn", flat=True))
        if strategy_of(schedule.strategy).takes_topics and len(complete_items(campaign)) < n_drawn:
            return None  # the next one will find all judged
    return audit(campaign=campaign, user=user, **options)
