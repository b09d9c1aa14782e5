"""What the judging screen shows, as a test reads it."""

from judging.models import Judgment

LONG = "\n".join(f"Line {number} of a long document about a need." for number in range(200))


def stored() -> dict[str, tuple]:
    """Return the newest judgment of each document, by title."""
    rows = Judgment.objects.select_related("item__document").order_by("sequence")
    return {row.item.document.title: (row.grade, row.obstacle, row.comment) for row in rows}
