"""The judgments of benchmarks/three_questions.py, the same in every system that is asked, and the right answers.

20 topics of 200 documents each. Two of four people judge every document: each gives the true grade with probability
.92, else one of the other two, and about one judgment in a hundred takes less than two seconds.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

GRADES = ("Not relevant", "Partly relevant", "Highly relevant")
PEOPLE = ("ana", "ben", "chi", "dov")
TOPICS, DOCUMENTS_A_TOPIC, JUDGES = 20, 200, 2
RIGHT, QUICK, N_COMMENTS = 0.92, 0.01, 20
QUICK_BELOW = 2000  # milliseconds
WORDS = "A paragraph about the harbour, its ships and what they carried in that year. "


@dataclass(frozen=True)
class Judgment:
    """What one person said of one document of a topic, and how long it took."""

    topic: str
    document: str
    person: str
    grade: int
    milliseconds: int
    comment: str


def text_of(document: str) -> str:
    return f"Text of {document}. {WORDS * 12}"


@dataclass(frozen=True)
class Judgments:
    """All judgments, those of a document beside each other, and what is asked about them."""

    rows: tuple[Judgment, ...]
    topic: str
    person: str
    comment: str

    @cached_property
    def documents(self) -> dict[tuple[str, str], list[Judgment]]:
        """The judgments of each document, by topic and document."""
        found: dict[tuple[str, str], list[Judgment]] = {}
        for row in self.rows:
            found.setdefault((row.topic, row.document), []).append(row)
        return found

    def differing(self) -> set[str]:
        """Return the documents of the topic asked for on which its judges differ."""
        return {
            document
            for (topic, document), rows in self.documents.items()
            if topic == self.topic and len({row.grade for row in rows}) > 1
        }

    def quick(self) -> set[str]:
        """Return the documents that the person asked for judged in less than two seconds."""
        return {
            row.document for row in self.rows if row.person == self.person and row.milliseconds < QUICK_BELOW
        }

    def commented(self) -> set[str]:
        """Return the document behind the comment asked for."""
        return {row.document for row in self.rows if row.comment == self.comment}


def make_judgments(seed: int) -> Judgments:
    """Draw the judgments, and choose a topic, a person and a comment to ask about."""
    rng = np.random.default_rng([seed, 7])
    rows = []
    for topic in range(1, TOPICS + 1):
        for number in range(DOCUMENTS_A_TOPIC):
            truth = int(rng.choice(3, p=[0.6, 0.25, 0.15]))
            document = f"doc-{topic:02d}-{number:03d}"
            for person in rng.permutation(len(PEOPLE))[:JUDGES]:
                grade = truth if rng.random() < RIGHT else (truth + int(rng.integers(1, 3))) % 3
                low, high = (300, QUICK_BELOW) if rng.random() < QUICK else (QUICK_BELOW + 500, 40_000)
                took = int(rng.integers(low, high))
                rows.append(Judgment(f"need-{topic:02d}", document, PEOPLE[person], grade, took, ""))
    for number, place in enumerate(rng.choice(len(rows), N_COMMENTS, replace=False)):
        said = f"unclear from sentence {10 + number} on"
        rows[place] = Judgment(**{**vars(rows[place]), "comment": said})
    return Judgments(tuple(rows), "need-07", "ben", f"unclear from sentence {10 + N_COMMENTS // 2} on")
