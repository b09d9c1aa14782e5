"""Releases of the small campaign, and their files by name."""

import io
import json
import zipfile
from pathlib import Path
from types import SimpleNamespace

from small_campaign import (
    judge_all,
    judge_audit,
    make_assessor,
    make_campaign,
    make_undrawn,
    truth_of,
)

from analytics.releases.services.releasing import build, make_release
from judging.services.judgment_files import import_judgments
from sampling.services.auditing import audit


def file(text, name="q"):
    return {"source": io.BytesIO(text.encode()), "name": name}


def judged(tmp_path, lines=("t0 ann t0d00 2", "t0 bob t0d00 1", "t1 ann t1d03 0"), **fields):
    """Return a campaign whose judgments were imported: nothing was drawn, so nothing is estimated."""
    campaign = make_undrawn(tmp_path, gold=False, **fields)
    import_judgments(
        campaign=campaign, file_format="qrels_jg", **file("".join(f"{line}\n" for line in lines))
    )
    return campaign


def audited(tmp_path, budget=30):
    """Return a campaign that was drawn, judged by two and audited."""
    campaign = make_campaign(tmp_path, budget=budget)
    ann, bob, gold = (
        make_assessor(campaign, n, t) for n, t in (("ann", "bronze"), ("bob", "bronze"), ("gus", "gold"))
    )
    judge_all(campaign, [ann, bob], grade=lambda slot, place: max(0, truth_of(slot) - place))
    audit(campaign=campaign, items_each_time=12, items_in_total=12, seed=3)
    judge_audit(campaign, gold)
    return campaign


def released(campaign, version="1.0", **wanted):
    return build(release=make_release(campaign=campaign, version=version, actor=None, by_job=False, **wanted))


def opened(release):
    """Return the files of a release: `text`, `rows` of JSON Lines, `names`, and `everything` as one text."""
    archive = zipfile.ZipFile(io.BytesIO(Path(release.file.path).read_bytes()))
    top = archive.namelist()[0].partition("/")[0]
    names = [name.removeprefix(f"{top}/") for name in archive.namelist()]

    def text(name):
        return archive.read(f"{top}/{name}").decode()

    return SimpleNamespace(
        top=top,
        names=names,
        read=lambda name: archive.read(f"{top}/{name}"),
        text=text,
        rows=lambda name: [json.loads(line) for line in text(name).split("\n")[:-1]],
        everything=b"\n".join(archive.read(name) for name in archive.namelist()),
    )
