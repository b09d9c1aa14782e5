"""The options of a design: questions, methods and priors, each with its words. `selections` has the fourth."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Option:
    """One choice: its key as stored, its name on the screen, and a sentence on what it is good for."""

    key: str
    label: str
    help: str


# The first of each is the default.
QUESTIONS = (
    Option("pair", "Is run A better than run B?", "Prefers documents that decide between the two."),
    Option("system", "How good is one run?", "Prefers documents that the run ranks high."),
    Option(
        "baseline",
        "Which candidates beat the baseline?",
        "Prefers documents that distinguish the candidates from the baseline.",
    ),
    Option("ranking", "How do several runs rank?", "Prefers documents on which the runs disagree."),
    Option("pool", "How good is every run?", "Gives every pooled document the same probability."),
)
METHODS = (
    Option(
        "default",
        "The default",
        "Prefers documents that influence the answer and whose relevance is uncertain. The usual choice.",
    ),
    Option(
        "paper",
        "The paper's Q*",
        "Prefers documents that influence the answer and are probably relevant: to reproduce Schnabel et al. (2016).",
    ),
    Option("naive", "Naive", "Prefers high ranks, whatever the question: a baseline for comparison."),
)
PRIORS = (
    Option("runs", "The ranks of all runs", "A document that many runs rank high is probably relevant."),
    Option(
        "experts",
        "The consensus of all runs",
        "A document that the runs together prefer to others is probably relevant: Carterette and Allan (2007).",
    ),
    Option(
        "scores",
        "Imported scores as well",
        "Scores of a machine assessor between 0 and 1, with the error rates below.",
    ),
    Option(
        "judgments",
        "Earlier judgments as well",
        "For a top-up: the judgments so far predict the relevance of other documents.",
    ),
)

LEARNING = (
    Option(
        "refit",
        "From this batch as well, once it is judged",
        "The narrower interval. Its bias is of second order: small beside the standard error.",
    ),
    Option(
        "exact",
        "From the batches before it only",
        "Exactly unbiased: the judgments of this batch count, but nothing is predicted from them.",
    ),
)

WHOLE_TOPICS = "sample"
TOPIC_SELECTIONS = (
    Option(
        "all",
        "Documents of all topics",
        "Every document has a probability of its own: for sums over documents, such as P@10 or DCG@10.",
    ),
    Option(
        WHOLE_TOPICS,
        "A sample of whole topics",
        "Some topics are drawn and judged completely: for any measure, also ERR@10 and nDCG@10, with many topics.",
    ),
)


# Question and method of a sample that was imported; no design has them.
FOREIGN = Option("foreign", "A sample drawn elsewhere", "Imported with its probabilities.")


def question_choices() -> list[tuple[str, str]]:
    """Return keys and labels, as the model's migrations name them."""
    return [(option.key, option.label) for option in (*QUESTIONS, FOREIGN)]


def method_choices() -> list[tuple[str, str]]:
    """Return keys and labels, as the model's migrations name them."""
    return [(option.key, option.label) for option in (*METHODS, FOREIGN)]
