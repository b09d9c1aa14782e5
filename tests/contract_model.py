"""The judging contract on a page: what is refused, what is stored and what counts."""

import uuid
from collections import Counter
from dataclasses import dataclass, field

from judging.services.errors import (
    AlreadyJudged,
    AssessorSuspended,
    CampaignNotOpen,
    LeaseUnknown,
    NotYetJudged,
    TokenReused,
)

# Bob, Dora and Emil judge, and meet checks; Gold audits; Silver does both, audits first.
ORDINARY = ("judge", "check")

PURPOSES = {1: ORDINARY, 2: ORDINARY, 3: ORDINARY, 4: ("audit",), 5: ("silver", *ORDINARY)}

TIERS = {4: "gold", 5: "silver"}


@dataclass
class Place:
    """A slot that wants a judgment, or has one: open, leased or done."""

    state: str = "open"
    assessor: int | None = None
    token: uuid.UUID | None = None
    is_expired: bool = False


@dataclass
class Model:
    """The contract without a database, one request after the other. Places are keyed (item, purpose, number)."""

    places: dict[tuple, Place]
    quota: dict[int, int | None]
    is_open: bool = True
    suspended: set[int] = field(default_factory=set)
    void: list[tuple] = field(default_factory=list)  # (item, assessor) of judgments that were set aside
    requeued: set[tuple] = field(default_factory=set)  # (item, assessor) whose grade others are to replace
    leases: dict[uuid.UUID, tuple[int, int]] = field(default_factory=dict)  # token: assessor, item
    sent: dict[uuid.UUID, tuple] = field(default_factory=dict)  # client token: what came with it
    newest: dict[tuple, tuple] = field(default_factory=dict)  # (item, assessor): grade, obstacle, place
    n_judged: Counter = field(default_factory=Counter)

    def held(self, who):
        return [key for key, place in self.places.items() if (place.state, place.assessor) == ("leased", who)]

    def available(self, who):
        """Return what the assessor could be given: free, and of an item that they never held or judged."""
        mine = {item for item, assessor in [*self.newest, *self.void] if assessor == who}
        mine |= {item for (item, _, _), place in self.places.items() if place.assessor == who}
        return [
            key
            for key, place in self.places.items()
            if key[0] not in mine and key[1] in PURPOSES[who] and (place.state == "open" or place.is_expired)
        ]

    def may_judge(self, who):
        if who in self.suspended:
            raise AssessorSuspended
        if not self.is_open:
            raise CampaignNotOpen

    def claim(self, who, n, claimed):
        """Follow the choice of the product: the assessor's leases first, then as many more as requested and allowed."""
        self.may_judge(who)
        n = n if self.quota[who] is None else min(n, self.quota[who] - self.n_judged[who])
        held = self.held(who) if n > 0 else []
        given = [key for key, _ in claimed]
        assert set(given[: len(held)]) == set(held)
        for key, token in claimed:
            if key not in held:
                available = self.available(who)
                assert key in available
                assert key[1] == PURPOSES[who][0] or "silver" not in {purpose for _, purpose, _ in available}
                assert token not in self.leases
                self.places[key] = Place("leased", who, token)
                self.leases[token] = (who, key[0])
            assert self.places[key].token == token
            self.places[key].is_expired = False
        assert len(given) <= max(n, len(held))
        if len(given) < n:
            assert {purpose for _, purpose, _ in self.available(who)} <= {"check"}  # checks come by chance
        return "" if given else "no work" if n > 0 else "quota"

    def submit(self, who, token, client_token, grade, obstacle):
        if self.is_repeated(who, token, client_token, grade, obstacle):
            return
        item = self.item_of(who, token)
        if (item, who) in self.newest:
            raise AlreadyJudged
        self.store(item, who, token, client_token, grade, obstacle)
        self.n_judged[who] += 1

    def revise(self, who, token, client_token, grade, obstacle):
        if self.is_repeated(who, token, client_token, grade, obstacle):
            return
        self.may_judge(who)
        item = self.item_of(who, token)
        if (item, who) not in self.newest:
            raise NotYetJudged
        self.store(item, who, token, client_token, grade, obstacle)

    def is_repeated(self, who, token, client_token, grade, obstacle):
        if client_token not in self.sent:
            return False
        if self.sent[client_token] != (who, token, grade, obstacle):
            raise TokenReused
        return True

    def item_of(self, who, token):
        assessor, item = self.leases.get(token, (None, None))
        if assessor != who:
            raise LeaseUnknown
        return item

    def store(self, item, who, token, client_token, grade, obstacle):
        """Fill the slot that the assessor fills already, or holds, or any free one of the item."""
        self.sent[client_token] = (who, token, grade, obstacle)
        counted = self.newest.get((item, who), (None, "", None))[2]
        held = [key for key in self.held(who) if key[0] == item]
        free = [key for key, place in self.places.items() if key[0] == item and place.state == "open"]
        free = [key for key in free if key[1] in PURPOSES[who] and (item, who) not in self.requeued]
        free.sort(key=lambda key: (key[1] == "silver", key[2]))
        place = None
        if grade is not None and who not in self.suspended:
            place = counted or next(iter(held + free), None)
        if grade is None:
            self.requeued.discard((item, who))
        if place is None and counted is not None:
            self.set_aside(counted)
        for key in held:
            self.places[key] = Place()
        if place is not None:
            self.places[place] = Place("done", who)
        self.newest[item, who] = (grade, obstacle, place)

    def set_aside(self, key):
        who = self.places[key].assessor
        self.void.append((key[0], who))
        self.newest[key[0], who] = (*self.newest[key[0], who][:2], None)
        self.places[key] = Place()

    def is_complete(self, item):
        """Return whether the item has all its judgments, so that an audit may select it."""
        own = [place.state for key, place in self.places.items() if key[:2] == (item, "judge")]
        return bool(own) and set(own) == {"done"}

    def draw(self, item, k):
        """Want k judgments of an item: the places that it has as a check become such places, filled ones first."""
        numbers = [n for n in range(1, k + 1) if (item, "judge", n) not in self.places]
        checks = sorted(key for key in self.places if key[:2] == (item, "check"))
        done = [key for key in checks if self.places[key].state == "done"]
        waiting = [key for key in checks if self.places[key].state == "open"]
        n_open = max(0, len(numbers) - len(done))
        for key in done[: len(numbers)] + waiting[:n_open]:
            self.rename(key, (item, "judge", numbers.pop(0)))
        for number in numbers:
            self.places[item, "judge", number] = Place()

    def rename(self, old, new):
        self.places[new] = self.places.pop(old)
        for which, (grade, obstacle, place) in self.newest.items():
            if place == old:
                self.newest[which] = (grade, obstacle, new)

    def release(self, keys):
        for key in keys:
            self.places[key] = Place()

    def comes_back(self, key):
        """Return whether others judge again what filled this place: whatever it was for."""
        return True

    def requeue(self, who):
        done = [key for key, place in self.places.items() if (place.state, place.assessor) == ("done", who)]
        done = [key for key in done if self.comes_back(key)]
        for key in done:
            self.set_aside(key)
            self.requeued.add((key[0], who))
        return len(done)
