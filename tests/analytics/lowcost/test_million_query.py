"""The public prels of the Million Query track: imported whole, their numbers are those of `evaluate` on the file.

The files are TREC's and not part of this repository. MILLION_QUERY names the folder that has them.
"""

import gzip
import json
import os
import uuid
from collections import defaultdict
from io import StringIO
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from foreign_sample import empty_campaign

import judging.tasks  # noqa: F401 (registers the job)
from analytics.services.recomputation import recompute
from judging.models import Collection, Document, Judgment, Topic
from judging.services.files import import_runs
from judging.services.sources import tell_planner
from sampling.models import DrawEntry
from touchstone import jobs
from touchstone.models import Job, User

FOLDER = Path(os.environ.get("MILLION_QUERY", "million_query"))
MEASURES = ("statAP", "P@10", "DCG@10")
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not FOLDER.is_dir(), reason="MILLION_QUERY names no folder with TREC's files"),
]


def by_page(campaign, path: Path) -> None:
    answer = manager().post(
        reverse("console:manage-sample", args=[campaign.pk]),
        {"file_format": "prels", "file": SimpleUploadedFile(path.name, path.read_bytes())},
    )
    assert answer.status_code == 302
    run_import()


def by_api(campaign, path: Path) -> None:
    asked = {"kind": "judgments", "campaign": str(campaign.pk), "file_format": "prels"}
    where = reverse("console:api-imports", args=[campaign.collection_id])
    answer = manager().post(where, {**asked, "files": SimpleUploadedFile(path.name, path.read_bytes())})
    assert answer.status_code == 202
    run_import()


def by_command(campaign, path: Path) -> None:
    call_command("import_judgments", str(path), campaign=campaign.name, format="prels", stdout=StringIO())


def manager() -> Client:
    client = Client()
    client.force_login(User.objects.create(username=str(uuid.uuid4()), role="manager"))
    return client


def run_import() -> None:
    job = Job.objects.filter(kind="import").latest("created_at")
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == ("done", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n_lines", "route"),
    [
        ("prels.1-10000.gz", 73_015, by_command),
        ("prels.10001-20000.gz", 15_211, by_command),
        ("prels.10001-20000.gz", 15_211, by_page),
        ("prels.10001-20000.gz", 15_211, by_api),
        ("prels.20001-60000.gz", 34_534, by_command),
        ("prels.web.1-50.txt.gz", 23_601, by_command),
    ],
)
def test_a_file_of_the_track_is_imported_whole(tmp_path: Path, name: str, n_lines: int, route) -> None:
    path = FOLDER / name
    with gzip.open(path, "rt") as lines:
        rows = [line.split() for line in lines]
    collection = Collection.objects.create(name=f"collection {uuid.uuid4()}")
    Topic.objects.bulk_create(
        Topic(collection=collection, topic_id=topic, title=topic)
        for topic in dict.fromkeys(r[0] for r in rows)
    )
    Document.objects.bulk_create(
        (Document(collection=collection, doc_id=doc, text=doc) for doc in dict.fromkeys(r[1] for r in rows)),
        batch_size=5000,
    )
    tell_planner(Topic, Document)
    runs = write_runs(tmp_path, rows)
    import_runs(collection=collection, files=[(run, run.name) for run in runs])
    campaign = empty_campaign(collection)

    route(campaign, path)
    assert len(rows) == Judgment.objects.count() == DrawEntry.objects.count() == n_lines
    chances = DrawEntry.objects.values_list("inclusion_probability", flat=True)
    assert sorted(chances) == sorted(float(row[4]) for row in rows)

    out = StringIO()
    arguments = [str(path), *map(str, runs), *MEASURES, "--format", "prels", "--output", "json"]
    call_command("evaluate", *arguments, stdout=out)
    told = {one["measure"]: one["values"] for one in json.loads(out.getvalue())["measures"]}
    stored = recompute(campaign=campaign).estimates.filter(method="naive", run_b=None)
    for measure, values in told.items():
        found = dict(stored.filter(measure=measure).values_list("run__run_id", "value"))
        assert found == pytest.approx(values, abs=1e-9)


def write_runs(folder: Path, rows: list[list[str]]) -> list[Path]:
    """Write runs made of the file's documents: by grade, and by the end of the name."""
    documents = defaultdict(list)
    for row in rows:
        documents[row[0]].append((row[1], int(row[2])))
    orders = {"by_grade": lambda pair: (-pair[1], pair[0]), "by_name": lambda pair: pair[0][::-1]}
    for tag, order in orders.items():
        lines = (
            f"{topic} Q0 {doc} {rank} {-rank} {tag}\n"
            for topic, own in documents.items()
            for rank, (doc, _) in enumerate(sorted(own, key=order), 1)
        )
        (folder / tag).write_text("".join(lines))
    return [folder / tag for tag in orders]
