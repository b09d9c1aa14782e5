"""Our own prels come back: where the labels of a campaign are all there is, they are an audit of them."""

import uuid
from io import StringIO

import pytest
from crowd_files import Crowd, empty, import_text
from django.core.management import call_command
from django.db import transaction
from small_campaign import (
    DOCUMENTS,
    N_FRAME,
    TOPICS,
    doc_id,
    judge_all,
    make_assessor,
    make_campaign,
    make_collection,
    true_grade,
)

from analytics.services.exports import prels_lines
from analytics.services.recomputation import recompute
from judging.models import GoldAnswer, Judgment
from judging.services.campaigns import DEFAULT_GRADES, create_campaign
from judging.services.errors import ImportRefused
from sampling.models import Audit
from sampling.services import foreign_draws

pytestmark = pytest.mark.django_db
CROWD = Crowd(n_topics=2, n_documents=6)
PLACES = [1, 4, 7]
CHANCES = [0.25, 0.5, 0.125]
PAIRS = [(topic, doc_id(number, d)) for number, topic in enumerate(TOPICS) for d in range(DOCUMENTS)]
PRELS = {"file_format": "prels", "gold_chosen": "probabilities"}


def prels(places=PLACES, chances=CHANCES, method=1) -> str:
    pairs = ((*CROWD.pairs[place], CROWD.truth[place]) for place in places)
    return "".join(
        f"{topic} {document} {grade} {method} {chance!r}\n"
        for (topic, document, grade), chance in zip(pairs, chances, strict=True)
    )


def gold(campaign, text: str, **options) -> int:
    return import_text(campaign, text, **{"complete": None, "as_gold": True, **PRELS, **options})


@pytest.fixture
def campaign():
    made = empty(CROWD.collection())
    import_text(made, CROWD.labels)
    return made


def entries(audit) -> dict[tuple[str, str], tuple[float, bool]]:
    rows = audit.entries.values_list(
        "item__topic__topic_id", "item__document__doc_id", "inclusion_probability", "selected"
    )
    return {(topic, document): (chance, selected) for topic, document, chance, selected in rows}


def test_the_listed_pairs_are_the_audit_with_their_probabilities(campaign):
    gold(campaign, prels())
    made = campaign.audits.get()
    known = entries(made)
    assert {pair for pair, (_, selected) in known.items() if selected} == {
        CROWD.pairs[place] for place in PLACES
    }
    for place, chance in zip(PLACES, CHANCES, strict=True):
        assert known[CROWD.pairs[place]] == (chance, True)
    # of the nine others as many are expected as the three chances leave: (3 - 0.875) / 9
    others = [chance for chance, selected in known.values() if not selected]
    assert others == pytest.approx([2.125 / 9] * 9)
    assert (made.declaration, made.n_selected, made.n_eligible) == ("probabilities", 3, 12)
    assert made.expected_in_total == pytest.approx(3)
    grades = Judgment.objects.filter(slot__purpose="audit").values_list("item__document__doc_id", "grade")
    assert dict(grades) == {CROWD.pairs[place][1]: CROWD.truth[place] for place in PLACES}


def test_the_command_reads_what_another_campaign_wrote(labelled, tmp_path):
    """A sample of people's judgments becomes the gold of a campaign that has a label of every pair."""
    people = make_campaign(tmp_path, budget=30)
    judge_all(people, [make_assessor(people, "ann"), make_assessor(people, "ben")])
    written = list(prels_lines(people, True))
    drawn = {tuple(line.split()[:2]): float(line.split()[4]) for line in written}
    assert len(drawn) > 15
    assert any(chance < 1 for chance in drawn.values())
    (tmp_path / "checked.prels").write_text("".join(written))
    campaign, said = labelled(), StringIO()
    options = {"campaign": campaign.name, "gold": True, "format": "prels", "gold_chosen": "probabilities"}
    call_command("import_judgments", str(tmp_path / "checked.prels"), **options, stdout=said)
    chosen = {pair: chance for pair, (chance, selected) in entries(campaign.audits.get()).items() if selected}
    assert chosen == drawn
    assert f"the {len(drawn)} documents with a gold grade were chosen from the {N_FRAME}" in said.getvalue()


def test_the_chance_of_what_is_not_listed_moves_no_value(labelled, monkeypatch):
    """The same gold, where a file has all probabilities: sums over documents read those of chosen ones alone."""
    chosen = {pair: 0.2 + 0.05 * (place % 5) for place, pair in enumerate(PAIRS) if place % 2 == 0}
    lines = (
        f"{topic} {document} {true_grade(topic, document)} 1 {chance!r}\n"
        for (topic, document), chance in chosen.items()
    )
    monkeypatch.setattr(foreign_draws.secrets, "randbits", lambda _: 7)  # the same folds in every campaign
    campaign = labelled()
    gold(campaign, "".join(lines))
    values = values_of(campaign)
    assert sum(value is not None for value in values.values()) >= 3
    for usual in (0.03, 0.45):
        rows = (
            f"{topic},{document},{true_grade(topic, document)},{chosen[topic, document]!r}\n"
            if (topic, document) in chosen
            else f"{topic},{document},,{usual}\n"
            for topic, document in PAIRS
        )
        other = labelled()
        text = "topic_id,doc_id,grade,probability\n" + "".join(rows)
        gold(other, text, file_format="gold")
        assert values_of(other) == pytest.approx(values, nan_ok=True)


@pytest.fixture
def labelled(tmp_path):
    """Makes campaigns of the small collection in which a judge that misses every third document labelled all."""
    (tmp_path / "labels").mkdir()
    collection = make_collection(tmp_path / "labels", gold=False)

    def make():
        made = create_campaign(
            collection=collection, name=f"campaign {uuid.uuid4()}", user=None, grades=DEFAULT_GRADES
        )
        labels = "".join(
            f"{topic} judge {document} {true_grade(topic, document) if int(document[-2:]) % 3 else 0}\n"
            for topic, document in PAIRS
        )
        import_text(made, labels, file_format="qrels_jg")
        return made

    return make


def values_of(campaign) -> dict[tuple[str, ...], float | None]:
    """Return the corrected values of every run and pair, in measures that are sums."""
    names = ("measure", "run__run_id", "run_b__run_id", "unbounded_value")
    sums = recompute(campaign=campaign).estimates.filter(method="corrected", measure__in=("P@10", "DCG@10"))
    rows = sums.values_list(*names)
    return {row[:3]: row[3] for row in rows}


def refusal(campaign, text: str, **options) -> str:
    kinds = (Judgment, Audit, GoldAnswer)
    before = [kind.objects.count() for kind in kinds]
    with pytest.raises(ImportRefused) as caught, transaction.atomic():
        gold(campaign, text, **options)
    assert [kind.objects.count() for kind in kinds] == before
    return str(caught.value)


def test_what_is_no_audit_is_refused_by_line(campaign):
    assert refusal(campaign, prels(method=0)).startswith("c.csv:1:14: method 0 was chosen, not drawn")
    assert "every probability is 1" in refusal(campaign, prels(chances=[1.0, 1.0, 1.0]))
    assert "c.csv:2:" in refusal(campaign, prels(places=[1, 1, 7]))
    for wrong in ({"gold_chosen": "unknown"}, {"gold_chosen": "uniform"}, {"method_codes": "track"}):
        assert "with the probabilities in the file, as they are recorded" in refusal(
            campaign, prels(), **wrong
        )
    strata = "t0 0 t0-d000 1 1\n"
    assert "not as gold answers" in refusal(campaign, strata, file_format="stratified")
    other = empty(CROWD.collection())
    import_text(other, "topic_id,doc_id,worker,label\nt0,t0-d000,a,1\n", complete=False)
    assert "imported as all there is" in refusal(other, prels())
    gold(campaign, prels())
    assert "declared an audit of this campaign already" in refusal(campaign, prels())
