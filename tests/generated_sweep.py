"""Everything that a generated client can read, asked of a campaign that went all the way (`generated_walk.py`)."""

import importlib
import inspect
import io
import pkgutil
import time
import uuid
from types import ModuleType
from typing import Any

import touchstone_client.api
from generated_walk import LONGEST, Walker
from touchstone_client import models
from touchstone_client.api.analyses import analyses_create, analyses_retrieve
from touchstone_client.api.assessors import assessors_list
from touchstone_client.api.computations import computations_list
from touchstone_client.api.documents import documents_list
from touchstone_client.api.gold_answers import gold_answers_list
from touchstone_client.api.imports import import_create
from touchstone_client.api.items import items_list
from touchstone_client.api.jobs import jobs_list
from touchstone_client.api.runs import runs_list
from touchstone_client.api.topics import topics_list
from touchstone_client.api.webhooks import webhooks_create
from touchstone_client.types import File

OF_PAIRS = ("papers", "topics")  # analyses of two runs
# What is asked besides ids, by operation; several times where one address answers with several kinds of files.
OTHER_WORDS: dict[str, list[dict[str, Any]]] = {
    "plots_retrieve": [
        {"plot": plot, "measure": "P@10", "format_": one, **runs}
        for plot, runs in (
            (models.PlotsRetrievePlot.FOREST, {}),
            (models.PlotsRetrievePlot.TOPICS, {"run": "run0", "against": "run1"}),
        )
        for one in models.PlotsRetrieveFormat
    ],
    "tables_retrieve": [
        {"table": table, "measure": "P@10", "format_": one}
        for table in models.TablesRetrieveTable
        for one in models.TablesRetrieveFormat
    ],
    "judgment_file": [{"file_format": one} for one in models.JudgmentFileFileFormat],
    "analyses_retrieve": [
        {"what": one, "measure": "P@10", **({"run": "run0", "against": "run1"} if one in OF_PAIRS else {})}
        for one in models.AnalysesRetrieveWhat
    ],
    "comparison_retrieve": [{"run": "run0", "against": "run1"}],
    "run_estimate_retrieve": [{"run": "run0", "measure": "P@10"}, {"run": "run0", "against": "run1"}],
    "reuse_retrieve": [{"run": "run2"}],
}
OF_ASSESSORS, OF_MACHINES = ("my_", "history_"), ("instructions_",)
NOT_ASKED = {"rounds_read"}  # a forecast of two rounds is made by its own request, and takes minutes


def readers() -> dict[str, ModuleType]:
    """Return the generated modules of what can be read, by the name of the operation."""
    found = {
        one.name.rpartition(".")[2]: importlib.import_module(one.name)
        for one in pkgutil.walk_packages(touchstone_client.api.__path__, "touchstone_client.api.")
        if not one.ispkg
    }
    return {name: one for name, one in found.items() if '"method": "get"' in inspect.getsource(one)}


def read_all(
    walkers: dict[str, Walker], collection: uuid.UUID, campaign: uuid.UUID, release: uuid.UUID
) -> tuple[set[str], list[str]]:
    """Ask for everything that can be read; return the operations that were, and what was wrong with answers."""
    manager = walkers["manager"]
    ids = _ids(manager, collection, campaign, release)
    done, faults = set(), []
    for name, module in readers().items():
        if name in NOT_ASKED:
            continue
        who = walkers["person"] if name.startswith(OF_ASSESSORS) else manager
        who = walkers["machine"] if name.startswith(OF_MACHINES) else who
        parameters = inspect.signature(module.sync_detailed).parameters.values()
        needed = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
        for words in OTHER_WORDS.get(name, [{}]):
            try:
                who.ask(module, **{one: ids[one] for one in needed if one not in words}, **words)
            except Exception as fault:
                faults.append(f"{name} {words}: {type(fault).__name__}: {fault}")
        done.add(name)
    return done, faults


def _ids(manager: Walker, collection: uuid.UUID, campaign: uuid.UUID, release: uuid.UUID) -> dict[str, Any]:
    """Return what stands in addresses, by name."""
    draw_job = manager.ask(jobs_list, kind="draw").results[0]
    document = manager.ask(documents_list, collection).results[0]
    hook = manager.ask(
        webhooks_create, body=models.WebhookRequest(url="https://hooks.example/walk"), status=201
    )
    return {
        "collection_id": collection,
        "campaign_id": campaign,
        "release_id": release,
        "assessor_id": manager.ask(assessors_list, campaign).results[0].id,
        "sequence": 1,
        "batch": 1,
        "computation_id": manager.ask(computations_list, campaign).results[0].id,
        "item_id": manager.ask(items_list, campaign).results[0].id,
        "document_pk": document.id,
        "topic_pk": manager.ask(topics_list, collection).results[0].id,
        "run_pk": manager.ask(runs_list, collection).results[0].id,
        "answer_pk": manager.ask(gold_answers_list, collection).results[0].id,
        "import_id": _looked_at(manager, collection),
        "job_id": draw_job.id,
        "webhook_id": hook.id,
    }


def _looked_at(manager: Walker, collection: uuid.UUID) -> uuid.UUID:
    """Return an import that waits to be kept: of a table without a heading, and of one with a fault."""
    files = [
        File(io.BytesIO(content.encode()), name, "text/plain")
        for name, content in {"more.csv": "qid,query\nt9,What\n", "bad.run": "t0 Q0 t0d00 1 nan x\n"}.items()
    ]
    made = manager.ask(
        import_create, collection, body=models.ImportRequest(files=files, look=True), status=202
    )
    manager.wait(made.job)
    return made.id


def analyse(manager: Walker, campaign: uuid.UUID) -> None:
    """Have every analysis made that has what it needs."""
    asked = OTHER_WORDS["analyses_retrieve"]
    for words in asked:
        body = models.AnalysisRequest(**{**words, "what": models.AnalysisRequestWhat(words["what"])})
        manager.ask(analyses_create, campaign, body=body, status=202)
    until = time.monotonic() + LONGEST
    while any(manager.ask(analyses_retrieve, campaign, **words).is_being_computed for words in asked):
        assert time.monotonic() < until
        time.sleep(0.2)
