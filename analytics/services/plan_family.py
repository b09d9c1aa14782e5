"""The comparison that is planned for, in its family: p as it stands, and the level at which the plan detects it."""

from dataclasses import dataclass

from analytics.estimation.claims import LIKE_THESE, Claim, Family
from analytics.estimation.wording import ADJUSTMENTS, LEVEL, p_words
from analytics.models import Computation, Estimate
from analytics.services.claim_intervals import OLDER
from analytics.services.comparisons import HOLM, Comparisons
from analytics.services.plan_terms import Terms

OLDER_THAN_TESTS = "it was computed before differences were tested; compute again"


@dataclass(frozen=True)
class FamilyTest:
    """A pair in its family: `n` comparisons were tested; p is None where this one was not.

    A plan cannot know what the other comparisons will say. At `level`, the strictest of Holm's steps, this one is
    significant whatever they say, so the power is at least the one that was asked for. By then this one is tested too.
    """

    family: Family
    n: int
    is_in_family: bool
    p: float | None
    p_adjusted: float | None
    claim: Claim = LIKE_THESE

    @property
    def n_planned(self) -> int:
        """Return how many comparisons are adjusted once this one is tested."""
        return self.n + (self.is_in_family and self.p is None)

    @property
    def level(self) -> float:
        """Return the level at which this comparison is detected: .05/n_planned, and .05 of one outside the family."""
        return LEVEL / self.n_planned if self.is_in_family and self.n_planned > 1 else LEVEL

    @property
    def refusal(self) -> str:
        """Return why no level is known: older numbers have several comparisons, of which none was tested."""
        if self.is_in_family and not self.n and len(self.family.pairs) > 1:
            return OLDER if self.claim is LIKE_THESE else OLDER_THAN_TESTS
        return ""

    @property
    def sentence(self) -> str:
        """Return where the comparison stands in its family, and what is planned for."""
        now = "Now " + ("the difference is not tested" if self.p is None else p_words(self.p))
        name = self.family.name
        if not self.is_in_family:
            return (
                f"{now}. This pair is not among the comparisons of the family {name}, so it is not called significant "
                "there; the plan takes it as a single comparison, at .05."
            )
        if self.n_planned < 2:
            return f"{now}; the family {name} has no other tested comparison, so p needs no adjustment."
        adjusted = "" if self.p_adjusted is None else f", {p_words(self.p_adjusted)} {ADJUSTMENTS[HOLM]}"
        among = f"{now}{adjusted} among the {self.n:,} tested comparisons of the family {name}."
        if self.p is None:
            tested = "comparison is tested" if self.n == 1 else "comparisons are tested"
            among = f"{now}; in the family {name} {self.n:,} other {tested}, and with this one {self.n_planned:,}."
        return (
            f"{among} The plan is for p below .05/{self.n_planned:,}, the strictest of Holm’s steps: then this "
            "difference is significant whatever the other comparisons show."
        )


def family_test(computation: Computation, found: Estimate, terms: Terms) -> FamilyTest | None:
    """Return where a stored difference stands in the family of the terms; None of a run's own value."""
    if terms.family is None or found.run_b_id is None:
        return None
    among = Comparisons(computation, terms.measure, terms.family, terms.claim)
    test, _ = among.tests(found)
    return FamilyTest(
        family=terms.family,
        n=among.n_family,
        is_in_family=(terms.run, terms.against) in terms.family,
        p=test.p,
        p_adjusted=test.p_adjusted,
        claim=terms.claim,
    )
