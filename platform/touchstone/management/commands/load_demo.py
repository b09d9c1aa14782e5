"""`manage.py load_demo`: fill an empty database with the demo, by the same services that users call."""

import json
import os
import secrets
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, transaction
from django.utils.translation import gettext_noop

from analytics.services.recomputation import queue_recomputation
from judging.kinds import ITEM_COLUMNS, ItemKey
from judging.models import Assessor, Campaign, Collection, Document, GoldAnswer, Topic
from judging.rankings import read_rankings, top
from judging.services.campaigns import DEFAULT_GRADES, add_assessor, create_campaign, open_campaign
from judging.services.errors import ImportRefused
from judging.services.files import import_documents, import_runs, import_topics
from judging.services.folder_imports import keep_folder, parse_settings
from judging.services.judgment_files import import_judgments
from judging.trec import read_qrels
from judging.trec_tables import write_qrels
from sampling.models import AuditSchedule, AuditTier
from sampling.questions import Design
from sampling.services.audit_schedules import save_schedule
from sampling.services.auditing import audit
from sampling.services.drawing import draw
from touchstone.demo import library, systems
from touchstone.demo.filling import fill
from touchstone.demo.mixes import parse_mix
from touchstone.demo.own_collection import look_for_demo, off_scale_words
from touchstone.demo.runs import RunFiles, run_files, stored_records, write_run_file
from touchstone.demo.simulated_campaign import DEPTH, known_grades, pooled_pairs
from touchstone.demo.simulation import Simulation, judge_audits_for_ever
from touchstone.files import local
from touchstone.models import User
from touchstone.views import DEMO_LOGINS

GRADES = library.TOPICS.with_name("grades.qrels")
PEOPLE = [
    ("mara", User.Role.MANAGER, gettext_noop("manager")),
    ("rhea", User.Role.RESEARCHER, gettext_noop("researcher")),
    ("bob", User.Role.ASSESSOR, gettext_noop("assessor")),
    ("greta", User.Role.ASSESSOR, gettext_noop("gold assessor")),
]
GUIDELINES = """Read the topic, then the document. Grade what the document itself offers for the need:

- **0**: nothing to do with it, or only shares words
- **1**: touches it; you would look further
- **2**: helps with it
- **3**: what you were looking for

When two grades seem right, take the lower one.
"""
OWN, SIMULATED = "Judge it yourself", "Judged by simulated assessors"
ERRING = "Judged by assessors who err"
OWN_TOPICS = (
    4  # numbers need judgments on every topic: few topics, so that one person sees them after half an hour
)
SIMULATED_FIELDS = {
    "judgments_per_item": 2,
    "cost_per_judgment": 0.1,  # as if it were a crowd: a gold label costs ten times as much
    "cost_per_gold": 1.0,
    "is_simulated": True,
}
SEED = 20261121
SIMULATED_ITEMS = 1200
# About 150 of 1,195 items in all: what a real audit can pay for, so that the pair's interval is no narrower than there.
AUDITED_EACH_TIME, AUDITS_AT_START, AUDITS_IN_ALL = 15, 6, 10
AUDITED_BY_SILVER = 240
# Ten who err as people do, and one each of five kinds that a manager should find.
ERRING_MIX = "honest=10,pattern:0=1,pattern:01=1,sticky:.5=1,disgruntled=1,optimist=1"
# So many items that all are judged when each assessor has judged about 300 times, gold checks included.
ERRING_ITEMS, ERRING_EACH, ERRING_AUDITED = 1340, 300, 300


class Command(BaseCommand):
    started = time.monotonic()
    settings_of_files: list[str] = []
    wait_for_library: Callable[[], Path] | None = None  # returns the folder, if a process writes it already
    stealth_options = ("wait_for_library",)
    help = "Load the demo collection, its campaigns and its users (does nothing where they are already)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--collection", help="a folder to load instead of Python's standard library")
        parser.add_argument(
            "--set", action="append", default=[], dest="settings_of_files", help="as in `demo`"
        )
        parser.add_argument(
            "--judge",
            action="store_true",
            help="load no collection; judge the simulated campaigns, and what audits select there, until stopped",
        )

    def handle(
        self, *args: Any, collection: str | None, judge: bool, settings_of_files: list[str], **options: Any
    ) -> None:
        if "DATABASE_URL" in os.environ:
            raise CommandError("the demo's accounts are not for a real database: use `manage.py demo`")
        self.started, self.settings_of_files = time.monotonic(), settings_of_files
        self.wait_for_library = options.get("wait_for_library")
        with connection.cursor() as cursor:
            # Somebody's folder is read and searched within a transaction: on a busy machine that takes long.
            cursor.execute("SET idle_in_transaction_session_timeout = 0")
        if judge:
            self._judge_simulated_campaign()
            self._load_erring_campaign()
            self._load_late_runs()
            judge_audits_for_ever(self._say)
        name = Path(collection).name if collection else "Python's standard library"
        people = self._people()
        # Each step is one transaction or can be repeated: a load that was cut off goes on where it stopped.
        try:
            there = Collection.objects.filter(deleted_at=None)
            made = there.filter(name=name).first() or self._collection(collection, name)
        except (ImportRefused, ValueError) as error:
            raise CommandError(str(error)) from error
        pair = self._best_pair(made)
        with transaction.atomic():
            small_name = f"{name}: {OWN_TOPICS} topics"
            small = there.filter(name=small_name).first() or self._small_collection(made, small_name)
        self._own_campaign(small, people, pair)
        if GoldAnswer.objects.filter(topic__collection=made).exists():
            self._open_simulated_campaign(made, people["mara"], pair)

    def _collection(self, folder: str | None, name: str) -> Collection:
        return self._folder(Path(folder), name) if folder else self._standard_library(name)

    def _say(self, text: str) -> None:
        self.stdout.write(f"[{time.monotonic() - self.started:5.1f} s] {text}")
        self.stdout.flush()

    # -- people -----------------------------------------------------------------------------------------

    def _people(self) -> dict[str, User]:
        if (settings.VAR / DEMO_LOGINS).exists():
            return {username: User.objects.get(username=username) for username, _, _ in PEOPLE}
        users, logins = {}, []
        for username, role, words in PEOPLE:
            password = secrets.token_urlsafe(9)
            users[username], _ = User.objects.get_or_create(username=username, defaults={"role": role})
            users[username].set_password(password)
            users[username].save()
            logins.append({"username": username, "password": password, "role": words})
        target = settings.VAR / DEMO_LOGINS
        target.touch(mode=0o600)
        target.write_text(json.dumps(logins))
        return users

    # -- collections ------------------------------------------------------------------------------------

    def _standard_library(self, name: str) -> Collection:
        """The docstrings of this Python, with our topics and their author's grades."""
        with tempfile.TemporaryDirectory() as empty:
            # Read and searched before the transaction: on a busy machine both take long, and nothing waits for them.
            if self.wait_for_library is None:
                library.write_library(Path(empty), self._say)
            folder = Path(empty) if self.wait_for_library is None else self.wait_for_library()
            with transaction.atomic():
                return self._import_standard_library(name, *library.files_of(folder))

    def _import_standard_library(self, name: str, corpus: Path, runs: RunFiles) -> Collection:
        made = Collection.objects.create(
            name=name,
            description="What the documentation strings of Python's standard library say, for 45 needs.",
            source="The documentation strings of the Python that runs the demo; topics, grades: Touchstone's authors.",
            licence="Documents: Python Software Foundation License; topics and grades: Apache-2.0",
            may_publish_documents=True,
        )
        n_documents = import_documents(collection=made, source=corpus, name="corpus.jsonl")
        n_topics = import_topics(collection=made, source=library.TOPICS, name=library.TOPICS.name)
        self._say(f"{n_documents} documents and {n_topics} topics imported")
        self._import_runs(made, runs)
        known = known_grades(read_qrels(GRADES, GRADES.name), made)
        # The author's statement: what is not listed is not relevant. That makes the gold complete in the pool.
        known |= {key: 0 for key in pooled_pairs(made, DEPTH) if key not in known}
        self._import_gold(made, known, corpus.parent, "the topics' author")
        return made

    def _folder(self, root: Path, name: str) -> Collection:
        """Somebody's own collection: all that the look before the start has named, or nothing."""
        cards, choices = look_for_demo(root, parse_settings(self.settings_of_files))
        with transaction.atomic():
            made = Collection.objects.create(name=name, description=f"Loaded from {root.name}.")
            kept = keep_folder(collection=made, path=root, choices=choices)
            for note in [*off_scale_words(cards), *kept.report["notes"]]:
                self._say(note)
            after = kept.report["after"]
            self._say(", ".join(f"{n:,} {what}" for what, n in after.items() if n) + " imported")
            if made.runs.count() < 2:
                with tempfile.TemporaryDirectory() as folder:
                    self._import_runs(made, run_files(*stored_records(made), Path(folder), systems.rankings))
        return made

    def _import_runs(self, made: Collection, files: RunFiles) -> None:
        import_runs(collection=made, files=files)
        made.runs.update(may_publish=True)  # the demo's own systems made them
        self._say(f"the rankings of {len(files)} retrieval systems imported")

    def _import_gold(
        self, made: Collection, grades: dict[ItemKey, int], folder: Path, source_name: str
    ) -> None:
        path = folder / "gold.qrels"
        rows = [(key.topic, key.document, grade) for key, grade in sorted(grades.items())]
        with path.open("wb") as stream:
            write_qrels(pl.DataFrame(rows, schema=[*ITEM_COLUMNS, "grade"], orient="row"), stream)
        n = import_judgments(
            collection=made, source=path, name=path.name, as_gold=True, source_name=source_name
        )
        self._say(f"{n} gold answers imported")

    def _small_collection(self, made: Collection, name: str) -> Collection:
        """A few topics of the collection with the documents of their pools, for one person to judge."""
        small = Collection.objects.create(
            name=name,
            description=f"{OWN_TOPICS} topics of {made.name}, to judge yourself.",
            source=made.source,
            licence=made.licence,
            may_publish_documents=made.may_publish_documents,
        )
        topics = list(made.topics.order_by("topic_id")[:OWN_TOPICS])
        wanted = {topic.topic_id for topic in topics}
        pooled = {key.document for key in pooled_pairs(made, DEPTH) if key.topic in wanted}
        Topic.objects.bulk_create(
            Topic(
                collection=small,
                topic_id=t.topic_id,
                title=t.title,
                description=t.description,
                narrative=t.narrative,
            )
            for t in topics
        )
        Document.objects.bulk_create(
            Document(collection=small, doc_id=d.doc_id, title=d.title, text=d.text)
            for d in made.documents.filter(doc_id__in=pooled)
        )
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for run in made.runs.all():
                rows = top(read_rankings(local(run.rankings)), DEPTH).filter(
                    pl.col("topic_id").is_in(list(wanted))
                )
                path = Path(folder) / f"{run.run_id}.run"
                write_run_file(rows, run.run_id, path)
                files.append((path, path.name))
            import_runs(collection=small, files=files)
            allowed = made.runs.filter(may_publish=True).values_list("run_id", flat=True)
            small.runs.filter(run_id__in=list(allowed)).update(may_publish=True)
            answers = GoldAnswer.objects.filter(topic__in=topics, document__doc_id__in=pooled)
            known = {
                ItemKey(topic_id, doc_id): grade
                for topic_id, doc_id, grade in answers.values_list(
                    "topic__topic_id", "document__doc_id", "grade"
                )
                if grade is not None
            }
            if known:
                self._import_gold(small, known, Path(folder), "the topics' author")
        return small

    # -- campaigns --------------------------------------------------------------------------------------

    def _best_pair(self, made: Collection) -> tuple[str, str]:
        """The pair worth asking about: the demo knows its own; elsewhere the first two runs."""
        runs = list(made.runs.values_list("run_id", flat=True))
        wanted = ("bm25-description", "fusion")
        return wanted if set(wanted) <= set(runs) else (runs[0], runs[1])

    def _draw(self, campaign: Campaign, pair: tuple[str, str], budget: int, user: User) -> None:
        design = Design("pair", tuple(pair), measure="DCG@10", depth=DEPTH, budget=budget)
        made = draw(campaign=campaign, design=design, seed=SEED, user=user)
        open_campaign(campaign=campaign, actor=user)
        self._say(f"{campaign.name}: {made.n_drawn} of {made.n_frame} pooled documents drawn")

    def _own_campaign(self, made: Collection, people: dict[str, User], pair: tuple[str, str]) -> None:
        name = f"{OWN}: {made.name}"
        if Campaign.objects.filter(name=name, deleted_at=None).exists():
            return
        with transaction.atomic():
            campaign = self._campaign(made, name, people["mara"])
            add_assessor(
                campaign=campaign, user=people["bob"], tier=Assessor.Tier.BRONZE, actor=people["mara"]
            )
            add_assessor(
                campaign=campaign, user=people["greta"], tier=Assessor.Tier.GOLD, actor=people["mara"]
            )
            self._draw(campaign, pair, 60, people["mara"])
            AuditSchedule.objects.create(
                campaign=campaign, every_seconds=60, items_each_time=15, items_in_total=30
            )

    def _campaign(self, made: Collection, name: str, user: User, **fields: Any) -> Campaign:
        return create_campaign(
            collection=made, name=name, user=user, grades=DEFAULT_GRADES, guidelines=GUIDELINES, **fields
        )

    def _open_simulated_campaign(self, made: Collection, manager: User, pair: tuple[str, str]) -> None:
        """Draw what programs will judge when the pages are there: nobody waits for them."""
        name = f"{SIMULATED}: {made.name}"
        if not Campaign.objects.filter(name=name, deleted_at=None).exists():
            with transaction.atomic():
                campaign = self._campaign(made, name, manager, **SIMULATED_FIELDS)
                self._draw(campaign, pair, SIMULATED_ITEMS, manager)

    def _judge_simulated_campaign(self) -> None:
        campaign = Campaign.objects.filter(name__startswith=f"{SIMULATED}: ").first()
        # Without a campaign: a folder without grades. With a schedule: all of this was done before.
        if campaign is None or AuditSchedule.objects.filter(campaign=campaign).exists():
            return
        with connection.cursor() as cursor:
            # Losing the last moments of a simulation costs nothing: a load that was cut off goes on where it stopped.
            cursor.execute("SET synchronous_commit = off")
        manager = User.objects.get(username="mara")
        simulation = Simulation(campaign)
        simulation.judge(self._say)
        at_start = AUDITS_AT_START * AUDITED_EACH_TIME
        audit(
            campaign=campaign, items_each_time=at_start, items_in_total=at_start, user=manager, seed=SEED + 1
        )
        simulation.judge_audit(self._say)
        audit(
            campaign=campaign,
            items_each_time=AUDITED_BY_SILVER,
            items_in_total=AUDITED_BY_SILVER,
            tier=AuditTier.SILVER,
            user=manager,
            seed=SEED + 2,
        )
        simulation.judge_silver_audit(self._say)
        # From now on audits come by themselves, once a minute, and the simulated gold assessor judges them.
        save_schedule(
            campaign=campaign,
            actor=manager,
            every_seconds=60,
            items_each_time=AUDITED_EACH_TIME,
            items_in_total=AUDITS_IN_ALL * AUDITED_EACH_TIME,
        )
        queue_recomputation(campaign=campaign)

    def _load_erring_campaign(self) -> None:
        """A third campaign, judged while the demo runs already: most of its assessors are honest, some are not."""
        of = Campaign.objects.filter(name__startswith=f"{SIMULATED}: ").select_related("collection").first()
        if of is None:  # a folder without grades
            return
        name = f"{ERRING}: {of.collection.name}"
        if AuditSchedule.objects.filter(campaign__name=name).exists():
            return
        campaign = self.erring_campaign(name, SEED)
        save_schedule(
            campaign=campaign,
            actor=User.objects.get(username="mara"),
            every_seconds=86400,
            items_each_time=AUDITED_EACH_TIME,
            items_in_total=ERRING_AUDITED,
        )
        queue_recomputation(campaign=campaign)

    def _load_late_runs(self) -> None:
        """Two systems that come when all draws are made: one needs a wider interval, one has no number yet."""
        of = Campaign.objects.filter(name__startswith=f"{SIMULATED}: ").select_related("collection").first()
        if of is None or of.collection.runs.filter(run_id__startswith="late-").exists():
            return
        with tempfile.TemporaryDirectory() as folder:
            files = run_files(*stored_records(of.collection), Path(folder), systems.late_rankings)
            with transaction.atomic():
                self._import_runs(of.collection, files)
        queue_recomputation(campaign=of)

    def erring_campaign(self, name: str, seed: int) -> Campaign:
        """Return a campaign on the demo's collection, judged by the mix and audited; one that was cut off goes on."""
        made = Campaign.objects.get(name__startswith=f"{SIMULATED}: ").collection
        manager = User.objects.get(username="mara")
        campaign = Campaign.objects.filter(name=name, deleted_at=None).first()
        if campaign is None:
            with transaction.atomic():
                campaign = self._campaign(made, name, manager, judgments_per_item=3, is_simulated=True)
                self._draw(campaign, self._best_pair(made), ERRING_ITEMS, manager)
                campaign.refresh_from_db()
        fill(campaign, parse_mix(ERRING_MIX), seed=seed, most_each=ERRING_EACH, say=self._say)
        audit(
            campaign=campaign,
            items_each_time=ERRING_AUDITED,
            items_in_total=ERRING_AUDITED,
            user=manager,
            seed=seed + 1,
        )
        Simulation(campaign).judge_audit(self._say)
        return campaign
