"""A run that somebody brings: imported, and estimated at once from the judgments that are there, by one job.

The numbers are those that the next computation of all runs will store; with 100 runs that may take minutes, one run
and one other take seconds. `find_estimates` returns whichever is newer.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction

from analytics.estimation.wording import PairComparison, sentence
from analytics.frames import CampaignArrays, campaign_arrays
from analytics.methods import ranked_methods
from analytics.models import Computation, Estimate
from analytics.numbers.estimates import estimate_columns
from analytics.numbers.predictions import Predictions
from analytics.services.analyses import finite_json
from analytics.services.basis import Basis
from analytics.services.comparisons import Comparisons
from analytics.services.confusions import assessor_confusion_counts
from analytics.services.estimate_rows import unsaved_rows
from analytics.services.job_queue import newest_job
from analytics.services.recomputation import Progress, latest_computation, measures_of
from analytics.services.reuse import ReuseQuestion, ReuseRefused, answer
from analytics.services.verdicts import pair_estimates, reported_of
from judging.models import Campaign, Run
from judging.services.errors import Refused
from judging.services.files import import_runs
from judging.services.sources import upload_path
from sampling.frames import newest_draw
from sampling.measures.registry import spellings, sums_among
from touchstone import jobs
from touchstone.files import remove_orphans, store
from touchstone.models import Job, User

KIND = "run-upload"
FOLDER = "run-uploads"
NUMBERS = (
    "value", "standard_error", "low", "high", "p_value", "degrees_of_freedom", "topics_standard_error", "topics_low",
    "topics_high", "topics_p_value", "topics_degrees_of_freedom", "always_low", "always_high", "unbounded_value",
    "unbounded_low", "unbounded_high", "range_low", "range_high", "n_positive", "judged_share", "gold_share",
    "outside_low", "outside_high",
)  # fmt: skip


class UploadRefused(Refused):
    status = 409
    title = "This run cannot be added here"


@dataclass(frozen=True)
class RunEstimates:
    """What is known of a run in a measure: its own values, and its difference to another run.

    `as_of`: the judgment up to which these numbers go; None where nothing is known yet, and the next computation brings
    the numbers. `computation`: the newest one, with the other comparisons of a family.
    """

    run: Run
    measure: str
    against: Run | None = None
    values: list[Estimate] = field(default_factory=list)
    differences: list[Estimate] = field(default_factory=list)
    as_of: int | None = None
    is_from_upload: bool = False
    computation: Computation | None = None

    def comparison(self, comparisons: Comparisons) -> PairComparison | None:
        """Return both claims of the difference; an upload belongs to no family that was declared before it."""
        corrected = reported_of(self.differences)
        return comparisons.of(corrected) if corrected else None

    def verdict(self, comparisons: Comparisons) -> str:
        """Return what is said of the difference; nothing where there is none."""
        compared = self.comparison(comparisons)
        return sentence(compared) if compared else ""


# -- taking it ------------------------------------------------------------------------------------------------


def queue_upload(
    *,
    campaign: Campaign,
    file: "File[Any]",
    description: str = "",
    may_publish: bool = False,
    is_manual: bool = False,
    group: str = "",
    against: str = "",
    user: User | None = None,
) -> Job:
    """Keep the file of one run and queue its import and estimate; `against` names the run to compare it with."""
    if newest_draw(campaign) is None:
        raise UploadRefused("nothing is drawn in this campaign yet, so there are no judgments to use")
    if against and not campaign.collection.runs.filter(run_id=against).exists():
        raise UploadRefused(f"the collection has no run {against!r}")
    with transaction.atomic():
        payload = {
            "campaign": str(campaign.pk),
            "collection": str(campaign.collection_id),
            "upload": {"path": store(FOLDER, file), "name": _shown_name(file.name)},
            "description": description,
            "may_publish": may_publish,
            "is_manual": is_manual,
            "group": group,
            "against": against,
        }
        job = jobs.enqueue(kind=KIND, payload=payload, user=user)
    remove_orphans(FOLDER, _is_waiting)
    if job is None:
        raise RuntimeError("a job without a key was not queued")
    return job


def _shown_name(name: str | None) -> str:
    """Return a stranger's file name as messages show it; no file of ours is ever called so."""
    shown = "".join(character for character in Path(name or "").name if character.isprintable())
    return shown[:100] or "file"


def _is_waiting(name: str) -> bool:
    waiting = Job.objects.filter(kind=KIND, state__in=Job.ACTIVE)
    return waiting.filter(payload__upload__path=name).exists()


def delete_upload(payload: dict[str, Any]) -> None:
    default_storage.delete(payload["upload"]["path"])


# -- the job --------------------------------------------------------------------------------------------------


def take(
    *,
    campaign: Campaign,
    upload: dict[str, str],
    description: str,
    may_publish: bool,
    against: str,
    progress: Progress,
    actor: User | None,
    is_manual: bool = False,  # a job queued by an earlier version does not say
    group: str = "",
) -> dict[str, Any]:
    """Import the run, or raise ImportRefused; return it with its estimates, as JSON without NaN."""
    files = [(upload_path(upload), upload["name"])]
    with transaction.atomic():
        made = import_runs(
            collection=campaign.collection,
            files=files,
            description=description,
            is_manual=is_manual,
            group=group,
            actor=actor,
        )
        run = made[0]
        if may_publish:
            Run.objects.filter(pk=run.pk).update(may_publish=True)
        rival = _rival(campaign, run, against)
        found = estimate_run(campaign=campaign, run=run, against=rival, progress=progress)
    answer: dict[str, Any] = finite_json(
        {
            "run": run.run_id,
            "n_topics": run.n_topics,
            "n_lines": run.n_lines,
            "n_unknown_topics": len(run.unknown_topics),
            "unknown_topics": run.unknown_topics[:20],
            "against": rival.run_id if rival else None,
            "reuse": _reuse(campaign, run),
            **found,
        }
    )
    return answer


def _rival(campaign: Campaign, run: Run, against: str) -> Run | None:
    """Return the run to compare with: the named one, else the best by the newest computation, else the first."""
    others = campaign.collection.runs.exclude(pk=run.pk)
    if against:
        return others.filter(run_id=against).first()
    computed = latest_computation(campaign=campaign)
    best = _best_run(computed, measures_of(campaign)[0]) if computed else None
    return best or others.order_by("run_id").first()


def _best_run(computation: Computation, measure: str) -> Run | None:
    for method in ranked_methods():
        known = computation.estimates.filter(
            measure=measure, method=method.key, run_b=None, value__isnull=False
        ).select_related("run")
        if best := known.order_by("-value", "run__run_id").first():
            return best.run
    return None


def estimate_run(
    *, campaign: Campaign, run: Run, against: Run | None, progress: Progress = lambda *_: None
) -> dict[str, Any]:
    """Return all estimates of the run, and of the run minus the other, in all measures of the campaign."""
    measures = measures_of(campaign)
    progress(1, len(measures) + 2, "reading judgments")
    arrays = campaign_arrays(campaign)
    said = {"as_of": arrays.last_judgment_id, "n_judgments": arrays.n_judgments, "refusal": ""}
    if arrays.judged.size == 0:
        return {**said, "refusal": "nobody has judged yet", "estimates": []}
    wanted = [run.pk] if against is None else [run.pk, against.pk]
    few = arrays_of_runs(arrays, wanted)
    # Predictions learn from all pooled runs, as in every computation: the numbers are to be the same.
    basis = Basis(campaign, few, Predictions(arrays), assessor_confusion_counts(arrays))
    rows: list[Estimate] = []
    for step, measure in enumerate(measures, start=2):
        progress(step, len(measures) + 2, f"estimating {measure}")
        rows += unsaved_rows(few, estimate_columns(basis, measure))
    return {**said, "estimates": [_as_json(row) for row in rows if row.run_id == run.pk]}


def arrays_of_runs(arrays: CampaignArrays, run_keys: list[int]) -> CampaignArrays:
    """Return the arrays with these runs alone, in this order."""
    place = {run.pk: index for index, run in enumerate(arrays.runs)}
    kept = [place[key] for key in run_keys]
    return replace(
        arrays,
        runs=[arrays.runs[index] for index in kept],
        returned=arrays.returned.rows(kept),
        ranks_outside=[arrays.ranks_outside[index] for index in kept],
    )


def _reuse(campaign: Campaign, run: Run) -> dict[str, Any] | None:
    """Return how well the judgments cover the run in the campaign's own measure, where that is a sum."""
    measure = sums_among(measures_of(campaign))[0]
    try:
        return {
            "measure": measure,
            "answer": answer(campaign=campaign, asked=ReuseQuestion(run.run_id, measure)).as_json(),
        }
    except ReuseRefused as refusal:
        return {"measure": measure, "answer": None, "refusal": str(refusal)}


def _as_json(row: Estimate) -> dict[str, Any]:
    return {
        "run": row.run.run_id,
        "run_b": row.run_b.run_id if row.run_b else None,
        "measure": row.measure,
        "method": str(row.method),
        **{name: getattr(row, name) for name in NUMBERS},
        "n": row.n,
        "components": row.components,
        "sources": row.sources,
        "warning": row.warning,
        "refusal": row.refusal,
        "topics_refusal": row.topics_refusal,
    }


# -- what is known afterwards ---------------------------------------------------------------------------------


def find_estimates(*, campaign: Campaign, run: Run, measure: str, against: Run | None = None) -> RunEstimates:
    """Return what is known of the run: from the newest computation if it has the run, else from its upload."""
    computed = latest_computation(campaign=campaign)
    values = [] if computed is None else list(_values(computed, run, measure))
    if computed is not None and values:
        rows = pair_estimates(computed, measure, run, against) if against else []
        return RunEstimates(
            run, measure, against, values, rows, computed.last_judgment_id, computation=computed
        )
    return replace(_from_upload(campaign, run, measure, against), computation=computed)


def _values(computation: Computation, run: Run, measure: str) -> Any:
    known = computation.estimates.filter(measure=measure, run=run, run_b=None)
    return known.select_related("run", "run_b").order_by("pk")


def _from_upload(campaign: Campaign, run: Run, measure: str, against: Run | None) -> RunEstimates:
    key = {"payload__campaign": str(campaign.pk)}
    made = newest_job(KIND, state=Job.State.DONE, result__run=run.run_id, **key)
    if made is None:
        return RunEstimates(run, measure, against)
    rival = against or campaign.collection.runs.filter(run_id=made.result["against"]).first()
    known = {run.run_id: run} | ({rival.run_id: rival} if rival else {})
    rows = [
        _row(one, known)
        for one in made.result["estimates"]
        if one["measure"] in spellings(measure) and one["run_b"] in (None, *known)
    ]
    return RunEstimates(
        run,
        measure,
        rival,
        [row for row in rows if row.run_b is None],
        [row for row in rows if row.run_b is not None],
        made.result["as_of"],
        is_from_upload=True,
    )


def _row(stored: dict[str, Any], known: dict[str, Run]) -> Estimate:
    """Return an estimate of a job's result, as a row that is never saved."""
    names = {"run": known[stored["run"]], "run_b": known[stored["run_b"]] if stored["run_b"] else None}
    return Estimate(**{**stored, **names})
