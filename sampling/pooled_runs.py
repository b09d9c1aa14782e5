"""Which runs a draw has pooled: those of then, whatever was set aside, and whichever run has the tag of one since."""

from collections import Counter
from collections.abc import Sequence

from django.db.models import Q

from judging.models import Run
from sampling.models import Draw


def pooled_runs(draw: Draw) -> list[Run]:
    """Return the runs that the draw has pooled, by tag, set aside since or not.

    A draw keeps their tags. The run that it pooled is the newest one of the tag that was there when it was made, and
    was not set aside before anything was drawn. Where a later batch has pooled two of a tag, the one that the batches
    before it had pooled was set aside in between: they are the newest two.
    """
    left = Counter(draw.parameters.get("pooled") or ())
    if not left:
        return []
    first = Draw.objects.filter(campaign=draw.campaign_id, batch=1).values("created_at")
    rows = Run.everything.filter(
        Q(set_aside_at=None) | Q(set_aside_at__gt=first),
        collection__campaigns=draw.campaign_id,
        run_id__in=left,
        created_at__lte=draw.created_at,
    )
    found = []
    for run in rows.order_by("run_id", "-created_at", "-pk"):
        if left[run.run_id]:
            left[run.run_id] -= 1
            found.append(run)
    return found


def runs_learned_from(draw: Draw) -> list[Run]:
    """Return the runs that say something of the documents of a draw: pooled, or asked about where none is recorded."""
    if draw.parameters.get("pooled"):
        return pooled_runs(draw)
    named = Run.objects.filter(collection__campaigns=draw.campaign_id, run_id__in=draw.parameters["runs"])
    return list(named)


def tags_of_then(draw: Draw, runs: Sequence[Run]) -> list[str]:
    """Return the tags by which the draw knows runs: empty for one that came later, under a tag that was pooled."""
    pooled = draw.parameters.get("pooled") or ()
    return ["" if run.run_id in pooled and run.created_at > draw.created_at else run.run_id for run in runs]
