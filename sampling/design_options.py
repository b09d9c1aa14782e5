"""What a design can be chosen from: questions, methods and priors, each with its words. `selections` has the fourth."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Option:
    """One choice: its key as stored, its name on the screen, and a sentence on what it is good for."""

    key: str
    label: str
    help: str


# The first of each is the default.
QUESTIONS = (
    Option("pair", "Is run A better than run B?", "Documents that decide between the two are drawn most."),
    Option("system", "How good is one run?", "Documents that the run ranks high."),
    Option(
        "baseline",
        "Which candidates beat the baseline?",
        "Documents that tell each candidate from the baseline.",
    ),
    Option("ranking", "How do several runs rank?", "Documents on which the runs disagree."),
    Option("pool", "How good is every run?", "Every pooled document with the same chance."),
)
METHODS = (
    Option(
        "default",
        "The default",
        "More chance for documents that say much about the question and are in doubt. Take it unless you need another.",
    ),
    Option(
        "paper",
        "The paper's Q*",
        "More chance for documents that say much and are probably relevant: to repeat Schnabel et al. (2016).",
    ),
    Option(
        "naive", "Naive", "More chance for high ranks, whatever the question: a yardstick for benchmarks."
    ),
)
PRIORS = (
    Option("runs", "The ranks of all runs", "What many runs rank high is probably relevant."),
    Option(
        "scores",
        "Imported scores as well",
        "A program's scores between 0 and 1, read with its error rates below.",
    ),
    Option(
        "judgments", "Earlier judgments as well", "For a top-up: what is judged so far predicts the rest."
    ),
)


def question_choices() -> list[tuple[str, str]]:
    """Return keys and labels, as the model's migrations name them."""
    return [(option.key, option.label) for option in QUESTIONS]


def method_choices() -> list[tuple[str, str]]:
    """Return keys and labels, as the model's migrations name them."""
    return [(option.key, option.label) for option in METHODS]
