"""What programs that judge need to know of a campaign, and their requests: claim and submit, as people's."""

import uuid
from collections.abc import Iterable
from functools import cached_property

from judging.kinds import ITEM_COLUMNS, ItemKey
from judging.models import Assessor, Campaign, Collection, Document, GoldAnswer, Judgment, Topic
from judging.rankings import read_rankings, top
from judging.services.assign import submit
from judging.services.claims import LeasedItem
from judging.trec import QrelRecord
from touchstone.files import local
from touchstone.models import User

DEPTH = 20
Pair = tuple[int, int]  # the keys of topic and document


class SimulatedCampaign:
    """A campaign with its true grades, the popularity of its documents, and the accounts of programs."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.truth = self._truth()
        self.pairs: dict[uuid.UUID, Pair] = {}

    def pair(self, item_id: uuid.UUID) -> Pair:
        """Return the keys of an item's topic and document."""
        if item_id not in self.pairs:  # at first, or drawn since
            rows = self.campaign.items.values_list("pk", "topic_id", "document_id")
            self.pairs = {item: (topic, document) for item, topic, document in rows}
        return self.pairs[item_id]

    def _truth(self) -> dict[Pair, int]:
        answers = GoldAnswer.objects.filter(topic__collection=self.campaign.collection)
        found = answers.values_list("topic_id", "document_id", "grade")
        return {(a, b): grade for a, b, grade in found if grade is not None}

    @cached_property
    def popularity(self) -> dict[Pair, float]:
        """Return per item the share of the runs that return it within the pool's depth."""
        collection = self.campaign.collection
        topics = dict(Topic.objects.filter(collection=collection).values_list("topic_id", "pk"))
        documents = dict(Document.objects.filter(collection=collection).values_list("doc_id", "pk"))
        runs = list(collection.runs.all())
        share: dict[Pair, float] = {}
        for run in runs:
            rows = top(read_rankings(local(run.rankings)), DEPTH).select("topic_id", "doc_id")
            for topic_id, doc_id in rows.iter_rows():
                if topic_id in topics and doc_id in documents:
                    pair = topics[topic_id], documents[doc_id]
                    share[pair] = share.get(pair, 0.0) + 1 / len(runs)
        return share

    def share(self, pair: Pair) -> float:
        """Return the share of the runs that return a document, in [0, 1]."""
        return min(1.0, self.popularity.get(pair, 0.0))

    def assessor(self, username: str, tier: str) -> Assessor:
        """Return the simulated assessor of this name; makes account and membership where they are missing."""
        user, is_new = User.objects.get_or_create(username=username)
        if is_new:  # nobody logs in as a program
            user.set_unusable_password()
            user.save(update_fields=["password"])
        made, _ = Assessor.objects.get_or_create(
            campaign=self.campaign, user=user, defaults={"tier": tier, "kind": Assessor.Kind.SIMULATED}
        )
        return Assessor.objects.select_related("campaign__scale", "campaign__collection").get(pk=made.pk)

    def give(self, assessor: Assessor, held: LeasedItem, grade: int, seconds: float) -> Judgment:
        """Submit one judgment."""
        return submit(
            assessor=assessor,
            token=held.token,
            client_token=uuid.uuid4(),
            grade=int(grade),
            active_milliseconds=round(1000 * seconds),
        )


def known_grades(records: Iterable[QrelRecord], made: Collection) -> dict[ItemKey, int]:
    """Return the grades of the topics and documents that the collection has."""
    topics = set(made.topics.values_list("topic_id", flat=True))
    documents = set(made.documents.values_list("doc_id", flat=True))
    return {
        ItemKey(record.topic_id, record.doc_id): record.grade
        for record in records
        if record.topic_id in topics and record.doc_id in documents
    }


def pooled_pairs(made: Collection, depth: int) -> set[ItemKey]:
    """Return what any run of the collection returns to this depth."""
    pairs: set[ItemKey] = set()
    for run in made.runs.all():
        rows = top(read_rankings(local(run.rankings)), depth)
        pairs.update(ItemKey(*names) for names in rows.select(ITEM_COLUMNS).iter_rows())
    return pairs
