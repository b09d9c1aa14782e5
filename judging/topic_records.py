"""What a file of topics gives, and what the readers of one file share."""

from dataclasses import dataclass

from judging.faults import Faults, Noting
from judging.file_options import PLAIN, Changes, FileOptions, Ids

MAX_TOPIC = 1_000_000  # characters


@dataclass(frozen=True)
class TopicRecord:
    """An information need as its file gives it; the id is a string even when it looks like a number."""

    topic_id: str
    title: str
    description: str = ""
    narrative: str = ""
    weight: float | None = None  # of the traffic, in any unit


Placed = tuple[TopicRecord, int, int]


class Reading:
    """What the readers of one file need to know; `sheet` is where a spreadsheet's topics are."""

    def __init__(
        self,
        name: str,
        faults: Faults | None = None,
        options: FileOptions = PLAIN,
        changes: Changes | None = None,
    ) -> None:
        self.name, self.faults, self.noting, self.options = name, faults, Noting(faults), options
        self.ids = Ids("topic id", name, options, changes)
        self.sheet = ""
