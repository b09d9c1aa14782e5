"""From a collection to a release with nothing but a generated client: `touchstone_client`, by openapi-python-client.

Whoever imports this has generated the client before (`test_generated_client.py`). Every answer is one that the
description has, parsed into its model, and the model says all that was answered.
"""

import hashlib
import io
import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from types import ModuleType
from typing import Any

from touchstone_client import AuthenticatedClient, models
from touchstone_client.api.assessors import assessor_add
from touchstone_client.api.audits import audits_create, audits_list
from touchstone_client.api.batch import batch_create
from touchstone_client.api.campaigns import campaign_change, campaign_create, campaign_state_set
from touchstone_client.api.claim import items_claim
from touchstone_client.api.collections import collection_change, collection_create
from touchstone_client.api.comparison import comparison_retrieve
from touchstone_client.api.computations import computations_create
from touchstone_client.api.draws import draw_jobs_retrieve, draws_create
from touchstone_client.api.estimates import estimates_list
from touchstone_client.api.forecast import forecasts_create
from touchstone_client.api.heartbeat import leases_extend
from touchstone_client.api.imports import import_create, import_keep, import_read
from touchstone_client.api.invitations import invitation_create
from touchstone_client.api.jobs import job_read
from touchstone_client.api.judgments import judgments_create
from touchstone_client.api.me import my_question_ask
from touchstone_client.api.releases import (
    releases_create,
    releases_download,
    releases_list,
    releases_retrieve,
)
from touchstone_client.api.revisions import revisions_create
from touchstone_client.api.runs import campaign_runs_create, run_change, runs_list
from touchstone_client.types import File

TOPICS, N_DOCUMENTS, RUNS, DEPTH = ["t0", "t1", "t2"], 14, ["run0", "run1", "run2"], 10
LONGEST = 120  # seconds of a job
Grade = Callable[[models.HeldItem], int]


@dataclass
class Walker:
    """One person with a key, and what was answered so far; all of a walk count into the same."""

    client: AuthenticatedClient
    steps: Counter[str]
    parsed: Counter[str]

    def ask(
        self, endpoint: ModuleType, *arguments: Any, status: int | tuple[int, ...] = 200, **named: Any
    ) -> Any:
        """Return the model of an answer, having compared it with what was answered, word for word."""
        answer = endpoint.sync_detailed(*arguments, client=self.client, **named)
        name = endpoint.__name__.rpartition(".")[2]
        expected = status if isinstance(status, tuple) else (status,)
        assert answer.status_code in expected, (name, answer.status_code, answer.content[:500])
        self.steps[name] += 1
        parsed = answer.parsed if isinstance(answer.parsed, list) else [answer.parsed]
        self.parsed.update(type(one).__name__ for one in parsed)
        if isinstance(answer.parsed, File):
            assert answer.parsed.payload.read() == answer.content, name
            answer.parsed.payload.seek(0)
        elif answer.status_code != 204:
            ours = [one.to_dict() for one in parsed]
            assert (
                differences(ours, said if isinstance(said := json.loads(answer.content), list) else [said])
                == []
            ), name
        return answer.parsed

    def wait(self, job: models.JobAnswer) -> models.JobAnswer:
        return self._until(lambda: self.ask(job_read, job.id), lambda now: now.state)

    def wait_for_draw(self, campaign: uuid.UUID, job: models.CampaignJobAnswer) -> models.CampaignJobAnswer:
        return self._until(lambda: self.ask(draw_jobs_retrieve, campaign, job.job), lambda now: now.state)

    def wait_for_release(self, campaign: uuid.UUID, release: models.ReleaseAnswer) -> models.ReleaseAnswer:
        return self._until(
            lambda: self.ask(releases_retrieve, campaign, release.id), lambda now: now.state, "ready"
        )

    def _until(self, ask: Callable[[], Any], state: Callable[[Any], str], wanted: str = "done") -> Any:
        until = time.monotonic() + LONGEST
        while True:
            now = ask()
            if state(now) == wanted:
                return now
            assert state(now) not in ("failed", "cancelled"), now
            assert time.monotonic() < until, now
            time.sleep(0.1)


def differences(ours: Any, theirs: Any, place: str = "") -> list[str]:
    """Return where a model says other things than the JSON that it was made of; times are compared as times."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [
            one
            for name in sorted({*ours, *theirs})
            for one in differences(ours.get(name, "absent"), theirs.get(name, "absent"), f"{place}/{name}")
        ]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [
            one
            for number, pair in enumerate(zip(ours, theirs, strict=True))
            for one in differences(*pair, f"{place}/{number}")
        ]
    return (
        []
        if ours == theirs or _moment(ours) == _moment(theirs) is not None
        else [f"{place}: {ours!r}, {theirs!r}"]
    )


def _moment(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None


@contextmanager
def walkers(address: str, keys: dict[str, str]) -> Iterator[dict[str, Walker]]:
    """Give a walker for each key, by its name; all count together."""
    steps, parsed = Counter[str](), Counter[str]()
    with ExitStack() as opened:
        yield {
            name: Walker(
                opened.enter_context(
                    AuthenticatedClient(
                        base_url=address, token=key, raise_on_unexpected_status=True, timeout=30
                    )
                ),
                steps,
                parsed,
            )
            for name, key in keys.items()
        }


# -- the way --------------------------------------------------------------------------------------------------


def make_collection(manager: Walker) -> uuid.UUID:
    """Make a collection: topics and documents by a look first, runs and gold answers at once."""
    made = manager.ask(
        collection_create,
        body=models.CollectionRequest(name=f"walk {uuid.uuid4()}", description="A walk", licence="CC0-1.0"),
        idempotency_key=str(uuid.uuid4()),
        status=201,
    )
    pairs = [(topic, f"{topic}d{number:02d}") for topic in TOPICS for number in range(N_DOCUMENTS)]
    looked = [
        _file("topics.tsv", [f"{topic}\tNeed {topic}" for topic in TOPICS]),
        _file("corpus.jsonl", [json.dumps({"_id": doc, "text": f"Text of {doc}"}) for _, doc in pairs]),
    ]
    seen = manager.ask(import_create, made.id, body=models.ImportRequest(files=looked, look=True), status=202)
    assert isinstance(seen, models.ImportAnswer)
    manager.wait(seen.job)
    kinds = models.FileChoiceRequestKind
    choices = [
        models.FileChoiceRequest(name="topics.tsv", kind=kinds.TOPICS),
        models.FileChoiceRequest(name="corpus.jsonl", kind=kinds.DOCUMENTS),
    ]
    kept = manager.ask(import_keep, seen.id, body=models.KeepRequest(files=choices), status=202)
    manager.wait(kept.job)
    assert manager.ask(import_read, seen.id).state == "kept"
    runs = [
        _file(
            f"{run}.run",
            [
                f"{topic} Q0 {topic}d{2 * number + place:02d} {place + 1} {50 - place} {run}"
                for topic in TOPICS
                for place in range(DEPTH)
            ],
        )
        for number, run in enumerate(RUNS)
    ]
    gold = _file("gold.qrels", [f"{topic} 0 {doc} {grade_of(doc)}" for topic, doc in pairs])
    for wanted in (
        models.ImportRequest(files=runs, kind=models.ImportRequestKind.RUNS, group="walkers"),
        models.ImportRequest(files=[gold], kind=models.ImportRequestKind.JUDGMENTS, as_gold=True),
    ):
        job = manager.ask(import_create, made.id, body=wanted, status=202)
        assert isinstance(job, models.JobAnswer)
        manager.wait(job)
    for run in manager.ask(runs_list, made.id).results:
        manager.ask(run_change, made.id, run.id, body=models.PatchedRunRequest(may_publish=True))
    changed = models.PatchedCollectionRequest(source="Made for a walk")
    assert manager.ask(collection_change, made.id, body=changed).source == "Made for a walk"
    return made.id


def make_campaign(manager: Walker, collection: uuid.UUID, people: dict[str, str]) -> uuid.UUID:
    """Make a campaign, add its assessors, draw the items, open it."""
    grades = [
        models.GradeRequest(value=value, label=f"grade {value}", gain=float(value)) for value in range(4)
    ]
    wanted = models.CampaignRequest(
        name=f"walk {uuid.uuid4()}", collection=collection, grades=grades, relevant_grade=2,
        judgments_per_item=1, gold_check_rate=0.0,
    )  # fmt: skip
    made = manager.ask(campaign_create, body=wanted, status=201)
    manager.ask(campaign_change, made.id, body=models.PatchedCampaignChangeRequest(guidelines="Be kind."))
    kinds, tiers = models.AssessorRequestKind, models.AssessorRequestTier
    for name, kind, tier in (
        ("machine", kinds.MACHINE, tiers.BRONZE),
        ("person", kinds.HUMAN, tiers.BRONZE),
        ("gold", kinds.HUMAN, tiers.GOLD),
    ):
        body = models.AssessorRequest(username=people[name], kind=kind, tier=tier)
        manager.ask(assessor_add, made.id, body=body, status=201)
    manager.ask(invitation_create, made.id, body=models.InvitationRequest(note="for a friend"), status=201)
    design = {"measure": "P@10", "depth": DEPTH, "budget": 42}
    manager.ask(
        forecasts_create,
        made.id,
        body=models.ForecastRequest(question=models.ForecastRequestQuestion.POOL, **design),
    )
    body = models.DrawRequest(question=models.DrawRequestQuestion.POOL, seed=7, **design)
    job = manager.ask(draws_create, made.id, body=body, status=(200, 202))
    manager.wait_for_draw(made.id, job)
    manager.ask(campaign_state_set, made.id, body=models.StateRequest(state=models.StateRequestState.OPEN))
    return made.id


def judge_in_batches(judge: Walker, campaign: uuid.UUID, grade: Grade, most: int = 1000) -> int:
    """Claim and judge many at once, as machines do; return how many were judged."""
    n_judged = 0
    while n_judged < most:
        body = models.ClaimRequest(n=min(20, most - n_judged), with_text=True)
        held = judge.ask(items_claim, campaign, body=body).items
        if not held:
            break
        judge.ask(leases_extend, campaign, body=models.HeartbeatRequest(tokens=[one.token for one in held]))
        sent = [
            models.SubmissionRequest(client_token=uuid.uuid4(), token=one.token, grade=grade(one))
            for one in held
        ]
        saved = judge.ask(batch_create, campaign, body=models.BatchRequest(judgments=sent)).saved
        assert [one.status for one in saved] == [200] * len(held), saved
        n_judged += len(saved)
    return n_judged


def judge_one_by_one(judge: Walker, campaign: uuid.UUID, grade: Grade) -> int:
    """Judge one after another, as people do; ask a question, and correct the first judgment."""
    first, n_judged = None, 0
    while held := judge.ask(items_claim, campaign, body=models.ClaimRequest(n=1, with_text=True)).items:
        token = held[0].token
        if first is None:
            first = token
            question = models.QuestionRequest(text="Which year is meant?", token=token)
            judge.ask(my_question_ask, campaign, body=question, status=201)
        body = models.SubmissionAndClaimRequest(
            client_token=uuid.uuid4(), token=token, grade=grade(held[0]), n=1
        )
        assert judge.ask(judgments_create, campaign, body=body).saved.token == token
        n_judged += 1
    again = models.SubmissionRequest(
        client_token=uuid.uuid4(), token=first, grade=0, comment="On second thought"
    )
    assert judge.ask(revisions_create, campaign, body=again).saved.grade == 0
    return n_judged


def audit(manager: Walker, gold: Walker, campaign: uuid.UUID) -> int:
    """Have judged items judged again by gold; return how many."""
    body = models.AuditRequest(items=20, total=20, strategy=models.AuditRequestStrategy.INFLUENCE, seed=11)
    job = manager.ask(audits_create, campaign, body=body, status=(200, 202))
    manager.wait_for_draw(campaign, job)
    assert len(manager.ask(audits_list, campaign).audits) == 1
    return judge_in_batches(gold, campaign, lambda item: grade_of(_doc_id(item)))


def compute(manager: Walker, campaign: uuid.UUID) -> models.ComparisonAnswer:
    """Have the numbers made, and compare two runs."""
    manager.wait(manager.ask(computations_create, campaign, status=202))
    found = manager.ask(estimates_list, campaign, measure="P@10", page_size=200)
    assert {one.run for one in found.results} == set(RUNS)
    return manager.ask(comparison_retrieve, campaign, run="run0", against="run2", measure="P@10")


def bring_a_run(manager: Walker, campaign: uuid.UUID) -> None:
    lines = [
        f"{t} Q0 {t}d{place:02d} {place + 1} {50 - place} late" for t in TOPICS for place in range(DEPTH)
    ]
    body = models.UploadRequest(file=_file("late.run", lines), against="run0", may_publish=True)
    assert (
        manager.wait(manager.ask(campaign_runs_create, campaign, body=body, status=202)).result["run"]
        == "late"
    )


def make_release(manager: Walker, campaign: uuid.UUID) -> tuple[models.ReleaseAnswer, bytes]:
    """Make a release without texts, find it in the list, and download it."""
    manager.ask(campaign_state_set, campaign, body=models.StateRequest(state=models.StateRequestState.CLOSED))
    body = models.ReleaseRequest(
        version="1.0",
        title="A walk",
        authors="Ada B., 0000-0002-1825-0097",
        licence="CC BY 4.0",
        notes="None.",
    )
    queued = manager.ask(releases_create, campaign, body=body, status=202)
    ready = manager.wait_for_release(campaign, queued)
    assert [one.id for one in manager.ask(releases_list, campaign).results] == [ready.id]
    content = manager.ask(releases_download, campaign, ready.id).payload.read()
    assert hashlib.sha256(content).hexdigest() == ready.sha256
    assert len(content) == ready.n_bytes
    return ready, content


def grade_of(doc_id: str) -> int:
    return (int(doc_id[-2:]) + TOPICS.index(doc_id[:2])) % 4


def grade_with_errors(item: models.HeldItem) -> int:
    """Return the grade of a judge who is wrong about every fifth document."""
    doc_id = _doc_id(item)
    return (grade_of(doc_id) + (int(doc_id[-2:]) % 5 == 0)) % 4


def _doc_id(item: models.HeldItem) -> str:
    return str(item.document.text).removeprefix("Text of ")


def _file(name: str, lines: list[str]) -> File:
    content = "".join(f"{line}\n" for line in lines).encode()
    return File(payload=io.BytesIO(content), file_name=name, mime_type="application/octet-stream")
