"""Throw-away servers in a throw-away folder, a campaign on them, and processes of their own for the measurements."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from touchstone import embedded, processes

GRADES = 4
JUDGMENTS_PER_ITEM = 3
PASSWORD = "of-the-benchmark"


@contextlib.contextmanager
def folder(kept: Path | None = None) -> Iterator[Path]:
    """Yield an empty folder, or one that is kept, and keep this process away from a stack that runs on this machine."""
    made = kept or Path(tempfile.mkdtemp(prefix="touchstone-benchmark-"))
    # Before Django reads its settings.
    os.environ["TOUCHSTONE_VAR"] = str(made / "var")
    # These callers are faster than people and their programs.
    for limit in ("JUDGING_REQUESTS", "API_REQUESTS", "API_REQUESTS_PER_ADDRESS"):
        os.environ[limit] = "1000000000"
    (made / "var").mkdir(parents=True, exist_ok=True)
    try:
        yield made
    finally:
        if kept is None:
            shutil.rmtree(made, ignore_errors=True)


@contextlib.contextmanager
def migrated(root: Path) -> Iterator[embedded.Servers]:
    """Run a PostgreSQL and a Redis below the folder, with the product's tables, and set Django up for them."""
    servers = embedded.Servers(root)
    servers.start()
    try:
        set_up_django(servers.database_url, servers.redis_url)
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        yield servers
    finally:
        servers.stop()


def set_up_django(servers_database_url: str, redis_url: str) -> None:
    os.environ.update(DATABASE_URL=servers_database_url, REDIS_URL=redis_url, SECRET_KEY="of-the-benchmark")
    os.environ.update(DJANGO_SETTINGS_MODULE="touchstone.settings", LOG_LEVEL="CRITICAL", HTTPS="0")
    import django

    django.setup()


def make_campaign(
    n_items: int, n_assessors: int, *, name: str = "benchmark", n_topics: int = 8, seed: int = 0
) -> Any:
    """Make an open campaign with so many assessors, who can log in as bob0, bob1, ... of its name."""
    from django.contrib.auth.hashers import make_password

    from judging.models import Assessor, Campaign, Collection, Document, Item, Slot, Topic
    from judging.services.campaigns import create_campaign, open_campaign, open_slots
    from touchstone.models import User

    collection = Collection.objects.create(name=name)
    topics = [
        Topic.objects.create(collection=collection, topic_id=f"t{n}", title="A topic")
        for n in range(n_topics)
    ]
    documents = Document.objects.bulk_create(
        Document(collection=collection, doc_id=f"d{n}", text="Text") for n in range(n_items)
    )
    campaign = create_campaign(
        collection=collection,
        name=name,
        user=None,
        grades=[(grade, f"grade {grade}", float(grade)) for grade in range(GRADES)],
        judgments_per_item=JUDGMENTS_PER_ITEM,
        gold_check_rate=0.0,
    )
    items = Item.objects.bulk_create(
        Item(campaign=campaign, topic=topics[n % n_topics], document=document)
        for n, document in enumerate(documents)
    )
    open_slots(items=items, purpose=Slot.Purpose.JUDGE, n_each=JUDGMENTS_PER_ITEM, seed=seed)
    open_campaign(campaign=campaign, actor=None)
    password = make_password(PASSWORD)
    users = User.objects.bulk_create(
        User(username=f"{name}-bob{n}", password=password) for n in range(n_assessors)
    )
    Assessor.objects.bulk_create(Assessor(campaign=campaign, user=user) for user in users)
    return Campaign.objects.get(pk=campaign.pk)


def assessors_of(campaign: Any) -> list[Any]:
    """Return the campaign's assessors with all that a claim reads of them."""
    from judging.models import Assessor

    return list(Assessor.objects.filter(campaign=campaign).select_related("campaign__scale"))


@contextlib.contextmanager
def web(root: Path) -> Iterator[str]:
    """Run the product's web process on the servers of this process; yield its address."""
    from django.core.management import call_command

    from touchstone.management.commands.stack import WEB

    call_command("collectstatic", interactive=False, verbosity=0)
    address = f"http://127.0.0.1:{embedded.free_port()}/"
    command = [sys.executable, "-m", *WEB, "--bind", address.split("/")[2]]
    server = processes.Program("web", command, ready=embedded.answers(f"{address}livez"))
    server.start(root / "log")
    try:
        server.ready()
        yield address
    finally:
        server.stop()


def kill_tree(pid: int) -> None:
    """SIGKILL for the process and all below it, the parent first so that it can tidy nothing up."""
    for process in processes.family_of(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def in_child(script: str, part: str, seconds: float, *options: str) -> dict[str, Any]:
    """Measure a part in a process of its own: Django can be set up for one database only."""
    command = [sys.executable, script, f"--part={part}", f"--seconds={seconds}", *options]
    child = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=seconds + 240)
    result: dict[str, Any] = json.loads(child.stdout)
    return result
