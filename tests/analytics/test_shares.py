"""Shares of relevant items, of campaigns whose judgments are all there is; and gold that is declared an audit."""

import io
import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crowd_files import Crowd, empty, import_gold_text, import_text
from django.db import DatabaseError, transaction
from django.urls import reverse
from made_releases import released

from analytics.aggregation.dawid_skene import dawid_skene
from analytics.estimation.estimate import Refusal
from analytics.estimation.shares import share_weights
from analytics.frames import campaign_arrays, current_arrays
from analytics.models import ShareEstimate
from analytics.services import label_classes
from analytics.services.recomputation import declared_gold, recompute, start_due_recomputations
from judging.models import Slot
from judging.services.errors import ImportRefused
from judging.services.files import import_runs
from sampling.models import Audit
from sampling.services.auditing import audit
from touchstone.models import Job, User

pytestmark = pytest.mark.django_db
SENTENCE = "assumes that the 80 documents with a gold grade are a random part of the 200"


def by_method(computation, topic: str = ""):
    return {row.method: row for row in ShareEstimate.objects.filter(computation=computation, topic=topic)}


@pytest.fixture
def crowd():
    return Crowd()


@pytest.fixture
def campaign(crowd):
    return crowd.campaign()


@pytest.fixture
def gold(crowd):
    return crowd.gold(np.random.default_rng(3).choice(200, 80, replace=False))


def test_a_campaign_without_runs_has_a_corrected_share(crowd, campaign, gold) -> None:
    import_gold_text(campaign, gold, gold_chosen="uniform")
    computed = recompute(campaign=campaign)
    found = by_method(computed)
    corrected = found["corrected"]
    assert corrected.measure == "Share(rel=1)"
    assert (corrected.n_items, corrected.n, computed.n_audited) == (200, 80, 80)
    assert corrected.low < crowd.truth.mean() < corrected.high
    assert SENTENCE in corrected.warning
    assert found["naive"].value == pytest.approx(crowd.mean.mean())
    assert found["naive"].low is None
    topics = [by_method(computed, f"t{n}") for n in range(4)]
    assert [one["naive"].value for one in topics] == pytest.approx(
        crowd.mean.reshape(4, 50).mean(axis=1).tolist()
    )
    assert all(SENTENCE in one["corrected"].warning for one in topics)
    whole = np.mean([one["corrected"].value for one in topics])  # topics are equally large
    assert corrected.value == pytest.approx(whole, abs=1e-9)


def test_every_label_of_an_item_with_gold_is_checked_whenever_gold_came(crowd, gold) -> None:
    late = crowd.campaign()
    assert recompute(campaign=late).n_gold_checks == 0
    import_gold_text(late, gold)
    places = [crowd.pairs.index(tuple(line.split(",")[:2])) for line in gold.splitlines()[1:]]
    assert recompute(campaign=late).n_gold_checks == crowd.n_labels[places].sum()
    early = empty(crowd.collection())
    import_gold_text(early, gold)
    import_text(early, crowd.labels)
    assert recompute(campaign=early).n_gold_checks == crowd.n_labels[places].sum()


def test_unknown_gold_gives_a_range_and_no_number(campaign, gold) -> None:
    import_gold_text(campaign, gold)
    found = by_method(recompute(campaign=campaign))
    assert found["corrected"].value is None
    assert found["corrected"].refusal.startswith(
        "nothing says how the 80 documents with a gold grade were chosen"
    )
    assert 0 < found["matrix-inverse"].value < 1


def test_all_gold_is_exact_and_says_so(crowd, campaign) -> None:
    import_gold_text(campaign, crowd.gold(range(200)), gold_chosen="uniform")
    found = by_method(recompute(campaign=campaign))["corrected"]
    assert (found.value, found.low, found.high, found.standard_error) == pytest.approx(
        (crowd.truth.mean(),) * 3 + (0,)
    )
    assert "exact: all 200 documents in the file have a gold grade" in found.warning
    assert campaign.audits.get().choice_p_value is None


def test_a_topic_without_gold_is_named_and_nothing_recorded(crowd, campaign) -> None:
    with pytest.raises(ImportRefused, match="1 topics have no gold grade, for example t3"):
        import_gold_text(campaign, crowd.gold(range(0, 150, 2)), gold_chosen="uniform", by_topic=True)
    assert not campaign.audits.exists()


def test_a_score_that_learns_from_gold_does_not_learn_from_declared_gold(crowd, campaign, gold) -> None:
    import_gold_text(campaign, gold, gold_chosen="uniform")
    campaign.refresh_from_db()
    arrays = campaign_arrays(campaign)
    assert arrays.check_true.size > 80
    fit: Any = label_classes.posterior_of(dawid_skene)
    other = replace(arrays, check_true=1 - arrays.check_true)
    np.testing.assert_array_equal(fit(arrays).posterior, fit(other).posterior)
    drawn, turned = (replace(one, audit_assumption="") for one in (arrays, other))
    assert not np.array_equal(fit(drawn).posterior, fit(turned).posterior)
    assert isinstance(label_classes.gold_check_posterior(arrays), Refusal)


def test_an_audit_drawn_here_takes_the_place_of_declared_gold(crowd, campaign, gold) -> None:
    import_gold_text(campaign, gold, gold_chosen="uniform")
    recompute(campaign=campaign)
    made = audit(campaign=campaign, items_each_time=100, items_in_total=100, strategy="simple", seed=7)
    assert (made.n_eligible, made.expected_in_total) == (200, 100)
    declared = by_method(recompute(campaign=campaign))["corrected"]
    assert SENTENCE in declared.warning  # the drawn audit is not complete yet
    waiting = Slot.objects.filter(campaign=campaign, purpose="audit", state="open")
    chosen = set(made.entries.filter(selected=True).values_list("item_id", flat=True))
    assert {slot.item_id for slot in waiting} == chosen - set(
        Slot.objects.filter(campaign=campaign, purpose="audit", state="done").values_list(
            "item_id", flat=True
        )
    )


def test_runs_get_numbers_with_the_same_assumption(crowd, campaign, gold, tmp_path) -> None:
    lines = [
        f"{topic} Q0 {document} {1 + place % 50} {-(place % 50)} alpha\n"
        for place, (topic, document) in enumerate(crowd.pairs)
    ]
    (tmp_path / "alpha").write_text("".join(lines))
    import_runs(collection=campaign.collection, files=[(tmp_path / "alpha", "alpha")])
    import_gold_text(campaign, gold, gold_chosen="uniform")
    computed = recompute(campaign=campaign)
    row = computed.estimates.get(measure="P@10", method="corrected")
    assert SENTENCE in row.warning or row.refusal
    first = [place for place in range(200) if place % 50 < 10]
    naive = computed.estimates.get(measure="P@10", method="naive")
    assert naive.value == pytest.approx(crowd.mean[first].mean())
    assert by_method(computed)["corrected"].value is not None


def test_results_and_what_people_copy_say_what_declared_gold_assumes(
    client, crowd, campaign, gold, tmp_path
) -> None:
    for name, sign in (("best", -1), ("worst", 1)):
        order = sorted(range(200), key=lambda place: (place // 50, sign * crowd.truth[place]))
        lines = [
            f"{crowd.pairs[place][0]} Q0 {crowd.pairs[place][1]} {1 + rank % 50} {-(rank % 50)} {name}\n"
            for rank, place in enumerate(order)
        ]
        (tmp_path / name).write_text("".join(lines))
        import_runs(collection=campaign.collection, files=[(tmp_path / name, name)])
    import_gold_text(campaign, gold, gold_chosen="uniform")
    recompute(campaign=campaign)
    client.force_login(User.objects.create_user("rhea", role="researcher"))
    for page in ("campaign-results", "pairs", "ranking"):
        answer = client.get(reverse(f"console:{page}", args=[campaign.pk]), {"measure": "P@10"})
        shown = answer.content.decode()
        assert shown.count("<strong>Imported gold.</strong> A" + SENTENCE[1:]) == 1, page
        assert "80 with an imported gold grade" in shown
        assert "audited by the gold tier" not in shown
    asked = {"measure": "P@10", "a": "worst", "b": "best", "claim": "these-topics"}
    pair = client.get(reverse("console:pair", args=[campaign.pk]), asked)
    assert pair.content.decode().count("<strong>Imported gold.</strong> A" + SENTENCE[1:]) == 1
    said, quoted = pair.context["verdict"], pair.context["quoted"]
    assert said.startswith("best has a higher P@10 than worst")
    assert f"A{SENTENCE[1:]}." in said
    assert said in quoted
    chosen = "declared to have been chosen at random, each document with the same chance"
    assert f"80 of them with an imported gold grade, {chosen}" in quoted
    assert "recorded probabilities" not in quoted
    assert "the audit" not in quoted


@pytest.mark.parametrize("is_complete", [True, False])
def test_numbers_rest_on_declared_gold_until_an_audit_is_complete(campaign, gold, is_complete) -> None:
    import_gold_text(campaign, gold, gold_chosen="uniform")
    before = recompute(campaign=campaign)
    declared = campaign.audits.get()
    graded = declared.entries.filter(selected=True)[:20]
    others = declared.entries.filter(selected=False)[: 0 if is_complete else 1]
    drawn = Audit.objects.create(
        campaign=campaign, sequence=2, strategy="simple", tier="gold", seed=1, expected_in_total=21,
        n_eligible=21, n_selected=21,
    )  # fmt: skip
    for entry in [*graded, *others]:
        drawn.entries.create(item=entry.item, inclusion_probability=0.1, selected=True)
    after = recompute(campaign=campaign)
    assert declared_gold(before) == declared  # which had not seen the audit
    assert declared_gold(after) == (None if is_complete else declared)
    assert (current_arrays(campaign).audit_assumption == "") == is_complete


def test_a_share_is_computed_by_itself_and_is_kept(campaign) -> None:
    start_due_recomputations()
    assert Job.objects.filter(kind="estimate", payload__campaign=str(campaign.pk)).exists()
    row = by_method(recompute(campaign=campaign))["naive"]
    with pytest.raises(DatabaseError), transaction.atomic():
        ShareEstimate.objects.filter(pk=row.pk).update(value=0.5)
    with pytest.raises(DatabaseError, match="analytics_share_range"), transaction.atomic():
        ShareEstimate.objects.create(
            computation=row.computation, topic="other", measure="m", method="naive", n_items=1, n=1, value=1.5
        )


def test_pages_and_api_show_shares(client, campaign, gold) -> None:
    user = User.objects.create_user("boss", role="manager")
    client.force_login(user)
    address = reverse("console:campaign-results", args=[campaign.pk])
    import_gold_text(campaign, gold)
    recompute(campaign=campaign)
    page = client.get(address).content.decode()
    assert "This is a sensitivity range, not a confidence interval" in page
    assert "nothing says how the 80 documents" in page
    import_gold_text(campaign, gold, gold_chosen="uniform")
    computed = recompute(campaign=campaign)
    page = client.get(address).content.decode()
    assert "of the 200 documents in the file are relevant" in page
    assert SENTENCE in page
    rows = client.get(reverse("console:api-shares", args=[campaign.pk])).json()["results"]
    assert len(rows) == 3 * 5
    assert rows[0]["value"] == by_method(computed)["corrected"].value
    one = client.get(reverse("console:api-audits", args=[campaign.pk])).json()["audits"][0]
    assert (one["declaration"], one["assumption"]) == ("uniform", SENTENCE)
    lines = client.get(one["sample"]).getvalue().decode().splitlines()
    assert len(lines) == 201
    assert lines[1].endswith((",,0,", ",,1,"))  # no random number, no seed


def test_the_gold_page_declares_once(client, campaign, gold, crowd) -> None:
    client.force_login(User.objects.create_user("boss", role="manager"))
    address = reverse("console:manage-gold", args=[campaign.pk])
    assert "How the documents were chosen" in client.get(address).content.decode()

    def sent(**fields):
        return {"file_format": "gold", "file": io.BytesIO(gold.encode()), **fields}

    wrong = client.post(address, sent(gold_chosen="unknown", by_topic="on"))
    assert wrong.status_code == 400
    assert client.post(address, {}).status_code == 400
    assert client.post(address, sent(gold_chosen="uniform")).status_code == 302
    job = Job.objects.get(kind="import")
    assert job.payload["options"]["gold_chosen"] == "uniform"
    import_gold_text(campaign, gold, gold_chosen="uniform")
    assert SENTENCE[1:] in client.get(address).content.decode()
    plain = empty(crowd.collection())
    other = reverse("console:manage-gold", args=[plain.pk])
    assert "This campaign has audits instead" in client.get(other).content.decode()
    client.force_login(User.objects.create_user("ann"))
    assert client.get(address).status_code == 404  # as if there were none


def test_a_release_verifies_its_shares(crowd, campaign, gold, tmp_path) -> None:
    import_gold_text(campaign, gold, gold_chosen="uniform")
    release = released(campaign)
    with zipfile.ZipFile(io.BytesIO(Path(release.file.path).read_bytes())) as archive:
        archive.extractall(tmp_path)
    (folder,) = tmp_path.iterdir()

    def verified():
        command = [sys.executable, str(folder / "verify.py"), "--json"]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)

    report = verified()
    assert report["different"] == []
    assert report["same"]["shares"] > 10
    assert report["same"]["predictions of gold"] > 100
    assert (
        SENTENCE in (folder / "README.md").read_text()
        or "random part of the 200" in (folder / "README.md").read_text()
    )
    many = f"({crowd.n_labels.min()} to {crowd.n_labels.max()})"
    assert (
        f"Judgments per item: as many as the imported file has {many}." in (folder / "README.md").read_text()
    )
    (declared,) = json.loads((folder / "audits.json").read_text())
    assert declared["declaration"] == "uniform"
    estimates = json.loads((folder / "estimates.json").read_text())
    estimates["shares"][0]["value"] += 0.001
    (folder / "estimates.json").write_text(json.dumps(estimates))
    found = " ".join(verified()["different"])
    assert f"{estimates['shares'][0]['method']} value" in found


def test_with_many_topics_there_is_the_share_of_all_documents_alone(campaign, gold, monkeypatch) -> None:
    monkeypatch.setattr("analytics.services.shares.MOST_TOPICS", 3)
    import_gold_text(campaign, gold, gold_chosen="uniform")
    rows = ShareEstimate.objects.filter(computation=recompute(campaign=campaign))
    assert {row.topic for row in rows} == {""}
    assert {row.method for row in rows} == {"naive", "corrected", "matrix-inverse"}


def test_share_weights_refuse_what_they_cannot_hold() -> None:
    assert share_weights([0, 1, 1], 3).n_weighed().tolist() == [3, 1, 2, 0]
    for topics in ([], [0, 3], [-1]):
        with pytest.raises(ValueError, match="topic_index must hold places of 3 topics"):
            share_weights(topics, 3)
