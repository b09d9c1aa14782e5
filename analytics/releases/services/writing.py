"""From one moment of a campaign to the file of a release."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from analytics.aggregation.qrels import qrels_rule
from analytics.aggregation.rules import aggregation_rule_of
from analytics.frames import HARMLESS, CampaignArrays, campaign_arrays
from analytics.frames.moment import Moment
from analytics.models import Computation, Release
from analytics.releases import formats
from analytics.releases.about import About
from analytics.releases.citation import bibtex, citation_cff, citation_text
from analytics.releases.croissant import croissant
from analytics.releases.datasheet import changes_text, licence_text, readme
from analytics.releases.folder import Folder, digest_of
from analytics.releases.manifest import FORMAT, MANIFEST, manifest
from analytics.releases.merkle import LEDGER
from analytics.releases.services import comparisons, facts
from analytics.releases.services.changes import changes_since
from analytics.releases.services.citing import cited_in, published_on, slug_of
from analytics.releases.services.grading import Grading, graded_items
from analytics.releases.services.judgments import JudgmentSummary, write_judgments
from analytics.releases.services.numbers import (
    Inputs,
    inputs,
    measure_words,
    no_inputs,
    write_confusions,
    write_estimates,
)
from analytics.releases.services.provenance import made_of, product_scripts, scripts_in
from analytics.releases.services.published_runs import PublishedRuns
from analytics.releases.tables import (
    JUDGMENTS,
    SECONDS_STEP,
    to_parquet,
    write_json_lines,
)
from analytics.services.exports import prels_method
from analytics.services.judgment_rows import NamedAssessor, named_assessors
from analytics.services.label_classes import used_score
from analytics.services.recomputation import COMMIT_MAY_TAKE, recompute
from judging.models import Campaign
from judging.services.more_judgments import labels_in_file
from judging.trec_tables import write_beir_qrels, write_prels, write_qrels
from sampling.frames import newest_draw
from touchstone import memory
from touchstone.models import Event, ledger_head

Progress = Callable[[int, int, str], None]
STEPS = 100
NOT_DRAWN = "nothing was drawn, so that no judgment has a probability"


@dataclass(frozen=True)
class BuiltRelease:
    """What came of it. `kept` is the manifest, with what the release rests on."""

    n_bytes: int
    sha256: str
    kept: dict[str, Any]
    merkle_root: str
    last_judgment_id: int
    computation: Computation | None
    changes: dict[str, Any]


class Writer:
    """Writes one release, everything of one moment; `folder` is for files while they grow."""

    def __init__(
        self, release: Release, moment: Moment, folder: Folder, progress: Progress, form: int = FORMAT
    ) -> None:
        self.release, self.moment, self.folder, self._progress = release, moment, folder, progress
        self.form = form  # the number of the format: a release that is made again keeps its own
        with moment.reading():
            self.campaign = Campaign.objects.select_related("collection", "scale").get(pk=release.campaign_id)
            self.published = PublishedRuns.of(self.campaign, form)
        self.computation: Computation | None = release.computation
        self.counts: dict[str, int] = {}
        self.draws: list[str] = []
        self.audits: list[str] = []
        self.labels_in_file = ""
        self.ledger = ""
        self.own_scripts: dict[str, bytes] = {}
        # what the writers below leave for those after them
        self.inputs: Inputs
        self.assessors: list[NamedAssessor]
        self.judged: JudgmentSummary
        self.items: pl.DataFrame
        self.manifest: dict[str, Any]

    def say(self, step: int, note: str) -> None:
        self._progress(step, STEPS, note)

    def write(self, target: Path, as_of: datetime | None) -> BuiltRelease:
        """Write the file; the same facts make the same bytes."""
        self.at = as_of or self.moment.time()
        self.say(0, "reading judgments")
        self.inputs = self._inputs()
        memory.give_back()
        with self.moment.reading():
            # A release that is made again names what it named: seals have come since.
            self.ledger = ledger_head() if as_of is None else self.release.manifest.get("ledger", "")
            rests_on = made_of(self.campaign)
            if as_of is not None:  # scripts change with the product, and are none of its facts
                self.own_scripts = scripts_in(self.release)
            self.assessors = named_assessors(self.campaign, self.release.pseudonym_key)
        for one in sorted(WRITERS, key=lambda one: one.stage):
            with self.moment.reading() if one.of_the_moment else contextlib.nullcontext():
                one.write(self)
        self.folder.pack(target, self.about.folder, self._packing)
        digest, n_bytes = digest_of(target)
        self.say(STEPS, "done")
        kept = {**self.manifest, "made_of": rests_on}
        judged = self.judged
        return BuiltRelease(
            n_bytes, digest, kept, judged.merkle_root, judged.last_id, self.computation, self.changes
        )

    # -- numbers ----------------------------------------------------------------------------------------

    def _inputs(self) -> Inputs:
        """Return what the estimates are made of; where the newest ones are of another moment, make them anew."""
        with self.moment.reading():
            if newest_draw(self.campaign) is None:
                return no_inputs(self.campaign, self.published, NOT_DRAWN)
            arrays = campaign_arrays(self.campaign)
        if self.computation is None:
            self.computation = self._current(arrays) or recompute(
                campaign=self.campaign,
                arrays=arrays,
                progress=lambda done, total, note: self.say(1 + 9 * done // max(total, 1), note),
            )
            self.computation.refresh_from_db()  # as a rebuild will read it
        self.say(10, "working out the inputs of the estimates")
        return inputs(self.campaign, arrays, self.computation, self.published)

    def _current(self, arrays: CampaignArrays) -> Computation | None:
        """Return the newest computation if it saw exactly these arrays."""
        newest = self.campaign.computations.order_by("-id").first()
        if newest is None:
            return None
        seen = {
            "last_judgment_id": arrays.last_judgment_id,
            "n_judgments": arrays.n_judgments,
            "n_batches": arrays.draw.batch,
            "n_audits": arrays.n_audits,
            "n_items": arrays.judged.size,
            "n_audited": int(arrays.audited.sum()),
            "n_gold_checks": arrays.check_true.size,
            "is_by_gold_judges": arrays.is_by_gold_judges,
            "bronze_score": used_score(arrays, self.campaign),
        }
        if any(getattr(newest, name) != value for name, value in seen.items()):
            return None
        if newest.estimates.filter(value__isnull=False, range_low=None).exists():  # of an older version
            return None
        return None if self._something_happened(newest) else newest

    def _something_happened(self, computation: Computation) -> bool:
        """Return whether the log has anything since that may have changed numbers: gold answers, gains, runs."""
        subjects = [f"campaign:{self.campaign.pk}", f"collection:{self.campaign.collection_id}"]
        events = Event.objects.filter(subject__in=subjects, at__gt=computation.created_at - COMMIT_MAY_TAKE)
        return bool(events.exclude(verb__in=HARMLESS).exists())

    def write_numbers(self) -> None:
        self.say(72, "writing estimates")
        write_confusions(self.folder, self.computation, {one.key: one.name for one in self.assessors})
        self.counts["estimates"] = write_estimates(
            self.folder, self.inputs.heading, self.computation, self.published
        )
        comparisons.write_comparisons(self.folder, self.computation, self.published, self.release.created_at)

    # -- tables -----------------------------------------------------------------------------------------

    def write_assessors(self) -> None:
        self.folder.write_lines(
            "assessors.jsonl",
            (
                {
                    "assessor": one.name,
                    "tier": one.tier,
                    "kind": one.kind,
                    "in_matrices": one.key in self.inputs.in_matrices,
                }
                for one in self.assessors
            ),
        )
        self.counts["assessors"] = len(self.assessors)

    def write_facts(self) -> None:
        campaign, folder = self.campaign, self.folder
        self.say(15, "writing topics and documents")
        self.counts["topics"] = facts.write_topics(campaign, folder)
        self.counts["documents"] = facts.write_documents(
            campaign,
            folder,
            with_texts=self.with_texts,
            has_corpus=self.with_texts or self.form > 1,
            progress=lambda n: self.say(15, f"{n:,} documents written"),
        )
        facts.write_corrections(campaign, folder)
        self.say(25, "writing runs")
        with_rankings = self.release.includes_runs
        self.counts |= facts.write_runs(
            self.published,
            folder,
            with_rankings=with_rankings,
            progress=lambda n: self.say(25, f"{n:,} runs looked at"),
        )
        self.draws = facts.write_draws(campaign, self.published, folder)
        self.audits = facts.write_audits(campaign, self.published, folder)
        self.labels_in_file = labels_in_file(campaign)

    @property
    def with_texts(self) -> bool:
        return self.release.includes_documents and self.campaign.collection.may_publish_documents

    def write_judgments(self) -> None:
        self.say(35, "writing judgments")
        self.judged = write_judgments(
            self.campaign,
            self.assessors,
            self.inputs.used,
            self.folder,
            lambda n: self.say(35, f"{n:,} judgments written"),
            seconds_step=SECONDS_STEP if self.form > 1 else None,
        )
        to_parquet(self.folder.path(LEDGER), self.folder.path("judgments.parquet"), JUDGMENTS)
        self.counts |= {"judgments": self.judged.n_judgments, "judgments that count": self.judged.n_counted}

    def write_items(self) -> None:
        self.say(62, "writing items")
        grading = Grading(
            aggregation_rule_of(self.release.aggregation),
            self.release.prefers_gold,
            len(self.assessors),
            self.campaign.scale.relevant_grade,
        )
        items = self.items = graded_items(self.campaign, self.judged, self.inputs.pairs, grading)
        with self.folder.open("items.jsonl") as stream:
            write_json_lines(items, stream)
        files = {"qrels.txt": write_qrels, "beir/qrels/test.tsv": write_beir_qrels}
        for name, write in files.items():
            with self.folder.open(name) as stream:
                write(items, stream)
        with self.folder.open("prels.txt") as stream:
            write_prels(items.filter(pl.col("drawn_in") > 0), stream, prels_method(self.campaign))
        to_parquet(self.folder.path("items.jsonl"), self.folder.path("items.parquet"), items.schema)
        self.counts |= {
            "pairs that could be drawn": int(items["in_frame"].sum()),
            "items with a grade": int(items["grade"].is_not_null().sum()),
            "items audited by the gold tier": int(items["audited"].sum()),
            "items adjudicated": int(items["adjudicated_grade"].is_not_null().sum()),
        }

    # -- words ------------------------------------------------------------------------------------------

    @cached_property
    def changes(self) -> dict[str, Any]:
        return changes_since(self.release.previous, self.folder.path("qrels.txt"))

    @cached_property
    def about(self) -> About:
        """Return what the files for reading say; the tables are written."""
        release, campaign = self.release, self.campaign
        collection = campaign.collection
        allowed = "its collection does not allow it"
        rule = aggregation_rule_of(release.aggregation)
        return About(
            campaign=campaign.name,
            collection=collection.name,
            version=release.version,
            title=release.title,
            as_of=self.at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            published=published_on(release),
            slug=slug_of(campaign),
            form=self.form,
            **cited_in(release, self.form),
            notes=release.notes,
            licence=release.licence,
            source=collection.source,
            documents_licence=collection.licence,
            description=collection.description,
            guidelines=campaign.guidelines,
            aggregation=release.aggregation,
            prefers_gold=release.prefers_gold,
            qrels_rule=qrels_rule(rule.help, prefers_gold=release.prefers_gold),
            grades=tuple((g.value, g.label, g.gain) for g in campaign.scale.grades.all()),
            relevant_grade=campaign.scale.relevant_grade,
            includes_documents=self.with_texts,
            why_no_documents="they were not requested" if collection.may_publish_documents else allowed,
            judgments_per_item=campaign.judgments_per_item,
            labels_in_file=self.labels_in_file,
            campaign_is_open=campaign.state == Campaign.State.OPEN,
            is_simulated=campaign.is_simulated,
            asked_for_consent=bool(campaign.consent.strip()),
            measures=measure_words(self.inputs.heading["measures"]),
            no_estimates=self.inputs.heading["refusal"],
            draws=tuple(self.draws),
            audits=tuple(self.audits),
            counts=self.counts,
            unpublished_runs=self.published.n_unpublished,
            changes=self.changes,
            merkle_root=self.judged.merkle_root,
            ledger=self.ledger,
        )

    def write_prose(self) -> None:
        self.say(78, "writing the data sheet")
        files = {"README.md": readme, "CHANGES.md": changes_text, "LICENSE.txt": licence_text}
        for name, text in files.items():
            self.folder.write(name, text(self.about))

    def write_citations(self) -> None:
        self.folder.write("CITATION.txt", citation_text(self.about))
        self.folder.write("CITATION.bib", bibtex(self.about))
        if self.form > 1:
            self.folder.write("CITATION.cff", citation_cff(self.about))

    def write_scripts(self) -> None:
        for name, content in (self.own_scripts or product_scripts()).items():
            self.folder.write(name, content)

    # -- what lists the other files ---------------------------------------------------------------------

    def write_croissant(self) -> None:
        entries = self.folder.entries()
        described = (formats.file_of(entry.path).croissant for entry in entries)
        tables = {
            name: pl.read_parquet_schema(self.folder.path(name))
            for name in dict.fromkeys(filter(None, described))
        }
        self.folder.write_json("croissant.json", croissant(self.about, entries, tables, self.about.licence))

    def write_manifest(self) -> None:
        self.manifest = manifest(self.about.facts(), self.folder.entries(), self.about.merkle_root, self.form)
        self.folder.write_json(MANIFEST, self.manifest)

    def _packing(self, done: int, total: int) -> None:
        self.say(80 + 19 * done // max(total, 1), f"packing {total / 1e6:,.0f} MB")


class Stage(IntEnum):
    """When a file is written: after all those that it tells of."""

    TABLES = 1
    PROSE = 2
    CROISSANT = 3
    MANIFEST = 4


@dataclass(frozen=True)
class FileWriter:
    """What writes some of RELEASE_FILES, stage by stage in the order of the table.

    `of_the_moment`: it reads the database's moment.
    """

    names: tuple[str, ...]
    write: Callable[[Writer], None]
    stage: Stage = Stage.TABLES
    of_the_moment: bool = True


# Every file of a release is written by an entry.
WRITERS = (
    FileWriter(("assessors.jsonl",), Writer.write_assessors),
    FileWriter(facts.FILES, Writer.write_facts),
    FileWriter(("judgments.*", "qrels_jg.txt"), Writer.write_judgments),
    FileWriter(("items.*", "qrels.txt", "prels.txt", "beir/qrels/test.tsv"), Writer.write_items),
    # A computation may have been made by this job: the moment does not see it.
    FileWriter(
        ("confusion.json", "estimates.json", "comparisons.json"), Writer.write_numbers, of_the_moment=False
    ),
    FileWriter(
        ("README.md", "CHANGES.md", "LICENSE.txt"), Writer.write_prose, Stage.PROSE, of_the_moment=False
    ),
    FileWriter(
        ("CITATION.txt", "CITATION.bib", "CITATION.cff"),
        Writer.write_citations,
        Stage.PROSE,
        of_the_moment=False,
    ),
    FileWriter(("verify.py", "verify_*.py"), Writer.write_scripts, Stage.PROSE, of_the_moment=False),
    FileWriter(("croissant.json",), Writer.write_croissant, Stage.CROISSANT, of_the_moment=False),
    FileWriter((MANIFEST,), Writer.write_manifest, Stage.MANIFEST, of_the_moment=False),
)
