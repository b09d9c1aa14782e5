"""Two rounds: a run in one campaign or period against a run in another, by a job.

The number to report is the difference of the two corrected numbers, for both claims; below it stand the papers'
methods, of which those with one audit for both rounds hold only as the three questions are answered.
"""

from dataclasses import asdict, dataclass
from typing import Any

from analytics.estimation.estimate import Estimate, Refusal
from analytics.estimation.rounds import (
    CLAIMS,
    THESE_TOPICS,
    ClaimedDifference,
    audit_covariance,
    by_claim,
    for_these_topics,
)
from analytics.estimation.wording import p_words
from analytics.frames import campaign_arrays
from analytics.services.analyses import finite_json
from analytics.services.analyses.papers import under_conditions
from analytics.services.assumptions import newest_answers, what_forbids
from analytics.services.job_queue import newest_job, queue_work
from analytics.services.recomputation import Progress, latest_computation
from analytics.services.rounds.evidence import (
    Round,
    RoundNumber,
    audited_in_both,
    have_one_draw,
    is_one_audit,
    read_round,
    shared_topics,
)
from analytics.services.rounds.lines import Pair, drift_words, no_gold, round_lines
from analytics.services.rounds.question import RoundChoice, RoundsQuestion, RoundsRefused, refuse_question
from judging.models import Campaign
from touchstone.models import Job, User

KIND = "rounds"
ONE_DRAW = (
    "both campaigns were drawn with the same random numbers, so that their draws are not independent: draw one of "
    "them with another seed"
)


def rounds_title(job: Job) -> str:
    """Return what a job compares; nothing for jobs of other kinds."""
    if job.kind != KIND:
        return ""
    asked = job.payload["asked"]
    return f"{asked['first']['run']} and {asked['second']['run']} in two rounds, in {asked['measure']}"


# -- asking -------------------------------------------------------------------------------------------------


def ask_rounds(*, question: RoundsQuestion, first: Campaign, second: Campaign, user: User | None) -> Job:
    """Queue the comparison, or return the job that is at it. Raise `RoundsRefused` for what no job could answer."""
    refuse_question(question, first, second)
    return queue_work(KIND, _payload(question), user)


def rounds_question(job: Job) -> RoundsQuestion:
    """Return what a job was asked."""
    asked = dict(job.payload["asked"])
    first, second = RoundChoice(**asked.pop("first")), RoundChoice(**asked.pop("second"))
    return RoundsQuestion(first, second, **asked)


@dataclass(frozen=True)
class RoundsState:
    """The newest result, the job that is at it now, and the newest one that failed since."""

    result: dict[str, Any] | None = None
    made: Job | None = None
    active: Job | None = None
    failed: Job | None = None


def find_rounds(question: RoundsQuestion) -> RoundsState:
    """Return what is known of a question."""
    known = {"payload": _payload(question)}
    newest = newest_job(KIND, **known)
    if newest is None:
        return RoundsState()
    made = newest if newest.state == Job.State.DONE else newest_job(KIND, state=Job.State.DONE, **known)
    return RoundsState(
        result=made.result if made else None,
        made=made,
        active=newest if newest.is_active else None,
        failed=newest if newest.state == Job.State.FAILED else None,
    )


def _payload(question: RoundsQuestion) -> dict[str, Any]:
    """Return the payload of a job: whoever may see it may see both campaigns."""
    return {
        "campaign": question.first.campaign,
        "second_campaign": question.second.campaign,
        "asked": asdict(question),
    }


# -- answering ----------------------------------------------------------------------------------------------


def compare_rounds(
    *, question: RoundsQuestion, first: Campaign, second: Campaign, progress: Progress = lambda *_: None
) -> dict[str, Any]:
    """Return the difference by all methods, as JSON without NaN. Raise `RoundsRefused` where there is none."""
    refuse_question(question, first, second)
    progress(0, 4, "reading the first round")
    arrays = campaign_arrays(first)
    one = read_round(first, arrays, question.first, question.measure)
    progress(1, 4, "reading the second round")
    if not question.is_one_campaign:
        arrays = campaign_arrays(second)
    other = read_round(second, arrays, question.second, question.measure)
    pair = Pair(one, other, shared_topics(one, other), question.audit, is_one_audit(one, other))
    missing = no_gold(pair)
    if missing:
        raise RoundsRefused(missing, "audit")
    progress(2, 4, "estimating both rounds")
    reported = _report(pair)
    constant = pair.over_topics(one.naive_values, other.naive_values)
    if reported["refusal"] and isinstance(constant, Refusal):
        raise RoundsRefused(constant.reason)
    progress(3, 4, "the papers' methods")
    answer: dict[str, Any] = finite_json(
        {
            **asdict(question),
            "first": _description(one),
            "second": _description(other),
            "n_shared_topics": len(pair.shared[0]),
            "one_audit": pair.one_audit,
            **reported,
            "lines": [asdict(line) for line in round_lines(pair)],
            "drift": drift_words(pair),
        }
    )
    return answer


def _report(pair: Pair) -> dict[str, Any]:
    """Return the difference of the corrected numbers for both claims, or why there is none."""
    numbers = pair.first.number, pair.second.number
    refused = [number for number in numbers if isinstance(number, Refusal)]
    if have_one_draw(pair.first, pair.second):
        refused.append(Refusal(ONE_DRAW))
    if refused:
        return {"refusal": refused[0].reason, "covariance": None, "n_audited_in_both": None, "claims": []}
    found = _difference(pair, *[number for number in numbers if isinstance(number, RoundNumber)])
    return found


def _difference(pair: Pair, first: RoundNumber, second: RoundNumber) -> dict[str, Any]:
    both = audited_in_both(first, second)
    these = for_these_topics(first.estimate, second.estimate, both, one_audit=pair.one_audit)
    topics = pair.over_topics(first.topic_values, second.topic_values)
    if isinstance(topics, Refusal):
        raise RoundsRefused(topics.reason)
    return {
        "refusal": "",
        "covariance": audit_covariance(*both, one_audit=pair.one_audit),
        "n_audited_in_both": both[0].lever.size,
        "claims": [_claim_json(one) for one in by_claim(these, topics)],
    }


def _claim_json(one: ClaimedDifference | Refusal) -> dict[str, Any]:
    if isinstance(one, Refusal):
        raise RoundsRefused(one.reason)
    return {**asdict(one), "significant": one.p_value is not None and one.p_value < 0.05}


def _description(one: Round) -> dict[str, Any]:
    number = one.number
    known = isinstance(number, RoundNumber)
    estimate: Estimate | None = number.estimate if isinstance(number, RoundNumber) else None
    return {
        **asdict(one.choice),
        "name": one.campaign.name,
        "n_topics": one.case.n_topics,
        "n_topics_left_out": one.n_left_out,
        "n_items": int(one.arrays.judged.size),
        "n_audited": int(one.case.audited.sum()),
        "n_gold_checks": int(one.arrays.check_true.size),
        "value": estimate.value if estimate else None,
        "low": estimate.low if estimate else None,
        "high": estimate.high if estimate else None,
        "naive": float(one.naive_values.mean()),
        "refusal": "" if known else number.reason,  # type: ignore[union-attr]
        "warning": estimate.warning if estimate else "",
        "as_of": one.arrays.last_judgment_id,
    }


# -- showing ------------------------------------------------------------------------------------------------


def forbidden_rounds(first: Campaign, second: Campaign) -> str:
    """Return why one audit may not serve both rounds, as either campaign's three questions were answered."""
    campaigns = [first] if first.pk == second.pk else [first, second]
    found = [what_forbids(newest_answers(campaign)) for campaign in campaigns]
    return "; ".join(dict.fromkeys(words for words in found if words))


def is_current(result: dict[str, Any], first: Campaign, second: Campaign) -> bool:
    """Return whether no judgment has arrived in either campaign since, as far as the newest numbers know."""
    computed = [latest_computation(campaign=campaign) for campaign in (first, second)]
    seen = [0 if one is None else one.last_judgment_id for one in computed]
    return all(
        result[name]["as_of"] >= newest for name, newest in zip(("first", "second"), seen, strict=True)
    )


def is_answered(first: Campaign, second: Campaign) -> bool:
    """Return whether the three questions were answered in both campaigns."""
    return all(newest_answers(campaign) is not None for campaign in (first, second))


def rounds_under_conditions(result: dict[str, Any], first: Campaign, second: Campaign) -> dict[str, Any]:
    """Return the result as the three questions, answered in either campaign, allow it to be read."""
    for campaign in (first, second):
        result = under_conditions(result, newest_answers(campaign))
    return {**result, "drift": "" if forbidden_rounds(first, second) else result["drift"]}


def claims_in_order(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the claim that was asked for, then the other."""
    return sorted(result["claims"], key=lambda one: one["claim"] != result["claim"])


def rounds_sentence(result: dict[str, Any]) -> str:
    """Return the difference in a sentence, by the claim that was asked for, with the other beside it."""
    first, second, measure = result["first"], result["second"], result["measure"]
    names = f"{first['run']} in {_round_name(first)} and {second['run']} in {_round_name(second)}"
    if result["refusal"]:
        return f"No corrected difference in {measure} between {names}: {result['refusal']}."
    asked, other = claims_in_order(result)
    beside = f"{CLAIM_WORDS[other['claim']]}: {_interval(other)}."
    if asked["p_value"] is None:
        exact = f"is exactly {asked['value']:+.3f} for these topics"
        return f"The difference in {measure} between {names} {exact}. {beside}"
    held = "is significant at .05" if asked["significant"] else "is not significant at .05"
    return f"The difference in {measure} between {names}, {_numbers(asked)}, {held}{_scope(asked)}. {beside}"


CLAIM_WORDS = {CLAIMS[0]: "For topics like these", THESE_TOPICS: "For these topics alone"}


def _scope(claim: dict[str, Any]) -> str:
    if claim["claim"] == THESE_TOPICS:
        return " for these topics alone"
    return "" if claim["limited_by"] == "topics" else ", limited by the judging, not by the topics"


def _round_name(one: dict[str, Any]) -> str:
    ends = [f"{word} {one[key]}" for word, key in (("from", "since"), ("before", "until")) if one[key]]
    return " ".join([one["name"], *ends])


def _numbers(claim: dict[str, Any]) -> str:
    return f"{claim['value']:+.3f} ({_interval(claim)})"


def _interval(claim: dict[str, Any]) -> str:
    if claim["low"] == claim["high"]:
        return f"exactly {claim['value']:+.3f}"
    df, t = claim["degrees_of_freedom"], claim["statistic"]
    test = ""
    if t is not None and (claim["claim"] == THESE_TOPICS or claim["limited_by"] == "topics"):
        test = f", t({df:.1f}) = {t:.2f}" if df is not None else f", z = {t:.2f}"
    p = "" if claim["p_value"] is None else f", {p_words(claim['p_value'])}"
    return f"95 % confidence interval {claim['low']:.3f} to {claim['high']:.3f}{test}{p}"
