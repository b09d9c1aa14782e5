"""What the log shows of one assessor: flags with a picture each, and every test or why there is none."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import Exists, OuterRef, Subquery
from django.db.models.functions import JSONObject

from analytics.charts import Chart
from analytics.models import AssessorScreening, Flag, Screening
from analytics.services.screening import current_flags, newest_screening_of, screen_answers
from console.manager.log_charts import flag_chart

SHOWN_TOPICS = 20


def log_columns() -> dict[str, Any]:
    """Return what a query of assessors adds to each: what the newest screening stored of them."""
    rows = AssessorScreening.objects.filter(
        assessor=OuterRef("pk"), screening=Subquery(newest_screening_of(OuterRef(OuterRef("campaign"))))
    )
    parts = JSONObject(
        tests="tests",
        profile="profile",
        overview="screening__overview",
        created_at="screening__created_at",
    )
    is_screened = Exists(Screening.objects.filter(computation__campaign=OuterRef("campaign")))
    return {"log": Subquery(rows.values(parts=parts)), "is_screened": is_screened}


def log_context(person: Any) -> dict[str, Any]:
    """Return the flags that stand, the worst first, and what every test says; of an assessor with `log_columns`."""
    flags = [
        {
            "row": flag,
            "topics": flag.topics[:SHOWN_TOPICS],
            "n_more": len(flag.topics[SHOWN_TOPICS:]),
            "chart": flag_chart(flag.registered_kind, person.log, person.user.get_username()),
        }
        for flag in _flags_of(person)
    ]
    log = person.log or {}
    answers = screen_answers(log.get("tests", {}))
    return {
        "flags": flags,
        "is_screened": person.is_screened,
        "screened_at": datetime.fromisoformat(log["created_at"]) if log else None,
        "answers": answers,
        "n_untested": sum(1 for answer in answers if answer.get("refusal")),
    }


def log_charts(person: Any) -> dict[str, Callable[[], Chart | None]]:
    """Return the pictures of the assessor's flags, by the kind of flag."""
    name = person.user.get_username()
    return {
        flag.kind: partial(flag_chart, flag.registered_kind, person.log, name) for flag in _flags_of(person)
    }


def _flags_of(person: Any) -> list[Flag]:
    return list(current_flags(person.campaign).filter(assessor=person))
