"""Hands at a page, as the browser tests count them, with the seconds from a touch until the page shows its effect."""

import time
from collections.abc import Callable
from typing import Any

from hands import Hands

# The documents found, and how many tasks, or rows of a file, are still to be looked through.
Answer = tuple[set[str], int]


class TimedHands(Hands):
    """Counts clicks and fields, and the seconds that the machines take: there is no time to think or to type."""

    def __init__(self, page: Any) -> None:
        super().__init__(page)
        self.began: float | None = None
        self.seconds = 0.0

    def click(self, selector: str) -> None:
        self._touch()
        super().click(selector)

    def fill(self, selector: str, text: str) -> None:
        self._touch()
        super().fill(selector, text)

    def pull_down(self, name: str, pull: Callable[[], None]) -> None:
        """Set a control that has to be opened, searched and chosen from: one field, as a native one is."""
        self._touch()
        self.fields += 1
        self.done.append(f"choose {name}")
        pull()

    def shows_answer(self) -> None:
        """Stop the clock until the next touch: the answer, or a part of it, is on the screen."""
        if self.began is not None:
            self.seconds += time.perf_counter() - self.began
        self.began = None

    def _touch(self) -> None:
        self.began = self.began or time.perf_counter()
