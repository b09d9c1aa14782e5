"""The fields of a `Design` as managers, API clients and the command `draw` give them: one table for all three."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

from sampling import selections
from sampling.design_options import LEARNING, METHODS, PRIORS, QUESTIONS, TOPIC_SELECTIONS
from sampling.measures.spelling import MAX_CUTOFF
from sampling.questions import Design

LONGEST_MEASURE = 40  # letters
MOST_ITEMS = 10_000_000
MOST_RUNS = 1000  # named in one request; no run named means all where the question allows it


class FieldKind(Enum):
    """The type of a field; forms, serializers and the command handle each."""

    CHOICE = auto()  # the key of one of `options`
    RUNS = auto()  # run ids, in the question's order
    MEASURE = auto()  # the name of a measure for which designs are made
    COUNT = auto()  # a whole number
    SCORES = auto()  # the name of imported scores, or nothing
    SOURCE = auto()  # the name or id of a campaign or collection, or nothing
    SHARE = auto()  # a number within [0, 1]; on the screen in percent


class Choosable(Protocol):
    """A row of a table of options."""

    @property
    def key(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def help(self) -> str: ...


@dataclass(frozen=True)
class DesignField:
    """One field.

    Attributes
    ----------
    name : str
        In `Design`, the API, the form; the command's option with hyphens.
    kind : FieldKind
    label, help : str
        On the screen, and a phrase for the command.
    default
        Value of an API request that leaves it out; None: it must be given.
    initial
        What the form begins with where there is no default.
    least, most : float
        Bounds of what an API client may send: of a count or share, or the length of text.
    form_bounds : tuple of float
        Narrower bounds of the form, where it has other ones.
    options : callable
        The rows to choose from, read anew each time.
    """

    name: str
    kind: FieldKind
    label: str = ""
    help: str = ""
    default: Any = None
    initial: Any = None
    least: float = 0
    most: float = 0
    form_bounds: tuple[float, float] | None = None
    options: Callable[[], Sequence[Choosable]] = tuple

    @property
    def is_required(self) -> bool:
        return self.default is None

    @property
    def bounds_on_screen(self) -> tuple[float, float]:
        return self.form_bounds or (self.least, self.most)

    @property
    def keys(self) -> list[str]:
        return [option.key for option in self.options()]


DESIGN_FIELDS = (
    DesignField("question", FieldKind.CHOICE, "What do you want to know?", options=lambda: QUESTIONS),
    DesignField("runs", FieldKind.RUNS, help="the runs, in the question's order", default=(), most=200),
    DesignField(
        "measure",
        FieldKind.MEASURE,
        "Measure",
        "a sum over documents or a ratio",
        initial="DCG@10",
        most=LONGEST_MEASURE,
    ),
    DesignField(
        "depth",
        FieldKind.COUNT,
        "Pool depth",
        "ranks of each run that are pooled",
        initial=20,
        least=1,
        most=MAX_CUTOFF,
        form_bounds=(1, 1000),
    ),
    DesignField(
        "budget",
        FieldKind.COUNT,
        "Items to judge",
        "items in all, earlier batches included",
        initial=400,
        least=1,
        most=MOST_ITEMS,
        form_bounds=(10, MOST_ITEMS),
    ),
    DesignField(
        "method",
        FieldKind.CHOICE,
        "Method",
        "the rule for the probabilities",
        Design.method,
        options=lambda: METHODS,
    ),
    DesignField(
        "selection",
        FieldKind.CHOICE,
        "Selection",
        "how documents are drawn with these probabilities",
        Design.selection,
        options=lambda: selections.SELECTIONS,
    ),
    DesignField(
        "prior",
        FieldKind.CHOICE,
        "Source of the prior",
        "source of the prior probability of relevance",
        Design.prior,
        options=lambda: PRIORS,
    ),
    DesignField("scores", FieldKind.SCORES, "Scores", "of imported scores", Design.scores, most=200),
    DesignField(
        "calibrated_on",
        FieldKind.SOURCE,
        "Calibrated on",
        "a campaign or collection with gold and scores of the same name, in place of the two rates",
        Design.calibrated_on,
        most=200,
    ),
    DesignField(
        "sensitivity",
        FieldKind.SHARE,
        "Sensitivity of the scores",
        "assumed share of relevant documents that the scores recognise",
        Design.sensitivity,
        most=1,
        form_bounds=(0.01, 0.99),
    ),
    DesignField(
        "specificity",
        FieldKind.SHARE,
        "Specificity of the scores",
        "assumed share of other documents that the scores recognise",
        Design.specificity,
        most=1,
        form_bounds=(0.01, 0.99),
    ),
    DesignField(
        "other_runs_share",
        FieldKind.SHARE,
        "Share for other runs",
        "part of the draw that serves other known runs",
        Design.other_runs_share,
        most=1,
        form_bounds=(0, 0.9),
    ),
    DesignField(
        "uniform_share",
        FieldKind.SHARE,
        "Even share",
        "part of the draw that is spread evenly over the pool",
        Design.uniform_share,
        most=1,
        form_bounds=(0, 0.9),
    ),
    DesignField(
        "learning",
        FieldKind.CHOICE,
        "Predict from",
        "which judgments the estimates are predicted from after sizes that were learned",
        Design.learning,
        options=lambda: LEARNING,
    ),
    DesignField(
        "topic_selection",
        FieldKind.CHOICE,
        "Topics",
        "documents of all topics, or a sample of whole topics",
        Design.topic_selection,
        options=lambda: TOPIC_SELECTIONS,
    ),
)
