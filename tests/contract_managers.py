"""What managers do in the state machine of the contract, in any order: requeue, suspend, audit, top up.

After every step gold must be as it was: of what somebody judged and others are to judge again, a check has as many
places for them as an ordinary item.
"""

from collections import Counter

from contract_model import PURPOSES, Place
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from judging.models import Document, Item, Slot
from judging.services import leases
from judging.services.campaigns import open_slots, set_status, want_judgments

MOST_ITEMS = 9
WHO = st.sampled_from(sorted(PURPOSES))


class Managers(RuleBasedStateMachine):
    """Rules and an invariant of a machine that has a campaign, topics, items, k and the model of all of it."""

    @precondition(lambda self: self.model.is_open and not self.model.suspended)
    @rule(who=WHO)
    def suspend(self, who):
        set_status(assessor=self.assessors[who], status="suspended", actor=None)
        self.model.suspended.add(who)
        self.model.release(self.model.held(who))

    @precondition(lambda self: self.complete_items())
    @rule(data=st.data(), purpose=st.sampled_from(["audit", "silver"]))
    def audit(self, data, purpose):
        item = data.draw(st.sampled_from(self.complete_items()))
        open_slots(items=[self.items[item]], purpose=purpose, n_each=1, seed=item)
        self.model.places.setdefault((item, purpose, 1), Place())

    @precondition(lambda self: len(self.items) < MOST_ITEMS)
    @rule(topic=st.integers(0, 1), is_check=st.booleans())
    def top_up_with_another_item(self, topic, is_check):
        item = self.add_item(topic)
        if is_check:
            open_slots(items=[self.items[item]], purpose="check", n_each=self.n_check_slots, seed=item)
            self.model.places |= {(item, "check", n): Place() for n in self.check_numbers()}
        else:
            want_judgments(items=[self.items[item]], k=self.k, seed=item)
            self.model.draw(item, self.k)

    @precondition(lambda self: self.checks_at_rest())
    @rule(data=st.data())
    def top_up_with_a_former_check(self, data):
        item = data.draw(st.sampled_from(self.checks_at_rest()))
        want_judgments(items=[self.items[item]], k=self.k, seed=item)
        self.model.draw(item, self.k)

    @precondition(lambda self: self.model.is_open and self.model.newest)
    @rule(who=WHO)
    def requeue(self, who):
        done = Slot.objects.filter(assessor=who, state="done", purpose__in=["judge", "check"])
        self.asked_again |= {(who, item) for item in done.values_list("item", flat=True)}
        assert leases.requeue(assessor=self.assessors[who], actor=None) == self.model.requeue(who)

    @invariant()
    def of_what_was_requeued_as_many_places_are_open_again_for_a_check_as_for_an_ordinary_item(self):
        """With k slots a check, k places of each are others' again: those that they fill, hold, or may get."""
        if not self.is_gold_enough:
            return
        slots = Slot.objects.filter(purpose__in=["judge", "check"]).values_list("item", "assessor")
        places = Counter(item for item, _ in slots)
        own = Counter((who, item) for item, who in slots)
        assert {places[item] - own[who, item] for who, item in self.asked_again} <= {self.k}, (
            "places of others"
        )

    def note_answer(self, who, token):
        """Forget what was requeued of an item once its assessor answers again: they may fill a place anew."""
        if token in self.model.leases:
            self.asked_again.discard((who, self.items[self.model.leases[token][1]].pk))

    def check_numbers(self):
        return range(1, self.n_check_slots + 1)

    def add_item(self, topic):
        item = len(self.items)
        self.items.append(make_item(self.campaign, self.topics[topic], item))
        self.number_of[self.items[item].pk] = item
        return item

    def complete_items(self):
        return [item for item in range(len(self.items)) if self.model.is_complete(item)]

    def checks_at_rest(self):
        """Return the checks of which nobody holds a place."""
        states = {}
        for (item, purpose, _), place in self.model.places.items():
            if purpose == "check":
                states.setdefault(item, set()).add(place.state)
        return sorted(item for item, found in states.items() if "leased" not in found)


def make_item(campaign, topic, number):
    document = Document.objects.create(collection=campaign.collection, doc_id=f"d{number}", text="Text")
    return Item.objects.create(campaign=campaign, topic=topic, document=document)
