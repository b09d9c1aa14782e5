"""Uploads looked at and kept by their jobs, as a manager's pages queue them."""

import io
import zipfile

from django.core.files.base import ContentFile
from django.urls import reverse

import judging.tasks  # noqa: F401 (registers the kinds of job)
from judging.models import Import
from judging.services.keeping import queue_keep
from judging.services.looking import job_of, look_again, queue_look
from touchstone import jobs


def content(name, data):
    return ContentFile(data.encode() if isinstance(data, str) else data, name=name)


def zip_of(members):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as target:
        for name, data in members.items():
            target.writestr(name, data)
    return archive.getvalue()


def run_job(made):
    """Run the newest job about the import; return it, ended."""
    job = job_of(made)
    jobs.run(job.pk)
    job.refresh_from_db()
    return job


def looked(collection, files, user=None):
    """Look at files by their names; return the import with its report."""
    made = queue_look(collection=collection, files=[content(*one) for one in files.items()], user=user)
    job = run_job(made)
    assert job.state == "done", job.error
    return Import.objects.get(pk=made.pk)


def looked_again(made, choices):
    look_again(made=made, choices=choices, user=None)
    job = run_job(made)
    assert job.state == "done", job.error
    return Import.objects.get(pk=made.pk)


def kept(made, files=None, state="done"):
    """Keep what was looked at; return the job."""
    queue_keep(made=made, files=files, user=None)
    job = run_job(made)
    assert job.state == state, job.error
    return job


def card_of(made, name):
    return next(card for card in made.report["files"] if card["name"] == name)


def here(made):
    return "console:manage-import", made.collection_id, made.pk


def fields(client, made):
    """Return what the form of the page would send as it stands."""
    view, *arguments = here(made)
    answer = client.get(reverse(view, args=arguments))
    sent = {}
    for card in answer.context["cards"]:
        for field in card["form"]:
            value = field.value()
            if value not in (None, False, ""):
                sent[field.html_name] = "on" if value is True else value
    return sent
