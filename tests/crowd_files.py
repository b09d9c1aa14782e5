"""A crowd data set that is all there is: labels in a file, 1 to 30 an item, and gold grades of some documents."""

import io
import uuid

import numpy as np

from judging.models import Collection, Document, Topic
from judging.services.campaigns import create_campaign
from judging.services.judgment_files import import_judgments

GRADES = [(0, "not relevant", 0.0), (1, "relevant", 1.0)]


class Crowd:
    """Topics t0, t1, ... of equally many documents: true grades, labels of assessors who err in a fifth of them."""

    def __init__(self, seed: int = 1, n_topics: int = 4, n_documents: int = 50, most: int = 30) -> None:
        rng = np.random.default_rng(seed)
        self.pairs = [(f"t{t}", f"t{t}-d{d:03d}") for t in range(n_topics) for d in range(n_documents)]
        self.truth = rng.integers(0, 2, len(self.pairs))
        self.n_labels = rng.integers(1, most + 1, len(self.pairs))
        self.lines = ["topic_id,doc_id,worker,label"]
        self.mean = np.zeros(len(self.pairs))
        for place, (topic, document) in enumerate(self.pairs):
            workers = rng.choice(40, self.n_labels[place], replace=False)
            grades = np.where(rng.random(workers.size) < 0.2, 1 - self.truth[place], self.truth[place])
            self.mean[place] = grades.mean()
            self.lines += [
                f"{topic},{document},w{who},{grade}" for who, grade in zip(workers, grades, strict=True)
            ]

    @property
    def labels(self) -> str:
        return "\n".join(self.lines) + "\n"

    def gold(self, places, probability=None) -> str:
        """Return a CSV of the gold grades of these documents; with probabilities of all, the others with no grade."""
        if probability is None:
            rows = [f"{','.join(self.pairs[place])},{self.truth[place]}" for place in places]
            return "\n".join(["topic_id,doc_id,grade", *rows]) + "\n"
        known = set(np.asarray(places).tolist())
        rows = [
            f"{topic},{document},{self.truth[place] if place in known else ''},{float(probability[place])!r}"
            for place, (topic, document) in enumerate(self.pairs)
        ]
        return "\n".join(["topic_id,doc_id,grade,probability", *rows]) + "\n"

    def collection(self) -> Collection:
        made = Collection.objects.create(name=f"collection {uuid.uuid4()}")
        topics = sorted({topic for topic, _ in self.pairs})
        Topic.objects.bulk_create(Topic(collection=made, topic_id=topic, title=topic) for topic in topics)
        Document.objects.bulk_create(
            Document(collection=made, doc_id=document, text=document) for _, document in self.pairs
        )
        return made

    def campaign(self):
        """Return a campaign that has the labels, as all there is."""
        made = empty(self.collection())
        import_text(made, self.labels)
        return made


def empty(collection: Collection, **fields):
    return create_campaign(
        collection=collection, name=f"campaign {uuid.uuid4()}", user=None, grades=GRADES, **fields
    )


def import_text(campaign, text: str, **options) -> int:
    """Import lines of crowd labels as all there is, or what the options say."""
    given = {"file_format": "crowd", "complete": True, **options}
    return import_judgments(campaign=campaign, source=io.BytesIO(text.encode()), name="c.csv", **given)


def import_gold_text(campaign, text: str, **options) -> int:
    """Import gold grades as CSV, of the campaign."""
    return import_text(campaign, text, file_format="gold", complete=None, as_gold=True, **options)
