"""What programs that judge need to know of a campaign, and their requests: claim and submit, as people's."""

import uuid
from functools import cached_property

from judging.models import Assessor, Campaign, Document, GoldAnswer, Judgment, Topic
from judging.rankings import read_rankings, top
from judging.services.assign import submit
from judging.services.claims import LeasedItem
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
        return {(a, b): grade for a, b, grade in answers.values_list("topic_id", "document_id", "grade")}

    @cached_property
    def popularity(self) -> dict[Pair, float]:
        """Return per item the share of the runs that return it within the pool's depth."""
        collection = self.campaign.collection
        topics = dict(Topic.objects.filter(collection=collection).values_list("topic_id", "pk"))
        documents = dict(Document.objects.filter(collection=collection).values_list("doc_id", "pk"))
        runs = list(collection.runs.all())
        share: dict[Pair, float] = {}
        for run in runs:
            rows = top(read_rankings(run.rankings.path), DEPTH).select("topic_id", "doc_id")
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
