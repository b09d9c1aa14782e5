"""Campaigns to be drawn, with runs, scores and judgments added to them."""

import io
import uuid

import polars as pl
from django.core.files.base import ContentFile

from judging.models import Run, ScoreList
from judging.rankings import write_rankings
from judging.services import campaigns
from touchstone import jobs
from touchstone.models import Job

PAIR = {"question": "pair", "run_a": "run0", "run_b": "run2", "measure": "DCG@10", "depth": 10, "budget": 20}


def undrawn(collection):
    return campaigns.create_campaign(
        collection=collection,
        name=f"campaign {uuid.uuid4()}",
        user=None,
        grades=campaigns.DEFAULT_GRADES,
        gold_check_rate=0.0,
    )


def add_run(collection, name, documents):
    """Store a run that returns these documents for topic t0, in this order."""
    rows = [
        {"topic_id": "t0", "doc_id": doc, "score": float(-place), "run_tag": name}
        for place, doc in enumerate(documents)
    ]
    store_run(collection, name, rows)


def store_run(collection, name, rows):
    target = io.BytesIO()
    write_rankings(pl.DataFrame(rows), target)
    n_topics = len({row["topic_id"] for row in rows})
    run = Run(collection=collection, run_id=name, n_topics=n_topics, n_lines=len(rows))
    run.rankings.save(f"{name}.rankings", ContentFile(target.getvalue()))


def add_scores(collection, name="model"):
    rows = [
        {"topic_id": item, "doc_id": f"{item}d{number:02d}", "score": number / 14, "run_tag": name}
        for item in ("t0", "t1", "t2")
        for number in range(14)
    ]
    target = io.BytesIO()
    write_rankings(pl.DataFrame(rows), target)
    scores = ScoreList(collection=collection, name=name, n_lines=len(rows))
    scores.scores.save(f"{name}.scores", ContentFile(target.getvalue()))


def finish(kind):
    """Do the queued jobs of this kind and return the last."""
    for job in Job.objects.filter(kind=kind, state="queued"):
        jobs.run(job.pk)
    return Job.objects.filter(kind=kind).latest("created_at")
