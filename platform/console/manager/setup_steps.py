"""The steps from nothing to an open campaign: what each is about, and what is done or missing."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.urls import reverse

from judging.models import Assessor, Campaign, Collection, Document, GoldAnswer, Run, Topic
from sampling.models import Audit, AuditSchedule, Draw
from sampling.services.auditable import draws_without_audits

NAMES = {
    "collection": "Collection",
    "documents": "Topics and documents",
    "runs": "Runs and gold answers",
    "scale": "Scale and guidelines",
    "design": "Design",
    "people": "Assessors",
    "gold": "Gold checks and audits",
    "open": "Open",
}
OF_COLLECTION = ("collection", "documents", "runs", "scale")
OF_CAMPAIGN = tuple(NAMES)
WISHES = {"gold"}  # a campaign opens without; its numbers are then as raw as the grades


@dataclass(frozen=True)
class Step:
    """One step. `url` is empty where another must come first."""

    key: str
    name: Any
    url: str
    is_done: bool
    words: str

    @property
    def is_wish(self) -> bool:
        return self.key in WISHES


def collection_facts(collections: Any) -> Any:
    """Return the collections with what set-up asks about them; nothing is counted that can be large."""
    runs = Run.objects.filter(collection=OuterRef("pk")).order_by().values("collection")
    topics = Topic.objects.filter(collection=OuterRef("pk")).order_by().values("collection")
    return collections.annotate(
        n_topics=Coalesce(Subquery(topics.annotate(n=Count("pk")).values("n")), 0),
        n_runs=Coalesce(Subquery(runs.annotate(n=Count("pk")).values("n")), 0),
        has_documents=Exists(Document.objects.filter(collection=OuterRef("pk"))),
        has_gold=Exists(GoldAnswer.objects.filter(topic__collection=OuterRef("pk"))),
    )


def campaign_facts(campaigns: Any) -> Any:
    """Return the campaigns with what set-up asks about them."""
    people = Assessor.objects.filter(campaign=OuterRef("pk"), status=Assessor.Status.ACTIVE)
    gold = people.filter(tier=Assessor.Tier.GOLD)
    judges = people.judges()

    def number(rows: Any) -> Any:
        return Coalesce(Subquery(rows.order_by().values("campaign").annotate(n=Count("pk")).values("n")), 0)

    return campaigns.annotate(
        n_judges=number(judges),
        n_gold=number(gold),
        is_gold_alone=Exists(judges.filter(tier=Assessor.Tier.GOLD)),
        has_draw=Exists(Draw.objects.filter(campaign=OuterRef("pk"))),
        has_no_audits=Exists(draws_without_audits().filter(campaign=OuterRef("pk"))),
        has_audit=Exists(Audit.objects.filter(campaign=OuterRef("pk"))),
        has_schedule=Exists(AuditSchedule.objects.filter(campaign=OuterRef("pk"), is_active=True)),
    )


def steps(collection: Any, campaign: Any) -> list[Step]:
    """Return all steps, by what is there: either may be None."""
    states = [*_of_collection(collection), *_of_campaign(collection, campaign)]
    return [
        Step(key, NAMES[key], _url(key, collection, campaign) if can else "", is_done, words)
        for key, can, is_done, words in states
    ]


def _of_collection(row: Any) -> list[tuple[str, bool, bool, str]]:
    if row is None:
        first = "Create a collection, or use an existing one."
        wait = "Needs a collection."
        return [
            ("collection", True, False, first),
            ("documents", False, False, wait),
            ("runs", False, False, wait),
        ]
    lacking = [
        *(["topics"] if not row.n_topics else []),
        *(["documents"] if not row.has_documents else []),
    ]
    texts = f"Missing: {', '.join(lacking)}." if lacking else f"{row.n_topics} topics and their documents."
    runs = "1 run." if row.n_runs == 1 else f"{row.n_runs} runs."
    if row.n_runs < 2:
        runs += " A comparison needs two runs."
    if not row.has_gold:
        runs += " Without gold answers there are no gold checks."
    return [
        ("collection", True, True, row.name),
        ("documents", True, not lacking, texts),
        ("runs", True, row.n_runs >= 2, runs),
    ]


def _of_campaign(collection: Any, row: Any) -> list[tuple[str, bool, bool, str]]:
    can_make = collection is not None and bool(collection.n_topics) and collection.has_documents
    if row is None:
        make = "Grades and guidelines." if can_make else "Needs topics and documents."
        wait = "The campaign is created in step 4."
        rest = [(key, False, False, wait) for key in ("design", "people", "gold", "open")]
        return [("scale", can_make, False, make), *rest]
    design = "Items are drawn." if row.has_draw else "Nothing is drawn yet."
    people = (
        ("1 assessor" if row.n_judges == 1 else f"{row.n_judges} assessors") + ", " + f"{row.n_gold} gold."
    )
    if not row.n_judges:
        people = "Nobody can judge yet: add an assessor."
    if row.is_gold_alone:
        people = f"{people[: people.index(',')]}, all gold: they judge the drawn items."
    audits = "Audits are planned." if row.has_schedule else "At least one audit was drawn."
    if not (row.has_schedule or row.has_audit):
        audits = "No audit is planned: the numbers would remain uncorrected."
    if row.has_no_audits:
        audits = "This sample has no audits: every grade is taken as given."
    if row.is_gold_alone:
        audits = "Gold assessors judge every drawn item: no audit is needed."
    needs_no_plan = row.is_gold_alone or row.has_no_audits
    state = {
        Campaign.State.OPEN: "The campaign is open: its assessors can judge.",
        Campaign.State.CLOSED: "The campaign is closed. It can be opened again.",
        Campaign.State.DRAFT: "Not open yet.",
    }
    return [
        ("scale", True, True, row.name),
        ("design", True, row.has_draw, design),
        ("people", True, row.n_judges > 0, people),
        ("gold", True, row.has_schedule or row.has_audit or needs_no_plan, audits),
        ("open", True, row.state == Campaign.State.OPEN, state[row.state]),
    ]


def _url(key: str, collection: Any, campaign: Any) -> str:
    if campaign is not None:
        if key == "design":
            return reverse("console:design", args=[campaign.pk])
        if key == "open":
            return reverse("console:setup", args=[campaign.pk])
        return reverse("console:setup-step", args=[campaign.pk, key])
    if collection is not None:
        return reverse("console:setup-collection", args=[collection.pk, key])
    return reverse("console:setup-new")


def next_missing(rows: list[Step]) -> Step | None:
    """Return the first step before the opening that is not done and can be; wishes come last."""
    open_ones = [step for step in rows if not step.is_done and step.url and step.key != "open"]
    return next((step for step in open_ones if not step.is_wish), None) or next(iter(open_ones), None)


def rail(rows: list[Step], here: str) -> dict[str, Any]:
    """Return what the rail of a step's page shows: the step before, the step after, and what comes next."""
    at = [step.key for step in rows].index(here)
    return {
        "steps": rows,
        "here": rows[at],
        "number": at + 1,
        "back": rows[at - 1] if at else None,
        "forward": rows[at + 1] if at + 1 < len(rows) and rows[at + 1].url else None,
        "missing": next_missing(rows),
    }


def rail_of(campaign_id: Any, here: str) -> dict[str, Any]:
    """Return the rail of a campaign, for a page that stands elsewhere: the design."""
    row = campaign_facts(Campaign.objects.filter(pk=campaign_id)).get()
    collection = collection_facts(Collection.objects.filter(pk=row.collection_id)).get()
    return rail(steps(collection, row), here)
