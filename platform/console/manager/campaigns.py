"""The manager's pages about facts: the overview, campaigns and their assessors, leases, topics of teams."""

import uuid
from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.core.exceptions import SuspiciousOperation
from django.core.paginator import Page, Paginator
from django.db.models import (
    Count,
    Exists,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
)
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from console.forms.campaigns import (
    AssessorForm,
    CampaignEditForm,
    CampaignForm,
    CollectionForm,
    TopicTeamsForm,
)
from console.manager.check_grades import check_grades_shown
from console.manager.stuck import still_stuck_words
from judging.models import Assessor, Campaign, CampaignTopic, Collection, Item, Lease, Run, Slot, Topic
from judging.services import campaigns, leases
from judging.services.access import managers_only
from judging.services.errors import AssessorKnown
from judging.services.progress import documents_of, left_of
from sampling.models import Draw
from sampling.selections import COMPLETE
from touchstone.models import User, user_of

STATUS_WORDS = {
    Assessor.Status.ACTIVE: "can judge again.",
    Assessor.Status.SUSPENDED: "is paused. Open documents were released at once; judgments that still arrive "
    "are kept as surplus. No judgment was deleted.",
}
SHOWN_LEASES = 200
TOPICS_PER_PAGE = 20
ROWS = 20  # of each table of the overview
MOST_LEFT = 10_000  # judgments that are still needed: counted up to here


@managers_only
def overview(request: HttpRequest) -> HttpResponse:
    """All collections and campaigns, by pages; what is left of a campaign is counted, never what is done."""
    user = user_of(request)
    people = Assessor.objects.filter(campaign=OuterRef("pk")).order_by().values("campaign")
    complete = Draw.objects.filter(campaign=OuterRef("pk"), selection=COMPLETE.key)
    campaigns_seen = (
        Campaign.objects.visible_to(user)
        .select_related("collection")
        .annotate(
            n_drawn=Coalesce(Sum("draws__n_drawn"), 0),
            n_of_file=Subquery(complete.values("parameters__judgments")[:1]),
            n_stored=Coalesce(Subquery(people.annotate(n=Sum("n_judged")).values("n")), 0),
        )
        .order_by("-created_at", "pk")  # Meta.ordering does not survive the grouping
    )
    campaign_page: Page[Any] = Paginator(campaigns_seen, ROWS).get_page(request.GET.get("campaigns"))
    left = left_of(list(campaign_page))
    for row in campaign_page:
        row.n_slots = row.n_of_file or row.n_drawn * row.judgments_per_item
        row.n_left = left[row.pk]
        row.n_done = max(0, row.n_slots - row.n_left) if row.n_left < MOST_LEFT else None
    collections = Collection.objects.visible_to(user).order_by("name", "pk")
    collection_page = Paginator(_with_counts(collections), ROWS).get_page(request.GET.get("collections"))
    documents = documents_of(list(collection_page))
    for collection in collection_page:
        collection.n_documents = documents[collection.pk]
    context = {
        "campaigns": campaign_page,
        "collections": collection_page,
        "most": MOST_LEFT,
        "form": CollectionForm(),
    }
    return render(request, "console/manager/overview.html", context)


def _with_counts(collections: QuerySet[Collection]) -> QuerySet[Any]:
    topics = Topic.objects.filter(collection=OuterRef("pk")).order_by().values("collection")
    runs = Run.objects.filter(collection=OuterRef("pk")).order_by().values("collection")
    return collections.annotate(
        n_topics=Coalesce(Subquery(topics.annotate(n=Count("pk")).values("n")), 0),
        n_runs=Coalesce(Subquery(runs.annotate(n=Count("pk")).values("n")), 0),
    )


@managers_only
def new_campaign(request: HttpRequest) -> HttpResponse:
    initial = {"collection": request.GET.get("collection")}
    form = CampaignForm(request.POST or None, initial=initial, user=user_of(request))
    if request.method == "POST" and form.is_valid():
        made = campaigns.create_campaign(user=user_of(request), **form.cleaned_data)
        return redirect("console:design", campaign_id=made.pk)
    collection = _named_collection(request)
    shown = check_grades_shown(collection) if collection else {"needs_collection": True}
    context = {"form": form, **shown}
    return render(request, "console/manager/campaign_new.html", context, status=400 if form.errors else 200)


def _named_collection(request: HttpRequest) -> Collection | None:
    """Return the collection that the address or the form names, if it is one that the user may see."""
    try:
        named = uuid.UUID(request.POST.get("collection") or request.GET.get("collection") or "")
    except ValueError:
        return None
    return Collection.objects.visible_to(user_of(request)).filter(pk=named).first()


@require_POST
@managers_only
def add_assessor(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Add a user as assessor; a name nobody has yet becomes an account whose password is shown once."""
    campaign = get_object_or_404(Campaign, pk=campaign_id)
    form = AssessorForm(request.POST)
    if form.is_valid():
        save_assessor(request, campaign, form)
    else:
        messages.error(request, "; ".join(str(error) for errors in form.errors.values() for error in errors))
    return redirect("console:assessors", campaign_id=campaign_id)


def save_assessor(request: HttpRequest, campaign: Campaign, form: AssessorForm) -> None:
    """Add who is named; what came of it is said on the next page."""
    sent = form.cleaned_data
    try:
        made, password = campaigns.add_by_username(
            campaign=campaign, username=sent["username"], tier=sent["tier"], actor=user_of(request)
        )
    except AssessorKnown:
        messages.error(request, f"{sent['username']} is already an assessor of this campaign.")
        return
    name = made.user.get_username()
    if password:
        messages.success(request, f"New account {name}; its password, shown only now: {password}")
    messages.success(request, f"{name} is now an assessor of this campaign.")


@require_POST
@managers_only
def set_assessor_status(request: HttpRequest, campaign_id: uuid.UUID, assessor_id: int) -> HttpResponse:
    assessor = get_object_or_404(Assessor, pk=assessor_id, campaign_id=campaign_id)
    status = request.POST.get("status", "")
    if status in Assessor.Status.values:
        campaigns.set_status(assessor=assessor, status=status, actor=user_of(request))
        messages.success(request, f"{assessor.user.username} {STATUS_WORDS[Assessor.Status(status)]}")
    if request.POST.get("back") == "person":
        return redirect("console:assessor", campaign_id=campaign_id, assessor_id=assessor_id)
    return redirect("console:assessors", campaign_id=campaign_id)


@require_POST
@managers_only
def set_campaign_state(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    campaign = get_object_or_404(Campaign, pk=campaign_id)
    state = request.POST.get("state")
    if state not in (Campaign.State.OPEN, Campaign.State.CLOSED):
        raise SuspiciousOperation(f"a campaign is opened or closed, not {state!r}")
    if state == Campaign.State.CLOSED:
        campaigns.close_campaign(campaign=campaign, actor=user_of(request))
        messages.success(
            request, "The campaign is closed: assessors receive no more items. No judgment was deleted."
        )
        return redirect("console:campaign", campaign_id=campaign_id)
    try:
        campaigns.open_campaign(campaign=campaign, actor=user_of(request))
        messages.success(request, "The campaign is open: its assessors can judge now.")
    except campaigns.CampaignNotReady as refusal:
        messages.error(request, f"{refusal.title}: {refusal}.")
    return redirect("console:campaign", campaign_id=campaign_id)


@managers_only
def edit_campaign(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Change what may be changed after the draw; the page shows the rest as fixed, and why."""
    known = Campaign.objects.select_related("collection", "scale")
    row = get_object_or_404(known.prefetch_related("scale__grades", "draws"), pk=campaign_id)
    name = row.name  # validation writes to the form's instance
    form = CampaignEditForm(request.POST or None, instance=row)
    if request.method == "POST" and form.is_valid():
        changes = save_campaign(form, row, user_of(request))
        messages.success(request, "Saved." if changes else "Nothing was changed.")
        return redirect("console:campaign", campaign_id=campaign_id)
    context = {
        "campaign": row,
        "name": name,
        "form": form,
        "grades": row.scale.grades.all(),
        **check_grades_shown(row.collection, row),
    }
    return render(request, "console/manager/campaign_edit.html", context, status=400 if form.errors else 200)


def save_campaign(form: CampaignEditForm, row: Campaign, actor: User) -> dict[str, Any]:
    """Store what was really changed, and return it."""
    changes = form.changes()
    before = Campaign.objects.get(pk=row.pk)  # validation has written to the form's own
    campaigns.change_campaign(campaign=before, changes=changes, actor=actor)
    return changes


# -- leases -------------------------------------------------------------------------------------------------


@managers_only
def held_leases(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Who holds which item, the oldest first."""
    row = get_object_or_404(Campaign, pk=campaign_id)
    held = leases.with_expiry(leases.held_leases(campaign=row))
    counts = held.aggregate(total=Count("pk"), expired=Count("pk", filter=Q(is_expired=True)))
    context = {
        "campaign": row,
        "leases": held.order_by("leased_at", "pk")[:SHOWN_LEASES],
        "n_leases": counts["total"],
        "n_expired": counts["expired"],
        "shown": SHOWN_LEASES,
    }
    return render(request, "console/manager/leases.html", context)


@require_POST
@managers_only
def release_lease(request: HttpRequest, campaign_id: uuid.UUID, token: uuid.UUID) -> HttpResponse:
    """Take one lease back. Its token says which: by now the slot may be somebody else's."""
    lease = get_object_or_404(
        Lease.objects.select_related("assessor__user"), pk=token, slot__campaign_id=campaign_id
    )
    slot = Slot.objects.filter(token=token, state=Slot.State.LEASED).first()
    if slot is not None and leases.release(slot=slot, actor=user_of(request)):
        messages.success(request, f"Released. A judgment that {lease.assessor} still submits is kept.")
    else:
        messages.info(request, "Nothing to release: the document was judged or released meanwhile.")
    return redirect("console:manage-leases", campaign_id=campaign_id)


@require_POST
@managers_only
def release_expired_leases(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    row = get_object_or_404(Campaign, pk=campaign_id)
    n = leases.release_expired(campaign=row, actor=user_of(request))
    if n:
        messages.success(request, f"{n:,} expired {'lease was' if n == 1 else 'leases were'} released.")
    else:
        messages.info(request, "No lease has expired.")
    return redirect("console:manage-leases", campaign_id=campaign_id)


# -- topics kept for teams ----------------------------------------------------------------------------------


@managers_only
def topic_rules(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Which team alone may judge a topic; a POST saves the page that is shown."""
    row = get_object_or_404(Campaign, pk=campaign_id)
    # Items, not their slots: an index finds a topic's.
    of_campaign = Item.objects.filter(campaign=row, topic=OuterRef("pk"))
    drawn_topics = Topic.objects.filter(Exists(of_campaign), collection_id=row.collection_id).order_by(
        "topic_id"
    )
    page = Paginator(drawn_topics, TOPICS_PER_PAGE).get_page(request.GET.get("page"))
    topics = list(page)
    rules = {rule.topic_id: rule for rule in CampaignTopic.objects.filter(campaign=row, topic__in=topics)}
    teams = {topic.pk: rules[topic.pk].team if topic.pk in rules else "" for topic in topics}
    form = TopicTeamsForm(request.POST or None, teams=teams)
    if request.method == "POST" and form.is_valid():
        changes = form.teams()
        if changes:
            campaigns.set_topic_teams(campaign=row, teams=changes, actor=user_of(request))
        words = "topic was changed." if len(changes) == 1 else "topics were changed."
        messages.success(request, f"{len(changes) or 'No'} {words}{still_stuck_words(row)}")
        return redirect(f"{reverse('console:manage-topics', args=[row.pk])}?page={page.number}")
    shown = _topic_rows(row, topics, rules, form)
    context = {
        "campaign": row,
        "page": page,
        "form": form,
        "topics": shown,
        "unfinished": [topic for topic in shown if topic["done"] < topic["total"]],
        "finished": [topic for topic in shown if topic["done"] == topic["total"]],
        "lonely": _teams_without_members(row),
        "teams": _team_names(row),
    }
    return render(request, "console/manager/topic_rules.html", context, status=400 if form.errors else 200)


def _topic_rows(
    row: Campaign, topics: list[Topic], rules: dict[int, CampaignTopic], form: TopicTeamsForm
) -> list[dict[str, Any]]:
    slots = row.slots.filter(purpose=Slot.Purpose.JUDGE, topic__in=topics).values("topic")
    done = Count("pk", filter=Q(state=Slot.State.DONE))
    counts: dict[Any, Any] = {count["topic"]: count for count in slots.annotate(total=Count("pk"), done=done)}
    none = {"done": 0, "total": 0}
    return [
        {
            "row": topic,
            "check_rate": rules[topic.pk].check_rate if topic.pk in rules else None,
            "field": form[form.name_of(topic.pk)],
            **{name: counts.get(topic.pk, none)[name] for name in none},
        }
        for topic in topics
    ]


def _teams_without_members(row: Campaign) -> list[dict[str, Any]]:
    """Return the teams that keep topics but lack members for them: the drawn items, or their audits, then wait."""
    gold = Q(tier=Assessor.Tier.GOLD)
    members = row.assessors.filter(status=Assessor.Status.ACTIVE, team=OuterRef("team"))
    kept = row.topic_rules.exclude(team="").values("team").annotate(n=Count("pk"))
    judged, audited = Exists(members.judges()), Exists(members.filter(gold))
    teams: Iterable[Any] = kept.annotate(is_judged=judged, is_audited=audited).order_by("team")
    return [team for team in teams if not (team["is_judged"] and team["is_audited"])]


def _team_names(row: Campaign) -> list[str]:
    names = {*row.assessors.values_list("team", flat=True), *row.topic_rules.values_list("team", flat=True)}
    return sorted(names - {""})
