"""Measure what the stemmer of the topic's words adds to a document's frame: our endings against Snowball's English.

    python benchmarks/highlight.py [--documents 200] [--sizes 2000,5000,20000]

The documents are the docstrings of Python's standard library, joined to so many characters each; the topic has three
words. Each frame is asked for through the whole product (middleware, session, template) in one process, on a real
PostgreSQL, by its assessor: with our endings, with Snowball, and with Snowball behind what would make it cheaper (only
words that begin with a term's first letter, a cache of 65,536 words). The rules take turns, document by document. JSON
on standard output: medians, and their ratios to our endings. Snowball would be taken at 1.2 times or less.
"""

import argparse
import functools
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parts import throwaway

TOPIC = "arrays of sorted values"
GOAL = 1.2


def _texts(size: int, n_documents: int) -> list[str]:
    """Return documents of so many characters, from the beginning of the library again when it ends."""
    from touchstone.demo.docstrings import stdlib_documents

    library = "\n\n".join(document["text"] for document in stdlib_documents())
    n_different = len(library) // size
    return [library[size * (n % n_different) : size * (n % n_different + 1)] for n in range(n_documents)]


def _stemmers() -> dict[str, Callable[[str], str]]:
    """Return the rules to compare, ours first."""
    import snowballstemmer

    from judging import highlight

    snowball = snowballstemmer.stemmer("english").stemWord
    initials = {stem[0] for stem in highlight.terms(TOPIC)}
    cached = functools.lru_cache(1 << 16)(snowball)
    return {
        "our endings": highlight._stem,
        "snowball": snowball,
        "snowball, first letters and cache": lambda word: cached(word) if word[:1] in initials else word,
    }


def _addresses(size: int, n_documents: int) -> Iterator[tuple[Any, str]]:
    """Yield an assessor's client and the address of each document's frame."""
    from django.db import connection
    from django.test import Client
    from django.urls import reverse

    from judging.models import Document, Topic
    from judging.services.assign import claim

    campaign = throwaway.make_campaign(n_documents, 1, name=f"of {size}", n_topics=1)
    campaign.highlights_terms = True
    campaign.save()
    with (
        connection.cursor() as cursor
    ):  # topics and documents stay as they are, but in this database of a measurement
        for table in ("judging_topic", "judging_document"):
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    Topic.objects.filter(collection=campaign.collection).update(title=TOPIC)
    documents = list(Document.objects.filter(collection=campaign.collection))
    for document, text in zip(documents, _texts(size, n_documents), strict=True):
        document.text = text
    Document.objects.bulk_update(documents, ["text"])
    (assessor,) = throwaway.assessors_of(campaign)
    client = Client(SERVER_NAME="localhost")
    client.force_login(assessor.user)
    for held in claim(assessor=assessor, n=n_documents).items:
        yield client, reverse("judging:frame", kwargs={"token": held.token})


def _measure(size: int, n_documents: int) -> dict[str, Any]:
    """Return the milliseconds of a frame by rule, and their ratios to ours."""
    from judging import highlight

    ours = highlight._stem
    stemmers = _stemmers()
    milliseconds: dict[str, list[float]] = {name: [] for name in stemmers}
    frames = list(_addresses(size, n_documents))
    for client, address in frames:
        for name, stemmer in stemmers.items():
            highlight._stem = stemmer
            started = time.perf_counter()
            answer = client.get(address)
            milliseconds[name].append(1000 * (time.perf_counter() - started))
            if answer.status_code != 200:
                raise RuntimeError(f"{address}: {answer.status_code}")
    highlight._stem = ours
    medians = {name: statistics.median(times) for name, times in milliseconds.items()}
    return {
        "characters": size,
        "frames": len(frames),
        "median_milliseconds": medians,
        "times_our_endings": {name: median / medians["our endings"] for name, median in medians.items()},
    }


def main() -> None:
    """Serve, measure, print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--sizes", default="2000,5000,20000")
    options = parser.parse_args()
    with throwaway.folder() as root, throwaway.migrated(root):
        rows = [_measure(int(size), options.documents) for size in options.sizes.split(",")]
    print(json.dumps({"benchmark": "highlight", "goal": GOAL, "frames": rows}, indent=2))


if __name__ == "__main__":
    main()
