"""The log of events of a campaign: who did what, and when."""

import json
import uuid
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.text import slugify

from judging.models import Campaign
from judging.services.access import managers_only
from judging.spreadsheets import sheet_lines
from touchstone.event_details import details_with_names
from touchstone.models import Event, User

PAGE = 25
AT_ONCE = 1000  # events of the file, whose names are looked up together
LOOKED_AT = 2000  # events whose verbs and people are offered to choose from
EVENT_WORDS = {
    "batch": "batch {}",
    "n_drawn": "{} items",
    "n_selected": "{} selected",
    "n_slots": "{} slots",
    "n_topics": "{} topics",
    "n_documents": "{} documents",
    "n_runs": "{} runs",
    "n_lines": "{} lines",
    "n_campaigns_closed": "{} campaigns closed",
    "n_judgments": "{} judgments",
    "n_gold_answers": "{} gold answers",
    "sequence": "number {}",
    "quota": "quota {}",
    "grade": "grade {}",
    "strategy": "by {}",
    "cost_per_judgment": "{} per judgment",
    "cost_per_gold": "{} per gold label",
    "team": "team {}",
    "test": "by the test {}",
    "p_adjusted": "adjusted p {}",
}
# Whom an event is about: shown with links, before the other details.
PEOPLE = ("assessor", "members")
NOT_SHOWN = {"sha256", "n_bytes", "text", "item", "rows", "table"}


class EventFilter(forms.Form):
    verb = forms.CharField(label="What", max_length=50, required=False)
    who = forms.CharField(label="Who", max_length=150, required=False)
    since = forms.DateField(label="From", required=False, widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(label="To", required=False, widget=forms.DateInput(attrs={"type": "date"}))
    before = forms.IntegerField(min_value=1, max_value=2**62, required=False)
    after = forms.IntegerField(min_value=0, max_value=2**62, required=False)


def events_of(row: Campaign) -> QuerySet[Event]:
    """Return the events of a campaign and of its collection, the newest first."""
    subjects = [f"campaign:{row.pk}", f"collection:{row.collection_id}"]
    return Event.objects.filter(subject__in=subjects).select_related("actor").order_by("-id")


@managers_only
def events(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponseBase:
    """Who did what and when, by pages; with `?format=csv` all of it as a file."""
    row = get_object_or_404(Campaign.objects.select_related("collection"), pk=campaign_id)
    form = EventFilter(request.GET)
    asked = form.cleaned_data if form.is_valid() else {}
    events_shown = _matching_events(events_of(row), asked) if asked else Event.objects.none()
    if request.GET.get("format") == "csv" and asked:
        return _csv(row, events_shown)
    shown, newer, older = _page(events_shown, asked)
    offered = list(events_of(row)[:LOOKED_AT].values_list("verb", "actor__username"))
    kept = {name: request.GET.get(name, "") for name in ("verb", "who", "since", "until")}
    query = {name: value for name, value in kept.items() if value}
    context = {
        "campaign": row,
        "form": form,
        "events": events_in_words(shown),
        "newer": urlencode(query | {"after": newer}) if newer is not None else "",
        "older": urlencode(query | {"before": older}) if older is not None else "",
        "is_filtered": bool(query),
        "csv": urlencode(query | {"format": "csv"}),
        "verbs": sorted({verb for verb, _ in offered}),
        "people": sorted({name for _, name in offered if name}),
    }
    return render(request, "console/manager/events.html", context, status=200 if asked else 400)


def _matching_events(rows: QuerySet[Event], asked: dict[str, Any]) -> QuerySet[Event]:
    if asked["verb"]:
        rows = rows.filter(verb=asked["verb"])
    if asked["who"]:
        rows = rows.filter(actor__in=User.objects.filter(username=asked["who"]))
    zone = timezone.get_current_timezone()  # in which the page names the times
    if asked["since"]:
        rows = rows.filter(at__gte=datetime.combine(asked["since"], datetime.min.time(), zone))
    if asked["until"]:
        rows = rows.filter(
            at__lt=datetime.combine(asked["until"], datetime.min.time(), zone) + timedelta(days=1)
        )
    return rows


def _page(log: QuerySet[Event], asked: dict[str, Any]) -> tuple[list[Event], int | None, int | None]:
    """Return a page, and the ids from which the newer and the older page go; None where there is none."""
    if asked.get("after") is not None:
        rows = list(log.filter(pk__gt=asked["after"]).order_by("id")[: PAGE + 1])
        has_newer, shown = len(rows) > PAGE, rows[:PAGE][::-1]
        return shown, shown[0].pk if has_newer else None, shown[-1].pk if shown else None
    before = asked.get("before")
    rows = list((log.filter(pk__lt=before) if before else log)[: PAGE + 1])
    shown = rows[:PAGE]
    return shown, shown[0].pk if before and shown else None, shown[-1].pk if len(rows) > PAGE else None


def _subject(event: Event) -> str:
    return "collection" if event.subject.startswith("collection:") else ""


def events_in_words(shown: Iterable[Event]) -> list[dict[str, Any]]:
    """Return events as pages list them: the row, whom it is about, the rest in words, and whose it is."""
    rows = list(shown)
    return [
        {
            "row": event,
            "people": _people(event.detail, detail),
            "words": event_words({key: value for key, value in detail.items() if key not in PEOPLE}),
            "of": _subject(event),
        }
        for event, detail in zip(rows, details_with_names(rows), strict=True)
    ]


def _people(stored: dict[str, Any], named: dict[str, Any]) -> list[tuple[str, int | None]]:
    """Return the names of those whom an event is about, with the key of the account where the event has one alone.

    >>> _people({"assessor": 7}, {"assessor": "bob"}), _people({"members": [7, 8]}, {"members": ["bob", "eva"]})
    ([('bob', 7)], [('bob', None), ('eva', None)])
    """
    if isinstance(named.get("assessor"), str):
        return [(named["assessor"], stored["assessor"] if isinstance(stored["assessor"], int) else None)]
    return [(name, None) for name in named.get("members") or ()]


def event_words(detail: dict[str, Any]) -> str:
    """Return what an event says besides its verb, in words.

    >>> event_words({"assessor": "bob", "n_slots": 2, "quota": None, "team": ""})
    'bob, 2 slots'
    """
    words = []
    for key, value in sorted(detail.items(), key=lambda pair: pair[0] != "assessor"):  # whom, then what
        if key in NOT_SHOWN or value in (None, "", [], False):
            continue
        text = _words(key, value)
        words.append(EVENT_WORDS.get(key, "{}").format(text))
    return ", ".join(words)


def _words(key: str, value: Any) -> str:
    """Return a detail in words; of one with details of its own (the runs of an upload) its names.

    >>> _words("is_active", True), _words("runs", [{"run": "a", "n": 1}, {"run": "b", "n": 2}])
    ('is active', 'a, b')
    """
    if value is True:
        return key.replace("_", " ")
    if isinstance(value, dict):
        return str(value.get("run_id") or value.get("run") or value.get("file") or len(value))
    return ", ".join(_words(key, one) for one in value) if isinstance(value, list) else str(value)


# -- as a file ------------------------------------------------------------------------------------------------


def _csv(row: Campaign, rows: QuerySet[Event]) -> StreamingHttpResponse:
    def lines() -> Iterator[list[str]]:
        yield ["when", "who", "what", "of", "detail"]
        found = rows.iterator(chunk_size=AT_ONCE)
        while part := list(islice(found, AT_ONCE)):
            for event, named in zip(part, details_with_names(part), strict=True):
                who = event.actor.get_username() if event.actor else ""
                detail = json.dumps(named, ensure_ascii=False, sort_keys=True)
                when = event.at.isoformat(timespec="seconds")
                yield [when, who, event.verb, event.subject, detail]

    answer = StreamingHttpResponse(sheet_lines(lines()), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = (
        f'attachment; filename="events-{slugify(row.name)[:60] or "campaign"}.csv"'
    )
    return answer
