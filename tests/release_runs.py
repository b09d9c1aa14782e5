"""Runs on an unpacked release: read from it, made anew, and what `evaluate` says of them."""

import gzip
import json
from io import StringIO

from django.core.management import call_command
from run_samples import ranked_documents
from small_campaign import TOPICS, doc_id

from analytics.releases.evaluating import evaluate
from analytics.releases.sampled import SampledRelease
from analytics.releases.verify_facts import read_facts
from judging.trec import QrelRecord
from sampling.measures.scoring import evaluate_topics, index_qrels, measure_on_scale

GAINS, RELEVANT = [0.0, 1.0, 2.0, 3.0], 1


def sampled_of(folder):
    about = json.loads((folder / "estimates.json").read_text())
    return SampledRelease.of(read_facts(folder, about, with_runs=False), about["seed"]), about["measures"]


def grades_of(folder):
    found = {}
    for line in (folder / "qrels.txt").read_text().splitlines():
        topic, _, document, grade = line.split()
        found.setdefault(topic, {})[document] = int(grade)
    return found


def run_of(folder, run_id):
    file = next(
        run["file"] for run in json.loads((folder / "runs.json").read_text()) if run["run_id"] == run_id
    )
    found = {}
    for line in gzip.decompress((folder / file).read_bytes()).decode().splitlines():
        topic, _, document, *_ = line.split()
        found.setdefault(topic, []).append(document)
    return found


def judged_of(grades):
    return index_qrels(
        QrelRecord(topic, document, grade)
        for topic, found in grades.items()
        for document, grade in found.items()
    )


def said(folder, sampled, name, ranking):
    measure, judged = measure_on_scale(name, GAINS, RELEVANT), judged_of(grades_of(folder))
    return evaluate(*sampled, [measure], ranking, ranked_documents(ranking), judged)[0]


def mean_of(name, ranking, grades):
    """Return the mean over the topics of the grades."""
    measure = measure_on_scale(name, GAINS, RELEVANT)
    return evaluate_topics(ranked_documents(ranking), judged_of(grades), [measure]).values.mean()


def write_run(path, ranking, tag="mine"):
    lines = [
        f"{topic} Q0 {document} 0 {100 - rank} {tag}\n"
        for topic, documents in ranking.items()
        for rank, document in enumerate(documents)
    ]
    path.write_text("".join(lines))
    return path


def told(*arguments):
    out = StringIO()
    call_command("evaluate", *map(str, arguments), stdout=out)
    return out.getvalue()


def new_run(*, backwards=False):
    """A run that nobody knew at the draw, over documents that others returned."""
    return {
        topic: [
            doc_id(place, d) for d in (range(13, 3, -1) if backwards else (1, 3, 5, 7, 9, 11, 13, 0, 2, 4))
        ]
        for place, topic in enumerate(TOPICS)
    }
