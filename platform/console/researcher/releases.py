"""The releases of a campaign: listed, made, one with its contents and citation, downloaded, withdrawn."""

import re
import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.core.validators import RegexValidator
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import capfirst
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from analytics.aggregation import rules
from analytics.models import Release
from analytics.releases.services import publishing, releasing
from console.researcher.downloads import release_file
from console.researcher.results_page import page_of
from judging.models import Campaign
from judging.services.access import managers_only, researchers_only
from judging.services.errors import Refused
from touchstone import jobs
from touchstone.models import Job, user_of

RELEASES_PER_PAGE = 25
FILES_PER_PAGE = 100
CHANGES = {
    "added": "new grades",
    "changed": "changed grades",
    "removed": "removed grades",
    "same": "unchanged grades",
}
ENDED = (Job.State.FAILED, Job.State.CANCELLED)
VERSION = r"^[0-9]+(\.[0-9]+){0,2}$"


def _rules() -> list[tuple[str, str]]:
    return [
        (rule.key, format_html('{} <span class="help">{}.</span>', rule.label, capfirst(rule.help)))
        for rule in rules.AGGREGATION_RULES
    ]


class ReleaseForm(forms.Form):
    version = forms.CharField(
        label="Version",
        max_length=20,
        validators=[RegexValidator(VERSION, "Numbers with dots, for example 1 or 1.2.")],
        help_text="Each version can be used once: a finished release never changes.",
    )
    title = forms.CharField(label="Title", max_length=200, help_text="As it will be cited.")
    authors = forms.CharField(
        label="Authors",
        max_length=5000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One per line, as they will be cited, with an ORCID iD if you like: Ada B., 0000-0002-1825-0097.",
    )
    licence = forms.CharField(
        label="License",
        max_length=200,
        help_text="What others may do with the judgments, for example CC BY 4.0.",
    )
    doi = forms.CharField(
        label="DOI",
        required=False,
        max_length=200,
        help_text="If one is reserved for this version, for example 10.5281/zenodo.1234567.",
    )
    url = forms.CharField(
        label="Address",
        required=False,
        max_length=500,
        help_text="Where the release will be found, for example https://example.org/judgments.",
    )
    aggregation = forms.ChoiceField(
        label="Label aggregation: one grade for each document",
        choices=_rules,
        initial=rules.DEFAULT_RULE,
        widget=forms.RadioSelect,
    )
    prefers_gold = forms.BooleanField(
        label="Grades of gold audits and adjudications take precedence",
        required=False,
        initial=True,
    )
    includes_runs = forms.BooleanField(
        label="Include the runs that may be published", required=False, initial=True
    )
    includes_documents = forms.BooleanField(label="Include the documents' texts", required=False)
    notes = forms.CharField(
        label="Release notes",
        required=False,
        max_length=5000,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="Markdown. The numbers of changed grades are added automatically.",
    )

    def __init__(self, *arguments: Any, may_publish_documents: bool, **named: Any) -> None:
        super().__init__(*arguments, **named)
        if not may_publish_documents:
            self.fields["includes_documents"].disabled = True


@require_GET
@researchers_only
def releases(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """All releases of the campaign, the newest first."""
    row = _campaign(campaign_id)
    rows = releasing.releases_of(campaign=row).defer("manifest", "changes", "previous__manifest")
    page = page_of(request, rows, RELEASES_PER_PAGE)
    for one in page:
        _settle(one)
    context = {"campaign": row, **_head(row), "page": page}
    return render(request, "console/researcher/releases.html", context)


@require_http_methods(["GET", "POST"])
@researchers_only
def new(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """The form of a new release; a POST freezes what is there and queues the making of its file."""
    row = _campaign(campaign_id)
    form = _form(request, row)
    status = 200
    if request.method == "POST":
        if form.is_valid():
            try:
                made = releasing.make_release(campaign=row, actor=user_of(request), **form.cleaned_data)
                return redirect("console:release", row.pk, made.pk)
            except Refused as refusal:
                form.add_error(None, f"{refusal.title}: {refusal}")
        status = 400
    context = {
        "campaign": row,
        **_head(row),
        "form": form,
        "n_runs": row.collection.runs.count(),
        "n_published": row.collection.runs.filter(may_publish=True).count(),
        "before": row.releases.filter(state=Release.State.READY).first(),
    }
    return render(request, "console/researcher/release_new.html", context, status=status)


def _form(request: HttpRequest, row: Campaign) -> ReleaseForm:
    allowed = row.collection.may_publish_documents
    if request.method == "POST":
        return ReleaseForm(request.POST, may_publish_documents=allowed)
    before = row.releases.exclude(state=Release.State.FAILED).first()
    kept = ("title", "authors", "url", "licence", "aggregation", "prefers_gold", "includes_runs")
    initial: dict[str, Any] = {name: getattr(before, name) for name in kept} if before else {}
    initial |= {"version": next_version(before.version if before else "")}
    initial.setdefault("title", row.name)
    if not initial.get("licence"):
        initial["licence"] = row.collection.licence
    return ReleaseForm(initial=initial, may_publish_documents=allowed)


def next_version(version: str) -> str:
    """Return the version after one, its last number raised; the first is 1.0.

    >>> next_version(""), next_version("1.0"), next_version("2"), next_version("1.2.9")
    ('1.0', '1.1', '3', '1.2.10')
    """
    if not re.match(VERSION, version):
        return "1.0"
    *first, last = version.split(".")
    return ".".join([*first, str(int(last) + 1)])


@require_GET
@researchers_only
def release(request: HttpRequest, campaign_id: uuid.UUID, release_id: uuid.UUID) -> HttpResponse:
    """One release: its state or its contents, how to cite and load it, what changed since the one before."""
    row = _campaign(campaign_id)
    made = _settle(_release(row, release_id))
    files = made.manifest.get("files", []) if made.manifest else []
    context: dict[str, Any] = {
        "campaign": row,
        **_head(row),
        "release": made,
        "job": made.job,
        "sees_job": made.job is not None and made.job.requested_by_id == user_of(request).pk,
        "may_cancel": made.job is not None and _may_cancel(request, made.job),
        "files": page_of(request, files, FILES_PER_PAGE),
        "counts": made.manifest.get("counts", {}) if made.manifest else {},
        "changes": _changes(made.changes),
        "later": row.releases.filter(state=Release.State.READY, ready_at__gt=made.ready_at).last()
        if made.ready_at
        else None,
    }
    if made.state == Release.State.READY:
        citation = releasing.citation(release=made)
        context |= {
            "citation": citation.text,
            "bibtex": citation.bibtex,
            "file_name": releasing.download_name(made),
            "not_publishable": "" if made.public_since else publishing.why_not_public(made),
            "ir_datasets_id": f"touchstone/{made.manifest['slug']}/{made.version}",
        }
    return render(request, "console/researcher/release.html", context)


def _settle(release: Release) -> Release:
    """Return a release whose job has ended without one as failed, which the next one that is asked for will store."""
    if release.state == Release.State.BUILDING and release.job and release.job.state in ENDED:
        release.state = Release.State.FAILED
    return release


def _may_cancel(request: HttpRequest, job: Job) -> bool:
    user = user_of(request)
    return user.may_manage or job.requested_by_id == user.pk


def _changes(stored: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what changed since the version before, as lines to read."""
    return [{"words": words, "n": stored[name]} for name, words in CHANGES.items() if name in stored]


@require_GET
@researchers_only
def download(request: HttpRequest, campaign_id: uuid.UUID, release_id: uuid.UUID) -> HttpResponseBase:
    """The file, streamed."""
    return release_file(request, _release(_campaign(campaign_id), release_id))


@require_POST
@researchers_only
def cancel(request: HttpRequest, campaign_id: uuid.UUID, release_id: uuid.UUID) -> HttpResponse:
    """Stop the making of a release that one asked for."""
    row = _campaign(campaign_id)
    release = _release(row, release_id)
    if release.job is not None and release.job.is_active and _may_cancel(request, release.job):
        jobs.cancel(release.job)
        messages.info(request, "The release is being cancelled.")
    return redirect("console:release", row.pk, release.pk)


@require_POST
@managers_only
def withdraw(request: HttpRequest, campaign_id: uuid.UUID, release_id: uuid.UUID) -> HttpResponse:
    """Take a release back: its page says so, with the reason; its file stays for those who have cited it."""
    row = _campaign(campaign_id)
    release = _release(row, release_id)
    reason = request.POST.get("reason", "").strip()[:2000]
    if not reason:
        messages.error(request, "Enter a reason: it is shown on the release's page.")
        return redirect(_page(row, release) + "#withdraw")
    releasing.withdraw(release=release, reason=reason, actor=user_of(request))
    messages.success(request, "The release was withdrawn.")
    return redirect(_page(row, release))


@require_POST
@managers_only
def forget_key(request: HttpRequest, campaign_id: uuid.UUID, release_id: uuid.UUID) -> HttpResponse:
    """Delete the key of the pseudonyms permanently: the release cannot be made again; the version must be typed."""
    row = _campaign(campaign_id)
    release = _release(row, release_id)
    if request.POST.get("confirmation", "").strip() != release.version:
        messages.error(request, "The version does not match. Nothing was changed.")
        return redirect(_page(row, release) + "#forget")
    releasing.forget_key(release=release, actor=user_of(request))
    messages.success(request, "The pseudonym key was deleted: nobody can make this release again.")
    return redirect(_page(row, release))


@require_POST
@managers_only
def publish(request: HttpRequest, campaign_id: uuid.UUID, release_id: uuid.UUID) -> HttpResponse:
    """Let anybody read the release at an address of its own; the version must be typed."""
    row = _campaign(campaign_id)
    release = _release(row, release_id)
    if request.POST.get("confirmation", "").strip() != release.version:
        messages.error(request, "The version does not match. Nothing was changed.")
        return redirect(_page(row, release) + "#publish")
    try:
        publishing.publish(release=release, actor=user_of(request))
        messages.success(request, "The release is published: its page needs no account.")
    except Refused as refusal:
        messages.error(request, f"{refusal.title}: {refusal}.")
    return redirect(_page(row, release) + "#public")


@require_POST
@managers_only
def unpublish(request: HttpRequest, campaign_id: uuid.UUID, release_id: uuid.UUID) -> HttpResponse:
    """Take the release off its public page."""
    row = _campaign(campaign_id)
    release = _release(row, release_id)
    try:
        publishing.unpublish(release=release, actor=user_of(request))
        messages.success(request, "The release has no public page any more.")
    except Refused as refusal:
        messages.error(request, f"{refusal.title}.")
    return redirect(_page(row, release) + "#public")


def _page(row: Campaign, release: Release) -> str:
    return reverse("console:release", args=[row.pk, release.pk])


def _head(row: Campaign) -> dict[str, Any]:
    """Return what the head of the page shows: of a campaign that was never drawn there are no other results."""
    return {"tab": "releases", "undrawn": not row.draws.exists()}


def _campaign(campaign_id: uuid.UUID) -> Campaign:
    return get_object_or_404(Campaign.objects.select_related("collection", "scale"), pk=campaign_id)


def _release(row: Campaign, release_id: uuid.UUID) -> Release:
    releases = Release.objects.select_related(
        "campaign__collection", "job", "made_by", "previous", "computation"
    )
    return get_object_or_404(releases, pk=release_id, campaign=row)
