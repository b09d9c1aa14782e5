"""Out and in again: what a release says can be imported, and released again says the same."""

import json
import uuid

import pytest
from small_release import made_once, release_of, unpacked

from analytics.services.recomputation import recompute
from judging.models import Collection
from judging.services.campaigns import create_campaign, open_campaign
from judging.services.files import import_documents, import_runs, import_topics
from judging.services.judgment_files import import_judgments
from sampling.questions import Design
from sampling.services.drawing import draw

pytestmark = pytest.mark.django_db

SAME = (
    "topics.jsonl", "documents.jsonl", "qrels.txt", "prels.txt", "beir/corpus.jsonl", "beir/queries.jsonl",
    "beir/qrels/test.tsv", "runs/0001.run.gz", "runs/0002.run.gz", "runs/0003.run.gz", "draws/frame-1.parquet",
)  # fmt: skip


def imported(folder, documents):
    """Return a campaign made of nothing but the files of a release."""
    collection = Collection.objects.create(name=f"again {uuid.uuid4()}")
    import_topics(collection=collection, source=folder / "topics.jsonl", name="topics.jsonl")
    import_documents(collection=collection, source=folder / documents, name=documents)
    runs = json.loads((folder / "runs.json").read_text())
    import_runs(collection=collection, files=[(folder / run["file"], run["file"]) for run in runs])
    estimates = json.loads((folder / "estimates.json").read_text())
    grades = [(grade["value"], grade["label"], grade["gain"]) for grade in estimates["scale"]["grades"]]
    campaign = create_campaign(
        collection=collection, name=f"again {uuid.uuid4()}", user=None, grades=grades, judgments_per_item=2
    )
    known = json.loads((folder / "draws/draw-1.json").read_text())
    asked = {name: value for name, value in known["parameters"].items() if name not in ("topics", "pooled")}
    design = Design(**{**asked, "runs": tuple(asked["runs"])})
    draw(campaign=campaign, design=design, seed=known["seed"])
    open_campaign(campaign=campaign, actor=None)
    said = folder / "qrels_jg.txt"
    import_judgments(
        campaign=campaign, source=said, name="qrels_jg.txt", file_format="qrels_jg", source_name="release"
    )
    return campaign


def assessors_aside(folder):
    """Return what qrels_jg says with assessors named in the order of their first grade."""
    names, lines = {}, []
    for line in (folder / "qrels_jg.txt").read_text().splitlines():
        topic, assessor, document, grade = line.split()
        lines.append((topic, document, names.setdefault(assessor, len(names)), grade))
    return sorted(lines), len(names)


@pytest.mark.parametrize("documents", ["documents.jsonl", "beir/corpus.jsonl"])
def test_topics_documents_runs_judgments_and_draw_come_back_as_equal_files(documents, tmp_path):
    first = unpacked(made_once(gold=False, checks=0.0, audited=0), tmp_path / "first")
    campaign = imported(first, documents)
    recompute(campaign=campaign)
    second = unpacked(release_of(campaign), tmp_path / "second")
    for name in SAME:
        assert (second / name).read_bytes() == (first / name).read_bytes(), name
    (one, n_one), (other, n_other) = assessors_aside(first), assessors_aside(second)
    assert n_one == n_other == 2
    swapped = sorted((topic, document, 1 - assessor, grade) for topic, document, assessor, grade in other)
    assert one in (other, swapped)
    values = [
        {
            (row["measure"], row["run"], row["run_b"]): row["value"]
            for row in json.loads((folder / "estimates.json").read_text())["estimates"]
            if row["method"] == "naive" and row["measure"] in ("DCG@10", "P@10")
        }
        for folder in (first, second)
    ]
    assert values[1] == pytest.approx(values[0], abs=1e-12)
    assert any(values[0].values())
