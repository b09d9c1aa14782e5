"""Ask the same three questions in Touchstone and in Label Studio, in one Chromium: clicks, fields and seconds.

    python benchmarks/three_questions.py [--label-studio http://127.0.0.1:8080 --user U --password P] [--rounds 5]

1. On which documents of a topic do the judges differ?
2. What did one person judge in less than two seconds?
3. Which document is behind a comment?

All hold the same judgments (parts/same_judgments.py): 8,000 of four people on 4,000 documents of 20 topics, with their
seconds, and 20 comments. Touchstone runs on databases of its own (parts/asked_campaign.py). Label Studio has to run
already: its address is given, and a user who may make projects there; the option may be repeated, and without it only
Touchstone is asked. The project is deleted again (parts/label_studio.py), the people stay.

A way to an answer begins on the overview of the campaign, or in the project's Data Manager without filters. What is
activated by pointer or Enter is a click, a control that is set a field; a list that is pulled down, searched and chosen
from counts as one field, and scrolling as nothing. The seconds are those of the machines, from a touch until what it
asks for is on the screen: nobody thinks, types or reads. The ways take turns, round by round; median, fastest, slowest.

Each answer is compared with the right one, counted from the judgments that were written. `left` says how many tasks, or
rows of a file, are still to be looked through. Prints JSON; `--screens` keeps a picture of every answer.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parts import asked_campaign, label_studio, throwaway
from parts.same_judgments import Judgments, make_judgments
from parts.timed_hands import Answer, TimedHands

DIFFER, QUICK, COMMENT = "judges differ", "under two seconds", "behind a comment"
TOUCHSTONE = "Touchstone"
SCREEN = {"width": 1440, "height": 900}
WAYS_HERE: dict[str, dict[str, Callable[..., Answer]]] = {
    DIFFER: {"filters": asked_campaign.differing},
    QUICK: {"filter": asked_campaign.quick},
    COMMENT: {"list of comments": asked_campaign.commented},
}
WAYS_IN_LABEL_STUDIO: dict[str, dict[str, Callable[..., Answer]]] = {
    DIFFER: {
        "topic and regular expression": label_studio.differing_by_expression,
        "topic alone": label_studio.differing_by_topic,
    },
    QUICK: {
        "person and mean time": label_studio.quick_by_mean,
        "person alone": label_studio.quick_by_person,
        "exported file": label_studio.quick_in_file,
    },
    COMMENT: {
        "contains its words": label_studio.commented_by_words,
        "regular expression": label_studio.commented_by_expression,
    },
}


@dataclass
class Way:
    """One way to an answer in one system, and what it took in every round."""

    question: str
    system: str
    name: str
    start: Any  # what it begins on: has `page` and `begin`
    follow: Callable[..., Answer]
    right: set[str]
    rounds: list[TimedHands] = field(default_factory=list)
    found: list[set[str]] = field(default_factory=list)
    left: int = 0
    error: str = ""

    def take(self, asked: Judgments, screens: Path | None) -> None:
        """Follow the way once."""
        hands = self.start.begin()
        found: set[str] = set()
        try:
            found, self.left = self.follow(self.start, hands, asked)
        except label_studio.Unanswered as fault:
            hands.shows_answer()
            self.error = str(fault)
        self.rounds.append(hands)
        self.found.append(found)
        if screens and len(self.rounds) == 1:
            name = f"{self.system} {self.question} {self.name}".replace(" ", "-").replace("/", "").lower()
            self.start.page.screenshot(path=screens / f"{name}.png")

    def summary(self) -> dict[str, Any]:
        seconds = [hands.seconds for hands in self.rounds]
        last = self.found[-1]
        return {
            "question": self.question,
            "system": self.system,
            "way": self.name,
            "clicks": max(hands.clicks for hands in self.rounds),
            "fields": max(hands.fields for hands in self.rounds),
            "seconds": round(statistics.median(seconds), 2),
            "fastest": round(min(seconds), 2),
            "slowest": round(max(seconds), 2),
            "found": len(last & self.right),
            "wrong": len(last - self.right),
            "wanted": len(self.right),
            "left": self.left,
            "error": self.error,
            "is_right": all(found == self.right for found in self.found),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--label-studio", action="append", default=[], help="the address of one that runs")
    parser.add_argument("--user", default="", help="the e-mail address of a user of it")
    parser.add_argument("--password", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--screens", type=Path, help="a folder for a picture of every answer")
    options = parser.parse_args()
    if options.screens:
        options.screens.mkdir(parents=True, exist_ok=True)
    asked = make_judgments(options.seed)
    ways = _follow_all(asked, options)
    told = {"judgments": len(asked.rows), "documents": len(asked.documents), "rounds": options.rounds}
    print(json.dumps({**told, "ways": [way.summary() for way in ways]}, indent=2))
    if any(found != way.right for way in ways if way.system == TOUCHSTONE for found in way.found):
        sys.exit("Touchstone gave a wrong answer")


def _follow_all(asked: Judgments, options: argparse.Namespace) -> list[Way]:
    """Follow every way to an answer in every system, round by round."""
    right = {DIFFER: asked.differing(), QUICK: asked.quick(), COMMENT: asked.commented()}
    with ExitStack() as stack:
        chromium, overview = stack.enter_context(_touchstone(asked))
        starts: list[tuple[str, Any, dict[str, dict[str, Callable[..., Answer]]]]] = [
            (TOUCHSTONE, overview, WAYS_HERE)
        ]
        for address in options.label_studio:
            studio = stack.enter_context(_label_studio(chromium, address, options, asked))
            starts.append((f"Label Studio {studio.version} at {address}", studio, WAYS_IN_LABEL_STUDIO))
        ways = [
            Way(question, system, name, start, follow, right[question])
            for question in right
            for system, start, known in starts
            for name, follow in known[question].items()
        ]
        for _ in range(options.rounds):
            for way in ways:
                way.take(asked, options.screens)
    return ways


@contextmanager
def _touchstone(asked: Judgments) -> Iterator[tuple[Any, asked_campaign.Overview]]:
    """Yield Chromium, and the overview of a campaign with the judgments, in servers of this program's own."""
    with throwaway.folder() as root, throwaway.migrated(root):
        import browser

        from touchstone.models import User

        campaign = asked_campaign.make_campaign(asked, root)
        manager = User.objects.create(username="mia", role="manager")
        try:
            chromium = next(browser.chromium())
            with (
                throwaway.web(root) as address,
                browser.page_of(chromium, address, manager, viewport=SCREEN) as page,
            ):
                yield chromium, asked_campaign.Overview(page, address, campaign)
        finally:
            browser.close()


@contextmanager
def _label_studio(
    chromium: Any, address: str, options: argparse.Namespace, asked: Judgments
) -> Iterator[label_studio.LabelStudio]:
    """Yield a project of a running Label Studio with the judgments, deleted at the end."""
    context = chromium.new_context(viewport=SCREEN)
    context.set_default_timeout(300_000)
    studio = label_studio.LabelStudio(context, address, options.user, options.password)
    try:
        studio.fill(asked)
        yield studio
    finally:
        if studio.project:
            studio.delete()
        context.close()


if __name__ == "__main__":
    main()
