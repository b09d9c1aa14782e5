"""Imports for tests: a collection that came as one import, files through the job, and work beside a transaction."""

import threading

from django.core.files.base import ContentFile
from django.db import connection
from small_campaign import RUNS, make_collection

import judging.tasks  # noqa: F401 (registers the job)
from judging.models import Import
from judging.services.files import import_documents, import_runs, import_topics, queue_import
from judging.services.imports import made_now
from judging.services.judgment_files import import_judgments
from judging.services.scores import import_scores
from touchstone import jobs


def whole_collection(folder, collection, actor):
    """Bring topics, documents, runs, scores and gold into the collection as one import; return it."""
    if not (folder / "topics.tsv").exists():
        make_collection(folder)  # another one: it writes the files
    (folder / "llm.scores").write_text("t0 Q0 t0d00 1 0.5 llm\nt1 Q0 t1d00 1 0.25 llm\n")
    made = made_now(None, collection=collection, kind="", actor=actor)
    common = {"collection": collection, "actor": actor, "made": made}
    import_topics(source=folder / "topics.tsv", name="topics.tsv", **common)
    import_documents(source=folder / "corpus.jsonl", name="corpus.jsonl", **common)
    import_runs(files=[(folder / f"{run}.run", f"{run}.run") for run in RUNS], **common)
    import_scores(source=folder / "llm.scores", name="llm.scores", **common)
    import_judgments(source=folder / "gold.qrels", name="gold.qrels", as_gold=True, **common)
    return made


def imported_by_job(kind, texts, collection, actor, **options):
    """Upload files, given with name and content, and run the job; return the import."""
    files = [ContentFile(content, name=name) for name, content in texts]
    job = queue_import(kind=kind, files=files, collection=collection, options=options, user=actor)
    jobs.run(job.pk)
    return Import.objects.filter(collection=collection).latest("created_at")


def run_aside(work):
    """Start `work` on a connection of its own; return the thread and where its result will stand."""
    found = []

    def run():
        try:
            found.append(work())
        except Exception as error:
            found.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found
