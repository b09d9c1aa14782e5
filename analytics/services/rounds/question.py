"""What is asked of two rounds, and why it may be refused before anything is computed."""

from dataclasses import dataclass
from datetime import UTC, datetime

from analytics.estimation.rounds import CLAIMS
from judging.models import Campaign, Scale
from judging.refusal import Refused
from sampling.frames import newest_draw
from sampling.measures.registry import parse_measure

AUDITS = {
    "own": "each round by its own audit",
    "first": "both rounds by the first round's audit",
    "second": "both rounds by the second round's audit",
    "both": "both rounds by both audits together",
}


class RoundsRefused(Refused):
    """Two rounds that cannot be compared; `field` is what has to be changed."""

    status = 400
    title = "These rounds cannot be compared"

    def __init__(self, reason: str, field: str = "") -> None:
        super().__init__(reason)
        self.field = field


@dataclass(frozen=True)
class RoundChoice:
    """A run in a campaign; with dates (ISO 8601, UTC), in the topics judged from `since` on, or before `until`."""

    campaign: str
    run: str
    since: str = ""
    until: str = ""


@dataclass(frozen=True)
class RoundsQuestion:
    """The difference of a run in one round from a run in another: first less second."""

    first: RoundChoice
    second: RoundChoice
    measure: str
    claim: str = CLAIMS[0]
    audit: str = "own"

    @property
    def is_one_campaign(self) -> bool:
        return self.first.campaign == self.second.campaign

    @property
    def rounds(self) -> tuple[tuple[str, RoundChoice], tuple[str, RoundChoice]]:
        return ("first", self.first), ("second", self.second)


def moment(text: str) -> float | None:
    """Return a date, or a date with its time, in seconds since 1970; None for an empty text. Without a zone: UTC.

    >>> moment("1970-01-02"), moment("1970-01-01T01:00:00+01:00"), moment("")
    (86400.0, 0.0, None)
    """
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise RoundsRefused(f"a date looks like 2026-11-01, got {text!r}") from error
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def refuse_question(question: RoundsQuestion, first: Campaign, second: Campaign) -> None:
    """Raise `RoundsRefused` for what needs no judgment to be refused."""
    if question.claim not in CLAIMS:
        raise RoundsRefused(f"the claim is one of {', '.join(CLAIMS)}; got {question.claim!r}", "claim")
    if question.audit not in AUDITS:
        raise RoundsRefused(f"the audit is one of {', '.join(AUDITS)}; got {question.audit!r}", "audit")
    _refuse_measure(question.measure, (first, second))
    for (name, choice), campaign in zip(question.rounds, (first, second), strict=True):
        if not campaign.collection.runs.filter(run_id=choice.run).exists():
            raise RoundsRefused(f"the collection has no run {choice.run!r}", f"{name}.run")
    if not _are_alike(first.scale, second.scale):
        raise RoundsRefused(
            "the two campaigns have different scales: their grades, gains and lowest relevant grade must be the same",
            "second.campaign",
        )
    _refuse_periods(question)


def _are_alike(first: Scale, second: Scale) -> bool:
    return first.gains() == second.gains() and first.relevant_grade == second.relevant_grade


def _refuse_measure(name: str, campaigns: tuple[Campaign, Campaign]) -> None:
    try:
        measure = parse_measure(name)
    except ValueError as error:
        raise RoundsRefused(str(error), "measure") from error
    if not measure.kind.is_sum:
        raise RoundsRefused(
            f"{measure.name} is {measure.kind.noun}: rounds are compared in sums over documents, such as DCG or P",
            "measure",
        )
    for field, campaign in zip(("first", "second"), campaigns, strict=True):
        draw = newest_draw(campaign)
        if draw is None:
            raise RoundsRefused("nothing is drawn in this campaign yet", f"{field}.campaign")
        if measure.last_rank > draw.parameters["depth"]:
            raise RoundsRefused(
                f"{measure.name} looks deeper than the {draw.parameters['depth']} ranks that were pooled in "
                f"{campaign.name}",
                "measure",
            )


def _refuse_periods(question: RoundsQuestion) -> None:
    ends = []
    for (name, choice), field in zip(question.rounds, ("until", "since"), strict=True):
        try:
            ends.append(moment(getattr(choice, field)))
        except RoundsRefused as refusal:
            raise RoundsRefused(str(refusal), f"{name}.{field}") from refusal
    if not question.is_one_campaign:
        return
    until, since = ends
    if until is None and since is None and question.first.run == question.second.run:
        raise RoundsRefused("both rounds are the same run in the same campaign", "second.run")
    if until is None or since is None:
        field = "first.until" if until is None else "second.since"
        raise RoundsRefused(
            "one campaign is two rounds where a date parts them: give the first an end and the second a start; two "
            "runs on the same judgments are compared on the page of the pair",
            field,
        )
    if until > since:
        raise RoundsRefused("the second round must start when the first has ended, or later", "second.since")
