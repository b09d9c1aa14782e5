"""What a release rests on, in a few numbers: so that a rebuild can report what has changed since."""

import zipfile
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from django.db import connection

import analytics.releases
from analytics.models import Release
from judging.models import Campaign
from touchstone.files import local

# Each row: words, and a statement of one value. md5 distinguishes contents; nothing secret is in them.
FACTS = {
    "judgments": "SELECT count(*) FROM judging_judgment j JOIN judging_assessor a ON a.id = j.assessor_id "
    "WHERE a.campaign_id = %(campaign)s",
    "newest judgment": "SELECT max(j.id) FROM judging_judgment j JOIN judging_assessor a ON a.id = j.assessor_id "
    "WHERE a.campaign_id = %(campaign)s",
    "judgments set aside": "SELECT count(*) FROM judging_slot "
    "WHERE campaign_id = %(campaign)s AND purpose = 'void' AND was <> 'check'",
    "adjudications": "SELECT count(*) FROM judging_adjudication d JOIN judging_item i ON i.id = d.item_id "
    "WHERE i.campaign_id = %(campaign)s",
    "gold answers": "SELECT md5(string_agg(g.id || ' ' || g.grade, ',' ORDER BY g.id)) FROM judging_goldanswer g "
    "JOIN judging_topic t ON t.id = g.topic_id WHERE t.collection_id = %(collection)s",
    "assessors": "SELECT md5(string_agg(id || ' ' || tier || ' ' || kind, ',' ORDER BY id)) FROM judging_assessor "
    "WHERE campaign_id = %(campaign)s",
    # The columns that there were in 0.1.0 and soon after, in their order: releases from then compare as equal.
    "topics": "SELECT md5(string_agg(md5(ROW(id, topic_id, title, description, narrative, collection_id, weight)::text"
    "), ',' ORDER BY id)) FROM judging_topic t "
    "WHERE collection_id = %(collection)s",
    "documents": "SELECT count(*) || ' ' || coalesce(sum(version), 0) FROM judging_document "
    "WHERE collection_id = %(collection)s",
    "runs": "SELECT md5(string_agg(md5(r::text), ',' ORDER BY id)) FROM judging_run r "
    "WHERE collection_id = %(collection)s",
    "draws": "SELECT count(*) FROM sampling_draw WHERE campaign_id = %(campaign)s",
    "audits": "SELECT count(*) FROM sampling_audit WHERE campaign_id = %(campaign)s",
    "grades of the scale": "SELECT md5(string_agg(md5(g::text), ',' ORDER BY value)) FROM judging_grade g "
    "WHERE scale_id = %(scale)s",
    "words about the campaign": "SELECT md5(concat_ws('|', name, guidelines, state, judgments_per_item, "
    "consent <> '')) FROM judging_campaign WHERE id = %(campaign)s",
    "words about the collection": "SELECT md5(concat_ws('|', name, description, source, licence, "
    "may_publish_documents)) FROM judging_collection WHERE id = %(collection)s",
}

SCRIPTS = "scripts of the product that check a release"


def scripts() -> list[Path]:
    """Return the scripts that every release carries; they change with the product, not with the campaign."""
    return sorted(Path(analytics.releases.__file__).parent.glob("verify*.py"))


def product_scripts() -> dict[str, bytes]:
    """Return what a new release carries of them, by name."""
    return {path.name: path.read_bytes() for path in scripts()}


def scripts_in(release: Release) -> dict[str, bytes]:
    """Return the scripts that a release has in its file, by name; nothing where the file cannot be read."""
    try:
        with zipfile.ZipFile(local(release.file)) as archive:
            names = [PurePosixPath(name) for name in archive.namelist()]
            found = [path for path in names if len(path.parts) == 2 and path.match("verify*.py")]
            return {path.name: archive.read(str(path)) for path in found}
    except (OSError, zipfile.BadZipFile):
        return {}


def made_of(campaign: Campaign) -> dict[str, Any]:
    """Return what the campaign's release of this moment rests on."""
    keys: dict[str, Any] = {
        "campaign": campaign.pk,
        "collection": campaign.collection_id,
        "scale": campaign.scale_id,
    }
    provenance: dict[str, Any] = {
        SCRIPTS: sha256(b"".join(path.read_bytes() for path in scripts())).hexdigest()
    }
    with connection.cursor() as cursor:
        for words, statement in FACTS.items():
            cursor.execute(statement, keys)
            provenance[words] = cursor.fetchone()[0]
    return provenance


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return in words what differs."""
    return [words for words in (*FACTS, SCRIPTS) if before.get(words) != now.get(words)]
