"""A sample that was drawn elsewhere: pools of four topics, each document drawn by its own probability, and three runs.

A run returns 30 of a topic's 40 pooled documents. Grades are 0, 1 or 2, each worth itself.
"""

import io
import uuid
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from judging.models import Collection, Document, Topic
from judging.services.campaigns import create_campaign
from judging.services.files import import_judgments, import_runs

TOPICS, N_POOLED, N_RETURNED, RUNS = ("7", "10", "8", "21"), 40, 30, ("ann", "bea", "cyd")
GRADES = [(0, "not relevant", 0.0), (1, "relevant", 1.0), (2, "highly relevant", 2.0)]


@dataclass(frozen=True)
class Sample:
    """The files of a sample by name, and its runs."""

    folder: Path
    prels: Path
    strata: Path
    runs: tuple[Path, ...]


def sample_files(folder: Path, seed: int = 5) -> Sample:
    """Write the same pools as prels (what was drawn alone) and in strata (with what was not drawn)."""
    rng = np.random.default_rng(seed)
    prels: list[str] = []
    strata: list[str] = []
    runs: dict[str, list[str]] = {run: [] for run in RUNS}
    for topic in TOPICS:
        names = [f"{topic}-d{place:02d}" for place in range(N_POOLED)]
        grades = rng.choice(3, N_POOLED, p=[0.55, 0.3, 0.15])
        chances = rng.uniform(0.2, 0.95, N_POOLED)
        for name, grade, chance in zip(names, grades.tolist(), chances.tolist(), strict=True):
            if rng.random() < chance:
                prels.append(f"{topic} {name} {grade} {rng.choice([0, 1, 2])} {chance!r}\n")
        stratum = np.sort(rng.integers(0, 3, N_POOLED))
        for place, name in enumerate(names):
            first = place == np.flatnonzero(stratum == stratum[place])[0]
            is_drawn = first or rng.random() < 0.6
            strata.append(f"{topic} 0 {name} {stratum[place]} {grades[place] if is_drawn else -1}\n")
        for run in RUNS:
            order = np.argsort(-(grades + rng.normal(0, 1.5, N_POOLED)))[:N_RETURNED]
            runs[run] += [f"{topic} Q0 {names[d]} {n} {-n} {run}\n" for n, d in enumerate(order.tolist(), 1)]
    paths = {name: folder / name for name in ("sample.prels", "sample.strata", *RUNS)}
    for name, lines in {"sample.prels": prels, "sample.strata": strata, **runs}.items():
        paths[name].write_text("".join(lines))
    return Sample(folder, paths["sample.prels"], paths["sample.strata"], tuple(paths[run] for run in RUNS))


def collection_of(sample: Sample, *, runs: bool = True) -> Collection:
    """Return a collection with the sample's topics, documents and runs."""
    made = Collection.objects.create(name=f"collection {uuid.uuid4()}")
    Topic.objects.bulk_create(Topic(collection=made, topic_id=topic, title=topic) for topic in TOPICS)
    names = [f"{topic}-d{place:02d}" for topic in TOPICS for place in range(N_POOLED)]
    Document.objects.bulk_create(Document(collection=made, doc_id=name, text=name) for name in names)
    if runs:
        import_runs(collection=made, files=[(path, path.name) for path in sample.runs])
    return made


def empty_campaign(collection: Collection, **fields):
    return create_campaign(
        collection=collection,
        name=f"campaign {uuid.uuid4()}",
        user=None,
        grades=GRADES,
        **{"judgments_per_item": 1, **fields},
    )


def import_text(campaign, text: str, **options) -> int:
    """Import lines of prels, or of the `file_format` given."""
    source = io.BytesIO(text.encode())
    return import_judgments(campaign=campaign, source=source, name="s", **{"file_format": "prels", **options})


def imported_campaign(folder: Path, file_format: str = "prels", **options):
    """Return the sample's files and a campaign that has its judgments."""
    sample = sample_files(folder)
    campaign = empty_campaign(collection_of(sample))
    path = sample.prels if file_format == "prels" else sample.strata
    import_judgments(campaign=campaign, source=path, name=path.name, file_format=file_format, **options)
    return sample, campaign
