"""A run that a researcher brings: uploaded, estimated at once on the judgments that are there, by one job."""

import uuid
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods

from analytics.methods import ranked_methods
from analytics.models import Estimate
from analytics.services.claim_intervals import claim_test
from analytics.services.run_upload import KIND, find_estimates, queue_upload
from analytics.services.verdicts import reported_of
from console.claims import comparisons_of
from console.forms.uploads import MANUAL_HELP, MANUAL_LABEL
from console.researcher.prose import methods_words
from console.researcher.results_page import ResultsRequest, results_request
from judging.models import Run
from judging.services.access import researchers_only
from judging.services.errors import Refused
from touchstone.models import Job, user_of

MOST_SHOWN = 10


class RunUploadForm(forms.Form):
    file = forms.FileField(
        label="Run file (TREC, also .gz)",
        help_text="Six columns: topic, Q0, document, rank, score, tag. The tag names the run.",
        allow_empty_file=False,
    )
    description = forms.CharField(
        label="Description of the run",
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    against = forms.ChoiceField(
        label="Run to compare with",
        required=False,
        help_text="Choose it before you see the numbers.",
    )
    may_publish = forms.BooleanField(
        label="Releases may contain this run",
        required=False,
        help_text="Only if you have the right to publish it.",
    )
    is_manual = forms.BooleanField(label=MANUAL_LABEL, required=False, help_text=MANUAL_HELP)
    group = forms.CharField(
        label="Group of the run",
        required=False,
        max_length=200,
        help_text="Optional: your team, or the system of which this is a variant.",
    )

    def __init__(self, *arguments: Any, runs: list[str], **named: Any) -> None:
        super().__init__(*arguments, **named)
        choices = [("", "the best run so far"), *((run, run) for run in runs)]
        self.fields["against"].choices = choices  # type: ignore[attr-defined]


@require_http_methods(["GET", "POST"])
@researchers_only
def upload(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """The form, and what came of an upload (`?job=`). A POST keeps the file and queues its import and estimate."""
    results = results_request(request, campaign_id)
    row = results.campaign
    runs = list(row.collection.runs.values_list("run_id", flat=True))
    form = RunUploadForm(request.POST or None, request.FILES or None, runs=runs)
    status = 200
    if request.method == "POST":
        form = RunUploadForm(request.POST, request.FILES, runs=runs)
        if form.is_valid():
            try:
                job = queue_upload(campaign=row, user=user_of(request), **form.cleaned_data)
                back = f"{reverse('console:run-upload', args=[row.pk])}?job={job.pk}"
                return redirect(f"{reverse('job', args=[job.pk])}?{urlencode({'back': back})}")
            except Refused as refusal:
                form.add_error("file", f"{refusal.title}: {refusal}")
        status = 400
    context = {
        **results.context("reuse"),
        **results.values_context,
        "form": form,
        "mine": _own_uploads(request, row.pk),
        **_came_of(request, results),
    }
    return render(request, "console/researcher/upload.html", context, status=status)


def _own_uploads(request: HttpRequest, campaign: uuid.UUID) -> list[Job]:
    """Return the newest uploads of this campaign by whoever asks."""
    jobs = Job.objects.filter(kind=KIND, requested_by=user_of(request), payload__campaign=str(campaign))
    return list(jobs.order_by("-created_at")[:MOST_SHOWN])


def _came_of(request: HttpRequest, results: ResultsRequest) -> dict[str, Any]:
    """Return what is known of the run of one upload, in the measure that is asked for."""
    try:
        key = uuid.UUID(request.GET.get("job", ""))
    except ValueError:
        return {}
    campaign = results.campaign
    job = get_object_or_404(Job, pk=key, kind=KIND, payload__campaign=str(campaign.pk))
    if job.state != Job.State.DONE:
        return {"job": job}
    run = get_object_or_404(Run, collection=campaign.collection, run_id=job.result["run"])
    rival = campaign.collection.runs.filter(run_id=job.result["against"]).first()
    estimates = find_estimates(campaign=campaign, run=run, measure=results.measure, against=rival)
    by_method = {estimate.method: estimate for estimate in estimates.values}
    said = estimates.verdict(
        comparisons_of(campaign, estimates.computation, results.measure, **results.choice)
    )
    corrected = reported_of(estimates.differences)
    return {
        "job": job,
        "result": job.result,
        "run": run,
        "rival": estimates.against,
        "said": estimates,
        "values": [
            (by_method[method.key], claim_test(by_method[method.key], results.claim))
            for method in ranked_methods()
            if method.key in by_method
        ],
        "estimable": any(estimate.value is not None for estimate in estimates.values),
        "difference": corrected,
        "difference_test": claim_test(corrected, results.claim) if corrected else None,
        "corrected": reported_of(estimates.values),
        "verdict": said,
        "quoted": _quotation(results, corrected, said),
    }


def _quotation(results: ResultsRequest, corrected: Estimate | None, verdict: str) -> str:
    if corrected is None or corrected.value is None or results.computation is None or not verdict:
        return ""
    if corrected.computation_id != results.computation.pk:
        return ""
    row: Any = results.campaign
    return methods_words(
        results.computation,
        corrected,
        verdict,
        n_topics=row.n_drawn_topics or 0,
        declared=results.declaration,
    )
