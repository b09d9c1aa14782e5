"""Files that are all there is: any number of labels an item, nothing drawn, and nothing beside them."""

from io import StringIO

import numpy as np
import pytest
from crowd_files import Crowd, empty, import_gold_text, import_text
from django.core.management import call_command
from django.db import IntegrityError, transaction

from judging.models import GoldAnswer, Judgment, Slot
from judging.services.errors import ImportRefused
from judging.services.more_judgments import labels_in_file
from sampling.frames import load_frame
from sampling.models import Audit, AuditEntry, Draw
from sampling.questions import Design
from sampling.services.drawing import draw
from sampling.services.population import DrawRefused

pytestmark = pytest.mark.django_db
CROWD = Crowd(n_topics=2, n_documents=6)
LINES = "topic_id,doc_id,worker,label\nt0,t0-d000,a,1\nt0,t0-d000,b,0\nt0,t0-d001,a,1\n"


@pytest.fixture
def campaign():
    return empty(CROWD.collection())


def refusal(campaign, text: str, **options) -> str:
    """Return why the import is refused, after which nothing has changed."""
    kinds = (Judgment, Slot, Draw, Audit, AuditEntry, GoldAnswer)
    before = [kind.objects.count() for kind in kinds]
    with pytest.raises(ImportRefused) as caught, transaction.atomic():
        import_text(campaign, text, **options)
    assert [kind.objects.count() for kind in kinds] == before
    return str(caught.value)


def gold_refusal(campaign, text: str, **options) -> str:
    given = {"file_format": "gold", "complete": None, "as_gold": True, **options}
    return refusal(campaign, text, **given)


def test_every_item_has_what_the_file_has_of_it(campaign) -> None:
    many = "".join(f"t0,t0-d002,w{n},{n % 2}\n" for n in range(25))  # more than a campaign's k may be
    assert import_text(campaign, LINES + many) == 28
    items = campaign.items.values_list("document__doc_id", "judgments_wanted")
    assert dict(items) == {"t0-d000": 2, "t0-d001": 1, "t0-d002": 25}
    assert labels_in_file(campaign) == "1 to 25"
    made = campaign.draws.get()
    assert (made.selection, made.n_frame, made.n_drawn) == ("complete", 3, 3)
    assert made.parameters["judgments"] == 28
    frame = load_frame(made)
    assert frame["inclusion_probability"].to_list() == [1.0] * 3
    assert set(Slot.objects.filter(campaign=campaign).values_list("purpose", "state")) == {("judge", "done")}


def test_an_ordinary_campaign_keeps_its_limit(campaign) -> None:
    two = "topic_id,doc_id,worker,label\nt0,t0-d000,a,1\nt0,t0-d000,b,0\n"
    assert "already has all its judgments" in refusal(campaign, two, complete=False)
    import_text(campaign, two)
    item = campaign.items.get()
    slot = Slot.objects.filter(item=item).first()
    copy = {
        "item": item,
        "purpose": "judge",
        "number": 3,
        "campaign": campaign,
        "topic": item.topic,
        "position": 9,
    }
    assert slot.number < 3
    with pytest.raises(IntegrityError, match="more than k"), transaction.atomic():
        Slot.objects.create(**copy)


def test_the_default_is_complete_only_where_there_is_nothing_yet(campaign) -> None:
    import_text(campaign, LINES, complete=None)
    assert campaign.draws.get().selection == "complete"
    other = empty(CROWD.collection())
    one = "topic_id,doc_id,worker,label\nt0,t0-d000,a,1\n"
    import_text(other, one, complete=False)
    import_text(other, one.replace("t0-d000", "t0-d001"), complete=None)
    assert not other.draws.exists()
    assert labels_in_file(other) == ""  # every item wants k
    assert other.items.count() == 2


def test_nothing_comes_beside_all_there_is(campaign) -> None:
    import_text(campaign, LINES)
    more = "topic_id,doc_id,worker,label\nt0,t0-d003,a,1\n"
    for complete in (True, False, None):
        assert "imported as all there is" in refusal(campaign, more, complete=complete)
    with pytest.raises(DrawRefused, match="nothing more can be drawn"):
        draw(campaign=campaign, design=Design("pool", (), "DCG@10", 10, 5), seed=1)
    other = empty(CROWD.collection())
    import_text(other, more, complete=False)
    assert "has items already" in refusal(other, more.replace("d003", "d004"))


def test_what_cannot_be_complete_is_refused(campaign) -> None:
    gold = {"file_format": "gold", "as_gold": True}
    assert "named assessors" in refusal(campaign, CROWD.gold([0]), **gold)
    assert refusal(campaign, "topic_id,doc_id,worker,label\n") == "c.csv: no judgments in the file"
    assert "occurs twice" in refusal(campaign, LINES + "t0,t0-d000,a,0\n")
    assert import_text(campaign, LINES + "t0,t0-d000,a,0\n", repeats="last") == 3


def test_the_command_imports_labels_and_gold(campaign, tmp_path) -> None:
    labels, gold, out = tmp_path / "labels.csv", tmp_path / "gold.csv", StringIO()
    labels.write_text(CROWD.labels)
    gold.write_text(CROWD.gold(range(0, 12, 2)))
    call_command("import_judgments", str(labels), campaign=campaign.name, format="crowd", stdout=out)
    options = {"campaign": campaign.name, "gold": True, "format": "gold", "gold_chosen": "uniform"}
    call_command("import_judgments", str(gold), **options, stdout=out)
    said = out.getvalue()
    assert f"{len(CROWD.lines) - 1:,} judgments added" in said
    assert "Assumes that the 6 documents with a gold grade are a random part of the 12." in said
    assert "6 gold answers added" in said
    made = campaign.audits.get()
    assert (made.declaration, made.n_selected, made.n_eligible) == ("uniform", 6, 12)
    assert set(made.entries.values_list("inclusion_probability", flat=True)) == {0.5}


# -- gold -----------------------------------------------------------------------------------------------------


def test_unknown_gold_is_no_audit(campaign) -> None:
    import_text(campaign, CROWD.labels)
    assert import_gold_text(campaign, CROWD.gold([0, 3])) == 2
    assert not campaign.audits.exists()
    assert not Slot.objects.filter(campaign=campaign, purpose="audit").exists()


def test_probabilities_are_those_of_the_file(campaign) -> None:
    import_text(campaign, CROWD.labels)
    chances = np.linspace(0.25, 0.8, 12)
    import_gold_text(campaign, CROWD.gold([1, 4, 7], chances), gold_chosen="probabilities")
    made = campaign.audits.get()
    rows = made.entries.values_list("item__document__doc_id", "inclusion_probability", "selected")
    known = {name: (pi, selected) for name, pi, selected in rows}
    expected = {
        d: (pi, n in (1, 4, 7))
        for n, ((_, d), pi) in enumerate(zip(CROWD.pairs, chances.tolist(), strict=True))
    }
    assert known == expected
    grades = dict(
        Judgment.objects.filter(slot__purpose="audit").values_list("item__document__doc_id", "grade")
    )
    assert grades == {CROWD.pairs[n][1]: CROWD.truth[n] for n in (1, 4, 7)}


def test_by_topic_each_topic_has_its_own_chance(campaign) -> None:
    import_text(campaign, CROWD.labels)
    import_gold_text(campaign, CROWD.gold([0, 1, 2, 6]), gold_chosen="uniform", by_topic=True)
    made = campaign.audits.get()
    rows = set(made.entries.values_list("item__topic__topic_id", "inclusion_probability"))
    assert made.declaration == "by-topic"
    assert rows == {("t0", 0.5), ("t1", 1 / 6)}


@pytest.mark.parametrize("chance", ["0", "-0.5", "1.5", "nan", "inf", "x", "1e-400", "9e-7"])
def test_a_probability_out_of_bounds_is_named(campaign, chance: str) -> None:
    import_text(campaign, CROWD.labels)
    text = f"topic_id,doc_id,grade,probability\nt0,t0-d000,1,0.5\nt0,t0-d001,1,{chance}\n"
    said = gold_refusal(campaign, text, gold_chosen="probabilities")
    assert said.startswith(f"c.csv:3:14: probability must be 0.000001 to 1, not '{chance}'")


def test_gold_that_contradicts_itself_is_refused(campaign) -> None:
    text = CROWD.gold([0, 1])
    assert "all there is" in gold_refusal(campaign, text, gold_chosen="uniform")
    import_text(campaign, CROWD.labels)
    assert "must be one of unknown, uniform, probabilities" in gold_refusal(
        campaign, text, gold_chosen="mine"
    )
    assert "chosen uniformly" in gold_refusal(campaign, text, by_topic=True)
    missing = gold_refusal(campaign, text, gold_chosen="probabilities")
    assert missing.startswith(
        "12 of 12 judged documents have no probability in the file, for example t0-d000"
    )
    qrels = "t0 0 t0-d000 1\n"
    assert "no column of probabilities" in gold_refusal(
        campaign, qrels, file_format="qrels", gold_chosen="probabilities"
    )
    other = "topic_id,doc_id,grade\n"
    assert "no judged document" in gold_refusal(campaign, other, gold_chosen="uniform")
    twice = "topic_id,doc_id,grade,probability\nt0,t0-d000,1,0.5\nt0,t0-d000,1,0.25\n"
    assert "another probability" in gold_refusal(campaign, twice)
    import_gold_text(campaign, text, gold_chosen="uniform")
    assert "declared an audit of this campaign already" in gold_refusal(campaign, text, gold_chosen="uniform")
