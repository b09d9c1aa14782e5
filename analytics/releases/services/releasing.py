"""Releases: asked for, built by a job, downloaded, withdrawn. A release that is ready never changes."""

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from analytics.aggregation.rules import DEFAULT_RULE, aggregation_keys
from analytics.frames.moment import one_moment
from analytics.models import Release
from analytics.releases.about import About
from analytics.releases.citation import bibtex, citation_text
from analytics.releases.folder import Folder
from analytics.releases.manifest import FORMAT
from analytics.releases.people import author_of
from analytics.releases.pseudonyms import new_key
from analytics.releases.services.citing import cited_in, published_on, slug_of
from analytics.releases.services.provenance import differences
from analytics.releases.services.writing import BuiltRelease, Writer
from judging.models import Campaign
from judging.services.errors import NotFound, Refused
from touchstone import jobs
from touchstone.files import MadeFile, store
from touchstone.models import Job, User, record

Progress = Callable[[int, int, str], None]
STALE = timedelta(days=1)
LONGEST_REASON = 2000
BUILDING = "building-"


class VersionTaken(Refused):
    status = 409
    title = "This campaign has a release of that version already"


class VersionUnusable(Refused):
    title = "A version is one to three numbers with dots between them, such as 1.0"


class AggregationUnknown(Refused):
    title = "Unknown aggregation method"


class CitationUnusable(Refused):
    title = "The release cannot be cited so"


class NothingToRelease(Refused):
    status = 409
    title = "This campaign has no items yet: draw some, or import judgments, before you release it"


class ReleaseNotReady(Refused):
    status = 409
    title = "This release is not ready"


class ReasonMissing(Refused):
    title = "Say why the release is withdrawn"


class KeyForgotten(Refused):
    status = 409
    title = "The pseudonym key was deleted; this release cannot be rebuilt"


def make_release(
    *,
    campaign: Campaign,
    version: str,
    title: str = "",
    authors: str = "",
    notes: str = "",
    licence: str = "",
    doi: str = "",
    url: str = "",
    aggregation: str = DEFAULT_RULE,
    prefers_gold: bool = True,
    includes_documents: bool = False,
    includes_runs: bool = True,
    actor: User | None,
    by_job: bool = True,
) -> Release:
    """Ask for a release of a campaign as it is now, and queue the job that builds it.

    Texts of documents come with it only if it wants them and the collection allows it. Without a job the caller builds.
    """
    settle_ended()
    if aggregation not in aggregation_keys():
        raise AggregationUnknown
    if not _is_version(version):
        raise VersionUnusable
    _check_places(authors, doi, url)
    with transaction.atomic():
        seen = (
            Campaign.objects.filter(deleted_at=None) if actor is None else Campaign.objects.visible_to(actor)
        )
        row = Campaign.objects.select_for_update(no_key=True).filter(pk=campaign.pk, pk__in=seen).first()
        if row is None:
            raise NotFound
        if not row.items.exists():
            raise NothingToRelease
        try:
            with transaction.atomic():
                release = Release.objects.create(
                    campaign=row,
                    version=version,
                    title=title.strip() or row.name,
                    authors=authors,
                    notes=notes,
                    licence=licence,
                    doi=doi.strip(),
                    url=url.strip(),
                    aggregation=aggregation,
                    prefers_gold=prefers_gold,
                    includes_documents=includes_documents,
                    includes_runs=includes_runs,
                    previous=_newest(row),
                    pseudonym_key=new_key(),
                    made_by=actor,
                )
        except IntegrityError as error:
            raise VersionTaken from error
        if by_job:
            payload = {"release": str(release.pk), "campaign": str(row.pk)}
            release.job = jobs.enqueue(kind="release", payload=payload, user=actor)
            release.save(update_fields=["job"])
        record("asked for a release", row, actor=actor, version=version, release=str(release.pk))
    return release


def _check_places(authors: str, doi: str, url: str) -> None:
    try:
        for line in authors.splitlines():
            if line.strip():
                author_of(line)
    except ValueError as error:
        raise CitationUnusable(str(error)) from error
    others = {one.name for one in Release._meta.fields}
    for name, value in (("doi", doi.strip()), ("url", url.strip())):
        try:
            if value:
                Release(**{name: value}).clean_fields(exclude=others - {name})
        except ValidationError as error:
            raise CitationUnusable(f"{name}: {value}: {' '.join(error.messages)}") from error


def _is_version(version: str) -> bool:
    parts = version.split(".")
    return len(version) <= 20 and len(parts) <= 3 and all(part.isascii() and part.isdigit() for part in parts)


def _newest(campaign: Campaign) -> Release | None:
    """Return the release that a new one is compared with."""
    ready = campaign.releases.filter(state=Release.State.READY, withdrawn_at=None)
    return ready.order_by("-ready_at").first()


def build(*, release: Release, progress: Progress = lambda *_: None) -> Release:
    """Build the file of a release in the caller's transaction; twice is once. `progress` may raise to cancel."""
    if release.state != Release.State.BUILDING:
        return release
    with tempfile.TemporaryDirectory(prefix=BUILDING, dir=_folder()) as work:
        path = Path(work) / "release.zip"
        built = _write(release, Path(work), path, None, progress)
        with MadeFile(path) as made:
            place = store("releases", made, ".zip", stem=f"{release.pk}-")
    release.state, release.ready_at, release.file.name = Release.State.READY, timezone.now(), place
    release.n_bytes, release.sha256, release.merkle_root = built.n_bytes, built.sha256, built.merkle_root
    release.manifest, release.changes = built.kept, built.changes
    release.computation, release.last_judgment_id = built.computation, built.last_judgment_id
    release.save()
    detail = {"version": release.version, "release": str(release.pk), "sha256": built.sha256}
    record("released", release.campaign, actor=release.made_by, **detail)
    return release


@dataclass(frozen=True)
class RebuiltRelease:
    """A release made once more: whether its bytes are the same, else which files differ and which facts changed."""

    is_same: bool
    sha256: str
    files: tuple[str, ...]
    facts: tuple[str, ...]


def build_again(*, release: Release, progress: Progress = lambda *_: None) -> RebuiltRelease:
    """Make a release that is ready once more, from the facts of today, and compare; nothing is kept of it."""
    if release.state != Release.State.READY:
        raise ReleaseNotReady
    if not release.pseudonym_key:
        raise KeyForgotten
    as_of = datetime.fromisoformat(release.manifest["as_of"])
    with tempfile.TemporaryDirectory(prefix=BUILDING, dir=_folder()) as work:
        built = _write(release, Path(work), Path(work) / "release.zip", as_of, progress)
    before, now = (
        {file["path"]: file for file in manifest["files"]} for manifest in (release.manifest, built.kept)
    )
    files = sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
    facts = differences(release.manifest["made_of"], built.kept["made_of"])
    return RebuiltRelease(built.sha256 == release.sha256, built.sha256, tuple(files), tuple(facts))


def _folder() -> Path:
    """Return where releases are built, on the disk where they stay. What a killed worker left goes after a day."""
    folder = Path(settings.MEDIA_ROOT) / "releases"
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(f"{BUILDING}*"):
        if time.time() - left.stat().st_mtime > STALE.total_seconds():
            shutil.rmtree(left, ignore_errors=True)
    return folder


def _write(
    release: Release, work: Path, target: Path, as_of: datetime | None, progress: Progress
) -> BuiltRelease:
    form = FORMAT if as_of is None else _format_of(release)
    with one_moment(release) as moment:
        return Writer(release, moment, Folder(work / "files"), progress, form).write(target, as_of)


def _format_of(release: Release) -> int:
    """Return the number of the format of a release that was built."""
    return int(release.manifest["touchstone_release"])


def settle_ended() -> int:
    """Call failed what will never be ready, so that its version can be used again; return how many.

    Its job failed or was cancelled; or it was built without one, by a command that is gone.
    """
    ended = Q(job__state__in=[Job.State.FAILED, Job.State.CANCELLED])
    forgotten = Q(job=None, created_at__lt=timezone.now() - STALE)
    building = Release.objects.filter(ended | forgotten, state=Release.State.BUILDING)
    keys = list(building.values_list("pk", flat=True))
    return Release.objects.filter(pk__in=keys, state=Release.State.BUILDING).update(
        state=Release.State.FAILED
    )


def mark_failed(*, release: Release) -> None:
    """Say that a release built without a job has failed."""
    Release.objects.filter(pk=release.pk, state=Release.State.BUILDING).update(state=Release.State.FAILED)


@transaction.atomic
def withdraw(*, release: Release, reason: str, actor: User | None) -> Release:
    """Mark a release as withdrawn, for a reason; its file stays for those who need what they cited. Twice is once."""
    row = Release.objects.select_for_update().get(pk=release.pk)
    if row.state != Release.State.READY:
        raise ReleaseNotReady
    if not reason.strip():
        raise ReasonMissing
    if row.withdrawn_at is None:
        row.withdrawn_at, row.withdrawn_reason = timezone.now(), reason.strip()[:LONGEST_REASON]
        row.save(update_fields=["withdrawn_at", "withdrawn_reason"])
        record("withdrew a release", row.campaign, actor=actor, version=row.version, release=str(row.pk))
    return row


@transaction.atomic
def forget_key(*, release: Release, actor: User | None) -> Release:
    """Forget the key of the pseudonyms: nobody can make the release again. The log still tells who judged."""
    row = Release.objects.select_for_update().get(pk=release.pk)
    if row.state != Release.State.READY:
        raise ReleaseNotReady
    if row.pseudonym_key:
        row.pseudonym_key = ""
        row.save(update_fields=["pseudonym_key"])
        record("forgot a release's key", row.campaign, actor=actor, version=row.version, release=str(row.pk))
    return row


@dataclass(frozen=True)
class Citation:
    """How a release is cited."""

    text: str
    bibtex: str


def citation(*, release: Release) -> Citation:
    """Return the citation of a release that is ready: the same as in its file."""
    if release.state != Release.State.READY:
        raise ReleaseNotReady
    about = _about(release)
    return Citation(citation_text(about), bibtex(about))


def _about(release: Release) -> About:
    """Return what a citation says of a release."""
    manifest = release.manifest
    return About(
        campaign=manifest.get("campaign", release.campaign.name),
        collection=manifest.get("collection", ""),
        version=release.version,
        title=release.title,
        as_of=manifest.get("as_of", ""),
        published=published_on(release),
        slug=slug_of(release.campaign),
        form=_format_of(release),
        **cited_in(release, _format_of(release)),
        merkle_root=release.merkle_root,
    )


def release_changes(*, release: Release) -> dict[str, Any]:
    """Return what changed against the release before: `previous` with added, changed, removed, same; or `unknown`."""
    return dict(release.changes)


def releases_of(*, campaign: Campaign) -> QuerySet[Release]:
    """Return a campaign's releases, the newest first, with their jobs and those before them."""
    return campaign.releases.select_related("job", "previous", "made_by").order_by("-created_at", "-pk")


def download_name(release: Release) -> str:
    """Return the name under which the file is handed out."""
    return f"{_about(release).folder}.zip"
