"""The judging contract as a state machine: whatever assessors and managers do, in whatever order, a model of a page
predicts what is refused, what is stored and what counts.

Every example is one transaction that is rolled back. `make nightly` runs 2,000 new examples of 50 steps.
"""

import os
import random
import uuid
from collections import Counter

import pytest
from contract_managers import WHO, Managers, make_item
from contract_model import PURPOSES, TIERS, Model, Place
from django.db import connection, transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from judging.models import (
    Assessor,
    Campaign,
    Collection,
    Grade,
    Judgment,
    Scale,
    Slot,
    Topic,
)
from judging.services import assign, leases
from judging.services.campaigns import close_campaign, open_campaign, set_status
from judging.services.errors import Refused
from touchstone.models import User
from touchstone.rights import WEB

IS_NIGHTLY = os.environ.get("NIGHTLY") == "1"

PARTS, EXAMPLES, STEPS = (4, 500, 50) if IS_NIGHTLY else (1, 60, 30)  # parts: for several processors

STRANGER = uuid.UUID(int=0)

AHEAD = st.integers(1, 2)

ANSWER = st.sampled_from([(0, ""), (1, ""), (2, ""), (None, "language")])  # grade, obstacle


class Contract(Managers):
    """Does everything to the product and to the model, and compares them after every step."""

    def __init__(self):
        super().__init__()
        self.example = transaction.atomic()
        self.example.__enter__()
        self.n_sent = 0

    def teardown(self):
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # what a commit would check
        finally:
            transaction.set_rollback(True)
            self.example.__exit__(None, None, None)

    @initialize(
        k=st.integers(1, 3),
        n_items=st.integers(1, 5),
        n_checks=st.integers(0, 2),
        is_gold_enough=st.booleans(),
        n_audits=st.integers(0, 1),
        n_silver=st.integers(0, 2),
        quota=st.none() | st.integers(1, 4),
        seed=st.integers(0, 99),
        is_web=st.booleans(),
    )
    def begin(self, k, n_items, n_checks, is_gold_enough, n_audits, n_silver, quota, seed, is_web):
        # The same example makes the same choices again; the product's coins follow from random tokens.
        assign._random = random.Random(seed)
        assign.coins = lambda key, moment, n: [assign._random.random() for _ in range(n)]
        self.k, rng = k, random.Random(seed)
        self.is_gold_enough, self.n_check_slots = is_gold_enough, k if is_gold_enough else 2
        self.campaign = make_campaign(k)
        self.topics = topics = [make_topic(self.campaign, number) for number in (1, 2)]
        self.items = [make_item(self.campaign, rng.choice(topics), n) for n in range(n_items + n_checks)]
        wanted = [(item, "judge", n) for item in range(n_items) for n in range(1, k + 1)]
        wanted += [(item, "audit", 1) for item in range(n_audits)]
        wanted += [(item, "silver", 1) for item in range(min(n_silver, n_items))]
        wanted += [
            (item, "check", n) for item in range(n_items, n_items + n_checks) for n in self.check_numbers()
        ]
        Slot.objects.bulk_create(self.make_slot(*key, rng.randrange(1000)) for key in wanted)
        quotas = {who: quota if who == 2 else None for who in PURPOSES}
        self.assessors = {who: make_assessor(self.campaign, who, quotas[who]) for who in PURPOSES}
        self.model = Model({key: Place() for key in wanted}, quotas)
        self.asked_again = set()  # (assessor, item) of judgments that others are to make again
        self.number_of = {item.pk: number for number, item in enumerate(self.items)}
        if is_web:  # from now on with the rights of a web process alone
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL ROLE {WEB}")

    def make_slot(self, item, purpose, number, position):
        made = self.items[item]
        return Slot(
            item=made,
            purpose=purpose,
            number=number,
            campaign_id=made.campaign_id,
            topic_id=made.topic_id,
            position=position,
        )

    # -- what assessors do --

    @rule(who=WHO, n=AHEAD, answer=ANSWER)
    def work(self, who, n, answer):
        """Claim, and judge the first item: what happens nearly always."""
        claimed = self.claimed(who, n)
        if claimed is not None and claimed.items:
            self.send("submit", who, claimed.item.token, self.new_client_token(), *answer)

    @rule(who=WHO, n=AHEAD)
    def claim(self, who, n):
        self.claimed(who, n)

    @precondition(lambda self: self.unjudged())
    @rule(data=st.data(), answer=ANSWER)
    def judge(self, data, answer):
        """Judge something held or lost, in time or late."""
        token = data.draw(st.sampled_from(self.unjudged()))
        self.send("submit", self.model.leases[token][0], token, self.new_client_token(), *answer)

    @precondition(lambda self: self.model.newest)
    @rule(data=st.data(), answer=ANSWER)
    def judge_twice(self, data, answer):
        token = self.a_token(data)
        self.send("submit", self.model.leases[token][0], token, self.new_client_token(), *answer)

    @precondition(lambda self: self.model.newest)
    @rule(data=st.data(), answer=ANSWER)
    def change_one_s_mind(self, data, answer):
        token = self.a_token(data)
        self.send("revise", self.model.leases[token][0], token, self.new_client_token(), *answer)

    @precondition(lambda self: self.model.sent)
    @rule(data=st.data(), service=st.sampled_from(["submit", "revise"]), is_same=st.booleans())
    def send_again(self, data, service, is_same):
        client_token = data.draw(st.sampled_from(sorted(self.model.sent)))
        who, token, grade, obstacle = self.model.sent[client_token]
        if not is_same:
            grade, obstacle = 0 if grade is None else (grade + 1) % 3, ""
        self.send(service, who, token, client_token, grade, obstacle)

    @precondition(lambda self: self.model.is_open and self.model.leases)
    @rule(data=st.data(), who=WHO)
    def send_what_one_was_not_given(self, data, who):
        foreign = [token for token, (owner, _) in self.model.leases.items() if owner != who]
        token = data.draw(st.sampled_from([STRANGER, *foreign]))
        self.send("submit", who, token, self.new_client_token(), 1, "")

    @precondition(lambda self: self.model.is_open and self.model.leases)
    @rule(data=st.data())
    def extend(self, data):
        token = self.a_token(data)
        who = self.model.leases[token][0]
        held = [key for key in self.model.held(who) if self.model.places[key].token == token]
        still = leases.extend(assessor=self.assessors[who], tokens=[token, STRANGER])
        assert still == [token] * len(held)
        for key in held:
            self.model.places[key].is_expired = False

    # -- what managers and time do --

    @precondition(lambda self: self.model.is_open and self.leased())
    @rule(data=st.data())
    def expire(self, data):
        key = data.draw(st.sampled_from(self.leased()))
        slots = Slot.objects.filter(token=self.model.places[key].token)
        assert slots.update(lease_until="2000-01-01T00:00Z") == 1
        self.model.places[key].is_expired = True

    @precondition(lambda self: self.model.is_open and self.leased())
    @rule(data=st.data(), is_twice=st.booleans())
    def release(self, data, is_twice):
        key = data.draw(st.sampled_from(self.leased()))
        slot = Slot.objects.get(token=self.model.places[key].token)
        assert leases.release(slot=slot, actor=None)
        if is_twice:
            assert not leases.release(slot=slot, actor=None)
        self.model.release([key])

    @precondition(lambda self: self.unjudged() and not self.model.suspended)
    @rule(data=st.data(), answer=ANSWER)
    def suspend_somebody_who_sends_once_more(self, data, answer):
        token = data.draw(st.sampled_from(self.unjudged()))
        who = self.model.leases[token][0]
        set_status(assessor=self.assessors[who], status="suspended", actor=None)
        self.model.suspended.add(who)
        self.model.release(self.model.held(who))
        self.send("submit", who, token, self.new_client_token(), *answer)

    @precondition(lambda self: self.model.suspended)
    @rule()
    def resume(self):
        who = self.model.suspended.pop()
        set_status(assessor=self.assessors[who], status="active", actor=None)

    @precondition(lambda self: self.model.is_open and self.unjudged())
    @rule()
    def close(self):
        close_campaign(campaign=self.campaign, actor=None)
        self.model.is_open = False

    @precondition(lambda self: not self.model.is_open)
    @rule()
    def open_again(self):
        open_campaign(campaign=self.campaign, actor=None)
        self.model.is_open = True

    # -- what is true after every step --

    @invariant()
    def slots_are_those_of_the_model(self):
        found, void = {}, []
        fields = ("item", "purpose", "number", "state", "assessor", "token")
        for item, purpose, number, state, who, token in Slot.objects.values_list(*fields):
            if purpose == "void":
                void.append((self.number_of[item], who))
            else:
                token_of_lease = token if state == "leased" else None
                found[self.number_of[item], purpose, number] = (state, who, token_of_lease)
        assert found == {
            key: (place.state, place.assessor, place.token) for key, place in self.model.places.items()
        }
        assert sorted(void) == sorted(self.model.void)

    @invariant()
    def every_judgment_is_kept_once_and_the_newest_counts_as_in_the_model(self):
        newest, sent = {}, []
        fields = ("item", "assessor", "lease_token", "client_token", "grade", "obstacle")
        rows = Judgment.objects.order_by("sequence").values_list(*fields, "slot__purpose", "slot__number")
        for item, who, token, client_token, grade, obstacle, purpose, number in rows:
            place = None if purpose in (None, "void") else (self.number_of[item], purpose, number)
            newest[self.number_of[item], who] = (grade, obstacle, place)
            sent.append((client_token, (who, token, grade, obstacle)))
        assert newest == self.model.newest
        assert sorted(sent, key=str) == sorted(self.model.sent.items(), key=str)
        counted = [place for _, _, place in newest.values() if place is not None]
        assert len(set(counted)) == len(counted)
        judged = Counter(item for item, purpose, _ in counted if purpose == "judge")
        assert max(judged.values(), default=0) <= self.k

    @invariant()
    def work_is_counted_and_leases_are_kept(self):
        rows = list(Assessor.objects.values_list("pk", "n_judged", "leases__token"))
        assert {who: n for who, n, _ in rows} == {who: self.model.n_judged[who] for who in PURPOSES}
        assert {(token, who) for who, _, token in rows if token} == {
            (token, who) for token, (who, _) in self.model.leases.items()
        }

    # -- helpers --

    def both(self, product, model):
        """Do it to both: either neither refuses, or both do for the same reason."""
        try:
            result = product()
        except Refused as refusal:
            with pytest.raises(type(refusal)):
                model(None)
        else:
            model(result)

    def claimed(self, who, n):
        """Claim from both; return what the product gave."""
        given = []

        def product():
            given.append(assign.claim(assessor=self.assessors[who], n=n))
            return given[0]

        def model(claimed):
            reason = self.model.claim(who, n, [] if claimed is None else self.keys_of(claimed.items))
            assert claimed is not None
            assert (claimed.reason, claimed.n_judged) == (reason, self.model.n_judged[who])

        self.both(product, model)
        return given[0] if given else None

    def send(self, service, who, token, client_token, grade, obstacle):
        request = {"token": token, "client_token": client_token, "grade": grade, "obstacle": obstacle}

        def model(stored):
            getattr(self.model, service)(who, **request)
            assert stored is not None
            assert (stored.client_token, stored.grade, stored.obstacle) == (client_token, grade, obstacle)

        self.note_answer(who, token)
        self.both(lambda: getattr(assign, service)(assessor=self.assessors[who], **request), model)

    def keys_of(self, held):
        fields = ("pk", "item", "purpose", "number")
        rows = Slot.objects.filter(pk__in=[one.slot_id for one in held]).values_list(*fields)
        keys = {pk: (self.number_of[item], purpose, number) for pk, item, purpose, number in rows}
        return [(keys[one.slot_id], one.token) for one in held]

    def a_token(self, data):
        """Return a lease, a recent one rather than an old one."""
        tokens = list(self.model.leases)
        return tokens[-1 - data.draw(st.integers(0, min(len(tokens), 8) - 1))]

    def unjudged(self):
        return [
            token for token, (who, item) in self.model.leases.items() if (item, who) not in self.model.newest
        ]

    def leased(self):
        return sorted(key for key, place in self.model.places.items() if place.state == "leased")

    def new_client_token(self):
        self.n_sent += 1
        return uuid.UUID(int=self.n_sent)


def make_campaign(k):
    scale = Scale.objects.create(name="three")
    Grade.objects.bulk_create(Grade(scale=scale, value=n, label=str(n), gain=n) for n in range(3))
    return Campaign.objects.create(
        collection=Collection.objects.create(name="collection"),
        scale=scale,
        name="campaign",
        state="open",
        judgments_per_item=k,
        gold_check_rate=0.5,
    )


def make_topic(campaign, number):
    return Topic.objects.create(
        pk=number, collection=campaign.collection, topic_id=f"t{number}", title="A topic"
    )


def make_assessor(campaign, number, quota):
    tier = TIERS.get(number, "bronze")
    user = User.objects.create(pk=number, username=f"assessor{number}")
    return Assessor.objects.create(pk=number, campaign=campaign, user=user, tier=tier, quota=quota)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("made_roles")
@pytest.mark.parametrize("part", range(PARTS))
def test_the_contract_holds_whatever_is_done_in_whatever_order(part, monkeypatch):
    for replaced in ("_random", "coins"):  # by every example
        monkeypatch.setattr(assign, replaced, getattr(assign, replaced))
    run_state_machine_as_test(
        Contract,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            derandomize=not IS_NIGHTLY,  # the gate is the same every time
            phases=[Phase.generate, Phase.shrink],
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("comes_back", [True, False])
def test_if_checks_did_not_come_back_the_places_of_what_was_requeued_would_tell(monkeypatch, comes_back):
    """The control: product and model agree to leave answered checks alone, so only that invariant can notice."""
    for replaced in ("_random", "coins"):
        monkeypatch.setattr(assign, replaced, getattr(assign, replaced))
    if not comes_back:
        monkeypatch.setattr(leases, "REQUEUED", [p for p in leases.REQUEUED if p != Slot.Purpose.CHECK])
        monkeypatch.setattr(Model, "comes_back", lambda self, key: key[1] != "check")
    machine = Contract()
    try:
        nobody_else = {"n_audits": 0, "n_silver": 0, "quota": None, "is_web": False}
        machine.begin(k=1, n_items=3, n_checks=2, is_gold_enough=True, seed=1, **nobody_else)
        for _ in range(5):
            machine.work(who=1, n=1, answer=(1, ""))
        assert {key[1] for key, place in machine.model.places.items() if place.assessor == 1} >= {"check"}
        machine.requeue(who=1)
        machine.slots_are_those_of_the_model()
        told = machine.of_what_was_requeued_as_many_places_are_open_again_for_a_check_as_for_an_ordinary_item
        if comes_back:
            told()
        else:
            with pytest.raises(AssertionError, match="places of others"):
                told()
    finally:
        machine.teardown()
