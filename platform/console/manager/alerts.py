"""Alerts on a campaign's page, the most urgent first, each with a link to the page that resolves it."""

from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse
from django.utils import timezone

from console.manager.messages import questions_need
from console.manager.need_facts import machine_faults
from console.manager.stuck import stuck_need
from judging.models import Campaign
from touchstone.models import Event

JUDGES = {"bronze", "silver"}
SILENT_AFTER = timedelta(hours=24)
BEHIND_AFTER = timedelta(minutes=20)
WAITS_AFTER = timedelta(hours=1)
MOST_NAMED = 3
Need = dict[str, Any]


def needs(row: Any, shown: dict[str, Any]) -> list[Need]:
    """Return what is wrong or missing, by what the overview shows."""
    alerts = [*_of_draw(row, shown), *_of_people(row, shown)]
    if row.state == Campaign.State.OPEN:
        stuck = stuck_need(row)
        alerts += [*([stuck] if stuck else []), *_of_audits(row, shown), *_of_work(row, shown)]
        alerts += _of_waiting_audits(row) + _of_machines(row)
    question = questions_need(row)
    alerts += [question] if question else []
    alerts += _of_disputes(row, shown) + _of_failed_jobs(row)
    computation = shown["computation"]
    if computation is not None and computation.n_flags:
        n = computation.n_flags
        title = "One assessor is flagged." if n == 1 else f"{n} assessors are flagged."
        words = (
            "Known answers or the log of the judgments speak against them. Review the evidence before acting."
        )
        alerts.append(
            _need(
                "warn",
                title,
                words,
                f"{reverse('console:assessors', args=[row.pk])}?only=flagged",
                "Review them",
            )
        )
    order = {"error": 0, "next": 1, "warn": 2, "info": 3}
    return sorted(alerts, key=lambda need: order[need["level"]])


def _of_waiting_audits(row: Any) -> list[Need]:
    since, now = row.audit_waits_since, timezone.now()
    if since is None or now - since < WAITS_AFTER:
        return []
    words = f"The oldest has waited since {since:%Y-%m-%d %H:%M} UTC. Gold assessors judge audits."
    url = f"{reverse('console:assessors', args=[row.pk])}?tier=gold"
    return [_need("warn", "Audits wait for the gold tier.", words, url, "See who is gold")]


def _of_machines(row: Any) -> list[Need]:
    faults = machine_faults(row.machines, timezone.now())
    if not faults:
        return []
    title = "A machine needs you." if len(faults) == 1 else f"{len(faults)} machines need you."
    words = f"{'; '.join(words for _, words in faults[:MOST_NAMED])}."
    url = f"{reverse('console:assessor', args=[row.pk, faults[0][0]])}#calls"
    return [_need("warn", title, words, url, "See its requests")]


def _of_disputes(row: Any, shown: dict[str, Any]) -> list[Need]:
    computation = shown["computation"]
    if computation is None:
        return []
    alerts, n = [], computation.n_disputed
    queue = reverse("console:adjudication", args=[row.pk])
    if n:
        title = "One document is in question." if n == 1 else f"{n} documents are in question."
        words = "Decide their grades, or let them stand. The corrected numbers do not depend on it."
        alerts.append(_need("info", title, words, queue, "Look at them"))
    return alerts


def _of_failed_jobs(row: Any) -> list[Need]:
    job = row.failed_job
    if job is None:
        return []
    url = f"{reverse('job', args=[job['pk']])}?back={reverse('console:campaign', args=[row.pk])}"
    return [_need("error", f"A job failed ({job['kind']}):", job["error"], url, "See the job")]


def _need(level: str, title: str, words: str, url: str, button: str) -> Need:
    return {"level": level, "title": title, "words": words, "url": url, "button": button}


def _of_draw(row: Any, shown: dict[str, Any]) -> list[Need]:
    job, draw, layout = shown["draw_job"], shown["draw"], shown["layout"]
    design, here = reverse("console:design", args=[row.pk]), reverse("console:campaign", args=[row.pk])
    alerts = []
    if job is not None and job.is_active:
        title = "More items are being drawn." if draw else "The items are being drawn."
        words = "This page shows them as soon as the draw is done."
        alerts.append(
            _need("info", title, words, f"{reverse('job', args=[job.pk])}?back={here}", "Watch the job")
        )
    elif job is not None and job.state == "failed":
        alerts.append(_need("error", "The last draw failed:", job.error, design, "Open the design"))
    if draw is None and not (job is not None and job.is_active):
        words = (
            "Choose a design. It decides which documents are judged, and shows the expected precision before any "
            "judgment is made."
        )
        alerts.append(_need("next", "Nothing is drawn yet.", words, design, "Choose a design"))
    elif draw is not None and not layout["is_complete"]:
        title = "The items are being made ready:" if layout["job"] else "Not all items are ready:"
        words = f"{layout['n_laid']} of {layout['n_topics']} topics are laid out."
        level = "info" if layout["job"] else "error"
        alerts.append(_need(level, title, words, "#draw", "See" if layout["job"] else "Continue"))
    return alerts


def _of_people(row: Any, shown: dict[str, Any]) -> list[Need]:
    if shown["draw"] is None or not shown["layout"]["is_complete"] or shown["draw"].selection_kind.no_top_up:
        return []
    tiers, people = set(row.tiers or ()), f"{reverse('console:assessors', args=[row.pk])}#add"
    if not tiers & JUDGES and not row.is_gold_alone:
        words = "The items are drawn; invite people, or add at least one bronze assessor."
        invite = f"{reverse('console:manage-entry', args=[row.pk])}#invitations"
        offers = [{"label": "Invite people", "url": invite}]
        return [
            _need("error", "Nobody can judge yet.", words, people, "Add an assessor") | {"offers": offers}
        ]
    if row.state == Campaign.State.DRAFT:
        words = "Items are drawn and the campaign has assessors: open it for judging."
        setup = reverse("console:setup", args=[row.pk])
        return [_need("next", "The campaign is ready.", words, setup, "Review the set-up")]
    if "gold" not in tiers:
        words = (
            "The gold tier judges audits. Without audits, no number can be corrected for assessors' errors."
        )
        level = "error" if shown["progress"]["audits_left"] else "next"
        return [_need(level, "There is no gold assessor.", words, people, "Add a gold assessor")]
    return []


def _of_audits(row: Any, shown: dict[str, Any]) -> list[Need]:
    audits = shown["audits"]
    if shown["draw"] is None:
        return []
    if shown["draw"].selection_kind.is_complete and not audits["n"]:
        words = (
            "Import gold grades and say how their documents were chosen: corrected numbers are based on them."
        )
        url = reverse("console:manage-gold", args=[row.pk])
        return [_need("next", "Nothing corrects the numbers yet.", words, url, "Import gold")]
    if "gold" not in set(row.tiers or ()) or row.is_gold_alone:
        return []
    if shown["draw"].selection_kind.is_foreign:
        return []
    if audits["is_unfit"]:
        words = "Its strategy does not fit the draw, so no audit is drawn. Choose one that does."
        url = f"{reverse('console:audits', args=[row.pk])}#plan"
        return [_need("next", "The plan of audits does nothing.", words, url, "Change the plan")]
    planned = audits["schedule"] is not None and audits["schedule"].is_active
    if audits["n"] or planned:
        return []
    words = "Let the gold tier judge a random sample again: the corrected numbers are based on it."
    url = f"{reverse('console:audits', args=[row.pk])}#plan"
    return [_need("next", "No audit is planned.", words, url, "Plan audits")]


def _of_work(row: Any, shown: dict[str, Any]) -> list[Need]:
    """Return what stands still: nobody judges, documents held too long, numbers that are behind."""
    alerts, now, done = [], timezone.now(), shown["progress"]
    if done["expired"]:
        n = done["expired"]
        title = (
            "One document is open past the time limit."
            if n == 1
            else f"{n} documents are open past the time limit."
        )
        words = "They are reassigned automatically; you can release them now."
        alerts.append(
            _need("info", title, words, reverse("console:manage-leases", args=[row.pk]), "See them")
        )
    computation, activity = shown["computation"], shown["activity"]
    if done["left"] and not done["leased"]:
        newest, words = _newest_work(row, activity)
        if newest is not None and now - newest > SILENT_AFTER:
            words = f"{words}: {newest:%Y-%m-%d}. {done['left']:,} judgments still needed."
            url = reverse("console:assessors", args=[row.pk])
            alerts.append(_need("warn", "Nobody has judged for a day.", words, url, "See who can judge"))
    n_counted = sum(pair[0] for pair in activity.get("series", {}).values())
    is_behind = (row.n_stored or 0) > n_counted and activity
    if computation is not None and is_behind and now - computation.created_at > BEHIND_AFTER:
        words = "New judgments have not been processed. Is a worker running?"
        alerts.append(_need("warn", "The numbers are out of date.", words, "#draw", "Recompute them"))
    return alerts


def _newest_work(row: Any, activity: dict[str, Any]) -> tuple[datetime | None, str]:
    """Return when somebody judged last, by the newest numbers; before there are any, when the campaign was opened."""
    hours = activity.get("hours", {})
    if hours:
        return datetime.fromisoformat(f"{max(hours)}:59:59+00:00"), "Last judgment"
    if row.n_stored:  # judgments have arrived, and are counted with the first numbers
        return None, ""
    opened = Event.objects.filter(subject=f"campaign:{row.pk}", verb="opened").order_by("-id")
    return opened.values_list("at", flat=True).first(), "Opened"
