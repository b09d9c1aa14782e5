"""How far a method can be divided: what it has to hold at once, and up to how many judgments it may."""

TOPIC, PASSES, WHOLE = "topic", "passes", "whole"
# What each of them means; a method or an analysis declares one.
SHARDS = {
    TOPIC: "sums over topics of numbers of an item: nothing else is needed of a topic",
    PASSES: "a fit that goes over all topics several times, and then such sums",
    WHOLE: "all judgments at once, many times over",
}
MOST_WHOLE = 3_000_000  # judgments


def refusal(name: str, shards: str, n_judgments: int) -> str:
    """Return why what is declared so is not computed of so many judgments; empty where it is.

    >>> refusal("Agreement of the tiers", "whole", 3_000_001)
    'Agreement of the tiers takes all judgments at once, up to 3,000,000 of them; this campaign has 3,000,001'
    >>> refusal("Agreement of the tiers", "passes", 3_000_001) + refusal("x", "whole", 3_000_000)
    ''
    """
    if shards not in SHARDS:
        raise ValueError(f"shards must be one of {', '.join(SHARDS)}, got {shards!r}")
    if shards != WHOLE or n_judgments <= MOST_WHOLE:
        return ""
    return (
        f"{name} takes all judgments at once, up to {MOST_WHOLE:,} of them; this campaign has {n_judgments:,}"
    )
