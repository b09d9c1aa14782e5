"""Gold on named documents: a census of what counts for one run or pair, held against gold at random.

Gold at random narrows an interval as ``1/m``. Gold on every judged document that counts leaves of the variance only
what the draw adds, and nothing where everything that counts was certain to be judged.
Source: docs/methods/tiers.md (census); docs/methods/derivations/correction.md, section 3.1 with a = 1.
"""

from dataclasses import dataclass

from analytics.planning.purchases import Purchase

DEARER = 1.5  # times the cost of what reaches the same at random: up to it, named documents come first


@dataclass(frozen=True)
class ExactGold:
    """What gold on the documents of a census brings, and what it is compared with.

    Attributes
    ----------
    documents : tuple of (topic, document)
        Judged documents that count and have no gold label.
    n_weighed : int
        All documents that count, judged or not.
    cost : float
        Of the missing gold labels.
    is_exact : bool
        Whether the number for these topics has no error then.
    half_width_these : float
        What remains for these topics; 0 where it is exact.
    half_width : float
        What remains for the claim.
    at_random : Purchase or None
        Judgments and gold at random that reach the same question, or else cost the same; None where none can be bought.
    wanted : float or None
        The half-width that is asked for.
    awaited : int
        Of these documents, how many wait for the gold tier.
    is_requested : bool
        Whether a census of this question was made.
    """

    documents: tuple[tuple[str, str], ...]
    n_weighed: int
    cost: float
    is_exact: bool
    half_width_these: float
    half_width: float
    at_random: Purchase | None
    wanted: float | None = None
    awaited: int = 0
    is_requested: bool = False

    @property
    def is_open(self) -> bool:
        """Return whether a census can be asked for: not while all that it would bring is awaited.

        >>> plan = ExactGold((("t", "d"),) * 3, 9, 3.0, True, 0.0, 0.0, None)
        >>> plan.is_open, ExactGold((("t", "d"),) * 3, 9, 3.0, True, 0.0, 0.0, None, awaited=3).is_open
        (True, False)
        """
        return self.awaited < len(self.documents) if self.documents else not self.is_requested

    @property
    def comes_first(self) -> bool:
        """Return whether these documents are the better purchase: the rule that page, API and command follow.

        Where a half-width is asked for and either way reaches it: they cost at most DEARER times the other. Else, and
        for the same money: they leave the narrower interval.

        >>> from dataclasses import replace
        >>> bought = Purchase(0, 0, 60, 60.0, 0.067, 0.096, "")
        >>> plan = ExactGold((("t", "d"),) * 81, 636, 81.0, True, 0.0, 0.0, bought, 0.067)
        >>> plan.comes_first, replace(plan, cost=91.0).comes_first, replace(plan, wanted=None).comes_first
        (True, False, True)
        """
        other = self.at_random
        if other is None:
            return True
        if self.wanted is None:
            return self.half_width <= other.half_width
        reaches, other_reaches = (
            width <= self.wanted * (1 + 1e-9) for width in (self.half_width, other.half_width)
        )
        if reaches and other_reaches:
            return self.cost <= DEARER * other.cost
        return reaches or (not other_reaches and self.half_width <= other.half_width)

    def sentence(self, what: str, *, of_topics: bool) -> str:
        """Return what these documents bring and cost, beside the same at random; `what` is "difference" or "value".

        >>> bought = Purchase(0, 0, 202, 202.0, 0.067, 0.096, "")
        >>> plan = ExactGold((("t", "d"),) * 81, 636, 81.0, True, 0.0, 0.0, bought)
        >>> plan.sentence("difference", of_topics=False)
        'Gold on these 81 documents makes the difference exact for these topics (81.00); 202 at random: ± 0.067.'
        """
        n = len(self.documents)
        if n == 0:
            gold = "Every judged document that counts has gold: a census needs no new label and"
        else:
            gold = f"Gold on {f'these {n:,} documents' if n > 1 else 'this document'}"
        if self.is_exact:
            brings = f"makes the {what} exact for these topics ({self.cost:,.2f})"
        else:
            left = f"± {digits(self.half_width_these)} for these topics, the error of the draw"
            brings = f"leaves {left} ({self.cost:,.2f})"
        if of_topics:
            leaves = "leaves " if self.is_exact else ""
            brings += f" and {leaves}± {digits(self.half_width)} for topics like these"
        return f"{gold} {brings}{_random_words(self.at_random)}.{self._waiting_words()}"

    def _waiting_words(self) -> str:
        """Return in a sentence what is awaited already; empty where nothing is."""
        if not self.documents:
            return " The census was made; the next numbers have it." if self.is_requested else ""
        n, of = self.awaited, len(self.documents)
        if not n:
            return ""
        whose = "it" if of == 1 else "all of them" if n == of else f"{n:,} of them"
        return f" Gold on {whose} is requested and awaited."


def _random_words(bought: Purchase | None) -> str:
    if bought is None or not (bought.items or bought.gold):
        return ""
    if not bought.items:
        return f"; {bought.gold:,} at random: ± {digits(bought.half_width)}"
    gold = f" and {bought.gold:,} gold labels" if bought.gold else ""
    what = f"{bought.items:,} more judged documents{gold} ({bought.cost:,.2f})"
    return f"; at random {what}: ± {digits(bought.half_width)}"


def digits(width: float) -> str:
    """Return a half-width to read: three decimals, or two digits where these would hide it.

    >>> digits(0.02134), digits(0.00063)
    ('0.021', '0.00063')
    """
    return f"{width:.3f}" if width >= 0.01 else f"{width:.2g}"
