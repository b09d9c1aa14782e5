"""A published release, as anybody may read it: citation, counts, main numbers, files with their hashes, download."""

import uuid
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from analytics.models import Release
from analytics.releases.services import publishing, releasing
from console.researcher.downloads import release_file
from judging.services.errors import NotFound


@login_not_required
@require_GET
def public_release(request: HttpRequest, campaign_id: uuid.UUID, version: str) -> HttpResponse:
    """The page; for whatever is not published the same answer as for what does not exist."""
    release = _public(campaign_id, version)
    citation = releasing.citation(release=release)
    context: dict[str, Any] = {
        "release": release,
        "manifest": release.manifest,
        "counts": release.manifest["counts"],
        "files": release.manifest["files"],
        "citation": citation.text,
        "bibtex": citation.bibtex,
        "file_name": releasing.download_name(release),
        "numbers": publishing.main_estimates(release),
    }
    return render(request, "console/researcher/public_release.html", context)


@login_not_required
@require_GET
def public_download(request: HttpRequest, campaign_id: uuid.UUID, version: str) -> HttpResponseBase:
    """The file, streamed."""
    return release_file(request, _public(campaign_id, version))


def _public(campaign_id: uuid.UUID, version: str) -> Release:
    try:
        return publishing.public_release(campaign_id, version)
    except NotFound as refusal:
        raise Http404 from refusal
