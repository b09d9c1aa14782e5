"""A person's hands at a page: what is activated by pointer or Enter is a click, a control that is set a field."""

from typing import Any


class Hands:
    """Does with a page what a person does, and counts it. Choosing files is one field, however many are chosen."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.clicks = self.fields = 0
        self.done: list[str] = []

    def click(self, selector: str) -> None:
        self.clicks += 1
        self.done.append(f"click {selector}")
        self.page.click(selector)

    def enter(self, selector: str) -> None:
        """Press Enter where one is."""
        self.clicks += 1
        self.done.append(f"enter {selector}")
        self.page.press(selector, "Enter")

    def fill(self, selector: str, text: str) -> None:
        self.fields += 1
        self.done.append(f"fill {selector}")
        self.page.fill(selector, text)

    def choose(self, selector: str, value: str) -> None:
        self.fields += 1
        self.done.append(f"choose {selector}")
        self.page.select_option(selector, value)

    def tick(self, selector: str) -> None:
        self.fields += 1
        self.done.append(f"tick {selector}")
        self.page.check(selector)

    def files(self, selector: str, files: list[dict[str, Any]]) -> None:
        self.fields += 1
        self.done.append(f"files {selector}")
        self.page.set_input_files(selector, files)

    def took(self, clicks: int, fields: int) -> None:
        """Require that it took no more than this."""
        assert self.clicks <= clicks, self.done
        assert self.fields <= fields, self.done
