"""What is judged: collections, topics, documents, runs, and the answers known beforehand."""

import uuid

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Left

from judging.models.imports import Import
from touchstone.models import User

LONGEST_INDEXED = 10_000  # characters: PostgreSQL's list of words has an upper limit


def words_of(field: str) -> SearchVector:
    """Return the words of a text as the index of words has them: as they are written, in any language."""
    return SearchVector(Left(field, LONGEST_INDEXED), config="simple")


def words_asked(text: str) -> SearchQuery:
    """Return the query for all the words of a text: the index serves it, whatever is asked."""
    return SearchQuery(text, config="simple", search_type="plain")


class CollectionQuerySet(models.QuerySet["Collection"]):
    def visible_to(self, user: User) -> "CollectionQuerySet":
        """Return what a manager or researcher may see: not deleted, and open to all or with them among its members."""
        return self.filter(deleted_at=None).open_to(user)

    def open_to(self, user: User) -> "CollectionQuerySet":
        """The same with what was deleted."""
        if user.is_superuser:
            return self
        member = CollectionMember.objects.filter(collection=OuterRef("pk"), user=user)
        return self.filter(Q(is_restricted=False) | Exists(member))


class Collection(models.Model):
    """Documents and topics."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100)
    description = models.TextField(blank=True)
    # HTML documents are shown as text unless a manager opts in; then as the safe HTML made at import.
    shows_html = models.BooleanField(default=False)
    # Everybody who manages or researches here sees it; a restricted one only its members do.
    is_restricted = models.BooleanField(default=False)
    # What a release says of where this comes from, and whether the texts may be in it.
    source = models.TextField(blank=True)
    licence = models.CharField(max_length=200, blank=True)
    may_publish_documents = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(
        null=True, blank=True
    )  # hidden, with all that belongs to it; never removed

    objects = CollectionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="judging_collection_name",
                fields=["name"],
                condition=Q(deleted_at__isnull=True),
                violation_error_message="This name is already taken.",
            )
        ]

    def __str__(self) -> str:
        return self.name


class CollectionMember(models.Model):
    """Who may see a restricted collection; what they may do there depends on their role."""

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="members")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(name="judging_collectionmember_unique", fields=["collection", "user"])
        ]

    def __str__(self) -> str:
        return f"{self.collection_id} {self.user_id}"


def _imported_by() -> "models.ForeignKey[Import | None]":
    """Return the column that names the import of a row; rows of old versions have none.

    It has no index: an import knows between which ids its rows are.
    """
    return models.ForeignKey(
        Import, null=True, editable=False, on_delete=models.PROTECT, related_name="+", db_index=False
    )


class Topic(models.Model):
    """An information need."""

    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="topics")
    topic_id = models.CharField(max_length=200)
    title = models.TextField()
    description = models.TextField(blank=True)
    narrative = models.TextField(blank=True)
    # How much of the traffic it stands for, in any unit. An import refuses a file of which only some topics have
    # one, or that differs in this from the topics before it; without weights all count alike.
    weight = models.FloatField(null=True, blank=True)
    version = models.PositiveIntegerField(default=1, db_default=1)  # the number of the version in force
    imported_by = _imported_by()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="judging_topic_unique", fields=["collection", "topic_id"]),
            models.CheckConstraint(
                name="judging_topic_weight",
                condition=Q(weight__isnull=True) | Q(weight__gt=0, weight__lte=1e100),
            ),
            models.CheckConstraint(name="judging_topic_id_word", condition=Q(topic_id__regex=r"^\S+$")),
        ]
        indexes = [GinIndex(words_of("title"), name="judging_topic_words")]

    def __str__(self) -> str:
        return self.topic_id


class Document(models.Model):
    """The unit judged. An assessor sees `text`, or `html` where the collection shows it: both made safe at import."""

    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="documents")
    doc_id = models.CharField(max_length=500)
    title = models.TextField(blank=True)
    text = models.TextField(blank=True)
    html = models.TextField(blank=True, db_default="")
    version = models.PositiveIntegerField(default=1)  # the number of the version in force
    imported_by = _imported_by()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="judging_document_unique", fields=["collection", "doc_id"]),
            models.CheckConstraint(name="judging_document_id_word", condition=Q(doc_id__regex=r"^\S+$")),
        ]
        indexes = [GinIndex(words_of("title"), name="judging_document_words")]

    def __str__(self) -> str:
        return self.doc_id


class RunManager(models.Manager["Run"]):
    """The runs that are pooled and compared; `Run.everything` has those too that were set aside."""

    def get_queryset(self) -> models.QuerySet["Run"]:
        return super().get_queryset().filter(set_aside_at=None)


class Run(models.Model):
    """One system's ranked lists; they live in one Parquet file (judging/rankings.py), not here."""

    unknown_topics: list[str]  # no column: those the collection lacks, known to the import that made the run

    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="runs")
    run_id = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    rankings = models.FileField(upload_to="rankings/", max_length=300)
    n_topics = models.PositiveIntegerField()
    n_lines = models.PositiveIntegerField()
    may_publish = models.BooleanField(default=False)  # whoever made it lets releases carry it
    is_manual = models.BooleanField(default=False, db_default=False)  # a person took part in making it
    # Whose runs are alike, a team or a system: what they alone return is asked of all of them together.
    group = models.CharField(max_length=200, blank=True, default="", db_default="")
    created_at = models.DateTimeField(auto_now_add=True)
    imported_by = _imported_by()
    # Out of later pools, comparisons and releases; its tag is free. The event says who set it aside.
    set_aside_at = models.DateTimeField(null=True, editable=False)
    set_aside_why = models.CharField(max_length=2000, blank=True, default="", db_default="", editable=False)

    objects = RunManager()
    everything = models.Manager["Run"]()

    class Meta:
        ordering = ["run_id"]
        constraints = [
            models.UniqueConstraint(
                name="judging_run_tag",
                fields=["collection", "run_id"],
                condition=Q(set_aside_at__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return self.run_id


class ScoreList(models.Model):
    """How surely relevant a program says that documents are, within [0, 1]: a guess that shapes draws, never a grade.

    It is in no pool and no comparison. The scores live in one Parquet file, like a run's rankings.
    """

    unknown_topics: list[str]  # no column: those the collection lacks, known to the import that made the list

    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="score_lists")
    name = models.CharField(max_length=200)
    scores = models.FileField(upload_to="scores/", max_length=300)
    n_lines = models.PositiveIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)
    imported_by = _imported_by()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(name="judging_scorelist_unique", fields=["collection", "name"])
        ]

    def __str__(self) -> str:
        return self.name


class GoldManager(models.Manager["GoldAnswer"]):
    """The gold answers in force; `GoldAnswer.everything` has those too that were withdrawn."""

    def get_queryset(self) -> models.QuerySet["GoldAnswer"]:
        return super().get_queryset().filter(grade__isnull=False)


class GoldAnswer(models.Model):
    """A grade known beforehand, from whom `source` names. Campaigns show some of these items unannounced.

    One without a grade was withdrawn: checks of it are decoys.
    """

    topic = models.ForeignKey(Topic, on_delete=models.PROTECT, related_name="gold_answers")
    document = models.ForeignKey(Document, on_delete=models.PROTECT, related_name="gold_answers")
    grade = models.SmallIntegerField(null=True)
    source = models.CharField(max_length=100)
    version = models.PositiveIntegerField(default=1, db_default=1)  # the number of the version in force
    created_at = models.DateTimeField(auto_now_add=True)
    imported_by = _imported_by()

    objects = GoldManager()
    everything = models.Manager["GoldAnswer"]()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="judging_goldanswer_unique", fields=["topic", "document"])
        ]

    def __str__(self) -> str:
        return f"{self.topic} {self.document} {self.grade}"


# -- versions -------------------------------------------------------------------------------------------------


class Version(models.Model):
    """What a document, topic or gold answer said from some time on. Append-only.

    A correction is a row with the next number, who and why. Triggers (migrations/0026_versions_are_kept.py) write what
    was there before as number 1, and put the newest version into the row itself, which nothing else may change: so
    whoever reads documents, topics and gold answers reads what is in force.
    """

    number = models.PositiveIntegerField()
    corrected_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    why = models.CharField(max_length=2000, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)  # a trigger sets it

    class Meta:
        abstract = True


def _version_constraints(name: str, of: str) -> list[models.BaseConstraint]:
    is_first = Q(number=1, why="", corrected_by__isnull=True)
    return [
        models.UniqueConstraint(name=f"judging_{name}_unique", fields=[of, "number"]),
        models.CheckConstraint(
            name=f"judging_{name}_who_and_why",
            condition=is_first | Q(number__gte=2, why__regex=r"\S", corrected_by__isnull=False),
        ),
    ]


class DocumentVersion(Version):
    """A document's words from its correction on; number 1 are those of the import."""

    document = models.ForeignKey(Document, on_delete=models.PROTECT, related_name="versions", db_index=False)
    title = models.TextField(blank=True)
    text = models.TextField(blank=True)
    html = models.TextField(blank=True)

    class Meta:
        constraints = _version_constraints("documentversion", "document")

    def __str__(self) -> str:
        return f"{self.document_id} {self.number}"


class TopicVersion(Version):
    """A topic's words from its correction on; its weight shaped draws and stays."""

    topic = models.ForeignKey(Topic, on_delete=models.PROTECT, related_name="versions", db_index=False)
    title = models.TextField()
    description = models.TextField(blank=True)
    narrative = models.TextField(blank=True)

    class Meta:
        constraints = _version_constraints("topicversion", "topic")

    def __str__(self) -> str:
        return f"{self.topic_id} {self.number}"


class GoldVersion(Version):
    """The grade of a gold answer from its correction on."""

    answer = models.ForeignKey(GoldAnswer, on_delete=models.PROTECT, related_name="versions", db_index=False)
    grade = models.SmallIntegerField(null=True)  # none: withdrawn

    class Meta:
        constraints = _version_constraints("goldversion", "answer")

    def __str__(self) -> str:
        return f"{self.answer_id} {self.number}"
