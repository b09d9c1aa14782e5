"""Two campaigns of one collection of 3 topics, judged by assessors who err, and audited: two rounds."""

from asked_analyses import given_grade
from small_campaign import (
    DEPTH,
    N_FRAME,
    judge_all,
    judge_audit,
    make_assessor,
    make_collection,
    true_grade,
)

from analytics.services.rounds import compare_rounds
from analytics.services.rounds.question import RoundChoice, RoundsQuestion
from judging.services.campaigns import DEFAULT_GRADES, create_campaign, open_campaign
from sampling.questions import Design
from sampling.services.auditing import audit
from sampling.services.drawing import draw

MEASURE = "P@10"
N_AUDITED = 30


def erring_grade(topic_id, document_id):
    """Return what the assessors of the second round say: other errors than in the first."""
    true = true_grade(topic_id, document_id)
    return 3 - true if int(document_id[-2:]) % 4 == 3 else true


def make_round(
    collection, name, seed, grade=given_grade, grades=DEFAULT_GRADES, people=("anna", "ben"), tier="bronze"
):
    """Return an open campaign of two judgments an item, all drawn and judged."""
    campaign = create_campaign(
        collection=collection, name=name, user=None, grades=grades, judgments_per_item=2, gold_check_rate=0.0
    )
    design = Design("pool", (), measure="DCG@10", depth=DEPTH, budget=N_FRAME)
    draw(campaign=campaign, design=design, seed=seed)
    open_campaign(campaign=campaign, actor=None)
    assessors = [make_assessor(campaign, person, tier) for person in people]
    judge_all(campaign, assessors, lambda slot, _: grade(slot.item.topic.topic_id, slot.item.document.doc_id))
    return campaign


def audit_round(campaign, **options):
    """Audit 30 of the 42 items, as options say, and have them judged."""
    made = audit(campaign=campaign, items_each_time=N_AUDITED, items_in_total=N_AUDITED, **options)
    judge_audit(campaign, make_assessor(campaign, "gold", "gold"))
    return made


def two_rounds(folder, *, joined=False, people=("anna", "ben")):
    """Return both campaigns; `joined`: one audit of both."""
    collection = make_collection(folder, gold=False)
    first = make_round(collection, "October", 20)
    second = make_round(collection, "November", 21, erring_grade, people=people)
    audit_round(first, seed=31)
    audit_round(second, **({"joined": first} if joined else {"seed": 32}))
    return first, second


def question(first, second, **options):
    """Return the question of run0 in the first and run2 in the second round."""
    until, since = options.pop("until", ""), options.pop("since", "")
    runs = options.pop("runs", ("run0", "run2"))
    given = {"measure": MEASURE, **options}
    return RoundsQuestion(
        RoundChoice(str(first.pk), runs[0], until=until),
        RoundChoice(str(second.pk), runs[1], since=since),
        **given,
    )


def compared(first, second, **options):
    return compare_rounds(question=question(first, second, **options), first=first, second=second)


def by_name(result):
    return {line["name"]: line for line in result["lines"]}
