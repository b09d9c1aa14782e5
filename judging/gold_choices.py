"""How the documents with a gold grade were chosen among the judged ones, as far as somebody declares it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GoldChoice:
    """One way, as stored and spelled by API and command (`key`), its label on the screen, and what follows from it."""

    key: str
    label: str
    help: str


UNKNOWN = GoldChoice(
    "unknown",
    "Nobody knows",
    "Gold grades check the labels. There is a sensitivity range, and no corrected number.",
)
UNIFORM = GoldChoice(
    "uniform",
    "At random, each document with the same chance",
    "Gold grades are an audit. Every corrected number says that it assumes this; a test is shown beside it.",
)
PROBABILITIES = GoldChoice(
    "probabilities",
    "At random, with the probabilities in the file",
    "Gold grades are an audit. The column probability has the chance of every judged document, chosen or not.",
)
# The first is the default.
GOLD_CHOICES = (UNKNOWN, UNIFORM, PROBABILITIES)


def gold_choice_keys() -> list[str]:
    """Return the keys, the default first.

    >>> gold_choice_keys()
    ['unknown', 'uniform', 'probabilities']
    """
    return [one.key for one in GOLD_CHOICES]
