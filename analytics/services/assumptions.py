"""What no data can tell, and every method with one audit for two runs takes for granted: asked once, and recorded."""

from dataclasses import dataclass

from django.db import transaction

from analytics.models import JudgingConditions
from judging.models import Campaign
from touchstone.models import User, record


@dataclass(frozen=True)
class Question:
    """A question as it is asked, and what is needed where the answer is no."""

    name: str
    words: str
    needed: str


QUESTIONS = (
    Question(
        "same_judges",
        "Did the same assessors grade the documents of both runs?",
        "the runs were graded by different assessors: each run needs an audit of its own assessors' grades",
    ),
    Question(
        "same_period",
        "Were both runs graded in the same period, with the same guidelines?",
        "the runs were graded in different periods: each period needs an audit of its own",
    ),
    Question(
        "blind_to_system",
        "Were assessors unable to tell which run returned a document?",
        "assessors could tell which run returned a document: each run needs an audit of its own, judged blind",
    ),
)


def newest_answers(campaign: Campaign) -> JudgingConditions | None:
    """Return the newest answers; None: nobody was asked yet."""
    return campaign.judging_conditions.select_related("answered_by").order_by("-id").first()


@transaction.atomic
def answer_questions(*, campaign: Campaign, user: User | None, **answers: bool) -> JudgingConditions:
    """Store the answers to all three questions as a new row."""
    made = JudgingConditions.objects.create(campaign=campaign, answered_by=user, **answers)
    record("answered what every comparison assumes", campaign, actor=user, **answers)
    return made


def what_forbids(answers: JudgingConditions | None) -> str:
    """Return why one audit may not serve two runs, and what would be needed; empty if nothing is known against it."""
    if answers is None:
        return ""
    return "; ".join(question.needed for question in QUESTIONS if not getattr(answers, question.name))
