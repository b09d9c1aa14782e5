"""The three questions in a running Label Studio: its project with the same judgments, and the ways to an answer.

A task is a document with its topic, and an annotation a judgment: a choice for the grade, a text area for the comment,
and its lead time. Everything begins in the project's Data Manager, whose filters have no disagreement, and of lead
times only the mean of a task's annotations. A regular expression over the results of all annotations of a task finds
different grades; the time of one annotation is in the source of its task and in exported files.
"""

import csv
import json
import re
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from parts.same_judgments import GRADES, JUDGES, PEOPLE, QUICK_BELOW, Judgment, Judgments, text_of
from parts.timed_hands import Answer, TimedHands

AT_ONCE = 500
LABELS = """<View><Text name="text" value="$text"/>
<Choices name="grade" toName="text" choice="single">{choices}</Choices>
<TextArea name="comment" toName="text"/></View>"""
# In the results of a task's annotations one grade, and another after it: as SQLite and PostgreSQL both read it.
DIFFERENT = "|".join(
    f"{grade}.*({'|'.join(other for other in GRADES if other != grade)})" for grade in GRADES
)
TOPIC, PERSON, SECONDS, RESULTS = "data.topic", "annotators", "avg_lead_time", "annotations_results"
# Of the columns that a filter offers, a list shows the first nine, a topic's among them; others are searched for.
SEARCHED = {PERSON: "Annotated by", SECONDS: "Lead Time", RESULTS: "Annotation results"}
DOCUMENT = re.compile(r"\bdoc-\d\d-\d\d\d\b")
OPENED = (
    ".lsf-label-view:not(.lsf-label-view_loading) .lsf-richtext__line"  # the text of a task that is loaded
)


class Unanswered(Exception):
    """The list was asked for, and the server failed."""


class LabelStudio:
    """A project in a Label Studio, and a page of a browser that is logged in there."""

    def __init__(self, context: Any, address: str, user: str, password: str) -> None:
        self.context, self.address = context, address.rstrip("/")
        self.page = context.new_page()
        self.page.goto(f"{self.address}/user/login/")
        self.page.fill("[name=email]", user)
        self.page.fill("[name=password]", password)
        self.page.click("button[type=submit]")
        self.page.wait_for_url(lambda url: "/login" not in url)
        self.version = self.call("GET", "/api/version")["release"]
        self.project = 0
        self.people: dict[str, int] = {}

    def call(self, method: str, path: str, data: Any = None) -> Any:
        """Ask the API as the person who is logged in."""
        tokens = [one["value"] for one in self.context.cookies() if one["name"] == "csrftoken"]
        headers = {"X-CSRFToken": tokens[0], "Referer": self.address}
        answer = self.context.request.fetch(
            f"{self.address}{path}", method=method, data=data, headers=headers, timeout=600_000
        )
        assert answer.ok, f"{method} {path}: {answer.status} {answer.text()[:300]}"
        return answer.json() if answer.text() else None

    # -- the same judgments --------------------------------------------------------------------------------------

    def fill(self, judgments: Judgments) -> None:
        """Make a project with the judgments, each by its own person."""
        self.people = self._people()
        choices = "".join(f'<Choice value="{grade}"/>' for grade in GRADES)
        asked = {"title": "Three questions", "label_config": LABELS.format(choices=choices)}
        self.project = self.call("POST", "/api/projects/", {**asked, "maximum_annotations": JUDGES})["id"]
        tasks = [self._task(key, rows) for key, rows in judgments.documents.items()]
        for first in range(0, len(tasks), AT_ONCE):
            self.call("POST", f"/api/projects/{self.project}/import", tasks[first : first + AT_ONCE])
        made = self.call("GET", f"/api/projects/{self.project}/")
        assert made["task_number"] == len(tasks)
        assert made["total_annotations_number"] == len(judgments.rows)

    def delete(self) -> None:
        self.call("DELETE", f"/api/projects/{self.project}/")

    def _people(self) -> dict[str, int]:
        known = {user["email"]: user["id"] for user in self.call("GET", "/api/users/")}
        for name in PEOPLE:
            if (email := f"{name}@example.org") not in known:
                asked = {"email": email, "username": name, "first_name": name}
                known[email] = self.call("POST", "/api/users/", asked)["id"]
        return {name: known[f"{name}@example.org"] for name in PEOPLE}

    def _task(self, key: tuple[str, str], rows: list[Judgment]) -> dict[str, Any]:
        topic, document = key
        data = {"topic": topic, "document": document, "text": text_of(document)}
        return {"data": data, "annotations": [self._annotation(row) for row in rows]}

    def _annotation(self, row: Judgment) -> dict[str, Any]:
        result = [_part("grade", "choices", {"choices": [GRADES[row.grade]]})]
        if row.comment:
            result.append(_part("comment", "textarea", {"text": [row.comment]}))
        return {
            "completed_by": self.people[row.person],
            "lead_time": row.milliseconds / 1000,
            "ground_truth": False,
            "result": result,
        }

    # -- the Data Manager ----------------------------------------------------------------------------------------

    def begin(self) -> TimedHands:
        """Open the Data Manager without filters."""
        self.call("DELETE", "/api/dm/views/reset/", {"project": self.project})
        self.page.goto(f"{self.address}/projects/{self.project}/data")
        self.page.wait_for_selector("text='doc-01-000'")
        self.page.wait_for_load_state("networkidle")
        return TimedHands(self.page)

    def add_filter(self, hands: TimedHands, column: str, operator: str = "") -> str:
        """Add a filter of a column; return the selector of its line, in which a value is wanted."""
        number = self.page.locator(".lsf-filterLine").count()
        if number == 0:
            hands.click("button[aria-label='Filters']")
        hands.click("button:has-text('Add Another Filter')" if number else "button:has-text('Add Filter')")
        line = f".lsf-filterLine >> nth={number} >> "
        option, title = f"filter:tasks:{column}", SEARCHED.get(column, "")
        hands.pull_down(column, lambda: self._choose(f"{line}.lsf-field", option, title))
        if operator:
            hands.pull_down(operator, lambda: self._choose(f"{line}.lsf-operation", operator))
        return line

    def type_value(self, hands: TimedHands, line: str, value: str) -> int:
        """Type a filter's value; return how many tasks there are when the list shows them."""
        with self.page.expect_request(lambda sent: _asks_for(sent, value)):
            hands.fill(f"{line}.lsf-value input", value)
        return self._wait_for_list()

    def choose_person(self, hands: TimedHands, line: str, person: str) -> int:
        def choose() -> None:
            self.page.click(f"{line}.lsf-value button")
            self.page.click(f"[role=option]:has-text('{person}')")

        with self.page.expect_request(lambda sent: _asks_for(sent, str(self.people[person]))):
            hands.pull_down(person, choose)
        return self._wait_for_list()

    def _choose(self, control: str, option: str, searched: str = "") -> None:
        self.page.click(f"{control} button")
        if searched:
            self.page.fill("[data-testid=select-search-field]", searched)
        self.page.click(f"[data-testid='select-option-{option}']")

    def _wait_for_list(self) -> int:
        with self.page.expect_response(_is_list, timeout=300_000) as got:
            pass
        if not got.value.ok:
            raise Unanswered(f"HTTP {got.value.status}")
        answer = got.value.json()
        first = answer["tasks"][0]["data"]["document"] if answer["tasks"] else ""
        self.page.wait_for_function(IS_SHOWN, arg=[str(answer["total"]), first])
        return int(answer["total"])

    def read(self) -> set[str]:
        """Return the documents of the list, scrolled from its beginning to its end."""
        self.page.mouse.move(400, 500)
        found: set[str] = set()
        for _ in range(40):
            seen = set(DOCUMENT.findall(self.page.inner_text(".lsf-table")))
            if seen <= found:
                break
            found |= seen
            self.page.mouse.wheel(0, 400)
            self.page.wait_for_timeout(250)
        self.page.mouse.wheel(0, -100_000)
        return found


IS_SHOWN = """([total, first]) =>
    document.querySelector('[title="Filtered tasks"]')?.textContent === total
    && (first === '' || document.querySelector('.lsf-table')?.innerText.includes(first))"""


def _part(name: str, kind: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"from_name": name, "to_name": "text", "type": kind, "value": value}


def _asks_for(sent: Any, value: str) -> bool:
    """Return whether the request saves filters of which one has this value."""
    if sent.method != "PATCH" or "/api/dm/views/" not in sent.url:
        return False
    filters = json.loads(sent.post_data or "{}").get("data", {}).get("filters", {})
    return any(str(one.get("value")) == value for one in filters.get("items", []))


def _is_list(answer: Any) -> bool:
    return (answer.request.method, urlsplit(answer.url).path.rstrip("/")) == ("GET", "/api/tasks")


# -- the ways to an answer -----------------------------------------------------------------------------------


def differing_by_expression(studio: LabelStudio, hands: TimedHands, asked: Judgments) -> Answer:
    """Filter by the topic, and by a regular expression that finds two different grades."""
    studio.type_value(hands, studio.add_filter(hands, TOPIC), asked.topic)
    studio.type_value(hands, studio.add_filter(hands, RESULTS, "regex"), DIFFERENT)
    hands.shows_answer()
    return studio.read(), 0


def differing_by_topic(studio: LabelStudio, hands: TimedHands, asked: Judgments) -> Answer:
    """Filter by the topic alone: whether the annotations of a task differ is seen when it is opened."""
    left = studio.type_value(hands, studio.add_filter(hands, TOPIC), asked.topic)
    hands.shows_answer()
    return set(), left


def quick_by_mean(studio: LabelStudio, hands: TimedHands, asked: Judgments) -> Answer:
    """Filter by the person, and by the mean time of a task's annotations."""
    studio.choose_person(hands, studio.add_filter(hands, PERSON), asked.person)
    line = studio.add_filter(hands, SECONDS, "less")
    total = studio.type_value(hands, line, str(QUICK_BELOW // 1000))
    hands.shows_answer()
    return (studio.read() if total else set()), 0


def quick_by_person(studio: LabelStudio, hands: TimedHands, asked: Judgments) -> Answer:
    """Filter by the person alone: the time is in the source of each task."""
    left = studio.choose_person(hands, studio.add_filter(hands, PERSON), asked.person)
    hands.shows_answer()
    return set(), left


def quick_in_file(studio: LabelStudio, hands: TimedHands, asked: Judgments) -> Answer:
    """Export all annotations as CSV, to be filtered elsewhere: by the person's number and the lead time."""
    hands.click("button:has-text('Export')")
    hands.click("text='CSV'")
    with studio.page.expect_download(timeout=300_000) as sent:
        hands.click("[class*=modal] button:has-text('Export')")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "annotations.csv"
        sent.value.save_as(file)
        hands.shows_answer()
        with file.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
    number = str(studio.people[asked.person])
    mine = [row for row in rows if row["annotator"] == number]
    return {row["document"] for row in mine if float(row["lead_time"]) < QUICK_BELOW / 1000}, len(rows)


def commented_by_words(studio: LabelStudio, hands: TimedHands, asked: Judgments) -> Answer:
    """Filter by results that contain the comment's words, and open the task."""
    return _commented(studio, hands, studio.add_filter(hands, RESULTS), asked.comment)


def commented_by_expression(studio: LabelStudio, hands: TimedHands, asked: Judgments) -> Answer:
    """Take the comment's words for a regular expression, which is answered sooner, and open the task."""
    return _commented(studio, hands, studio.add_filter(hands, RESULTS, "regex"), asked.comment)


def _commented(studio: LabelStudio, hands: TimedHands, line: str, comment: str) -> Answer:
    studio.type_value(hands, line, comment)
    hands.click(".lsf-table__row-wrapper >> nth=0 >> text=/^doc-/")
    studio.page.wait_for_selector(OPENED)
    hands.shows_answer()
    return set(DOCUMENT.findall(studio.page.inner_text(OPENED))), 0
