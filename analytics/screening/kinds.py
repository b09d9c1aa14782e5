"""What a flag may say of an assessor, in words: tests of the log, rules on known answers, and two on carelessness."""

from dataclasses import dataclass

LOOK = (
    "Read a few of these documents with their grades before you act. Then send a message with what you saw; have the "
    "judgments made again if they cannot be trusted; pause the assessor if it goes on."
)
LOOK_AT_TIMES = (
    "Look at the documents judged fastest. A routine assessor, or short documents, can have this cause. If the grades "
    "are wrong as well, send a message, and have the judgments made again."
)
NEEDS_GOLD = (
    "This alone says that the assessor differs, not that they are wrong. Let the gold tier audit some of these topics, "
    "or raise the share of gold checks, before you act."
)


@dataclass(frozen=True)
class FlagKind:
    """One kind of evidence against an assessor.

    Attributes
    ----------
    key : str
        As stored, and as the API spells it; at most 40 characters.
    label, help : str
        Its name on the screen, and a sentence on what the assessor does.
    effect : str
        What the effect is, as a phrase after its value.
    advice : str
        What else it may be, and what to do.
    is_share : bool
        The effect is a share, written in per cent.
    picture : str
        Which picture of the assessor shows it: seconds, labels, fast or auc; empty: none.
    """

    key: str
    label: str
    help: str
    effect: str
    advice: str = LOOK
    is_share: bool = False
    picture: str = ""

    def sentence(self, effect: float, p_adjusted: float, n_topics: int = 0) -> str:
        """Return the finding in words.

        >>> SPEED.sentence(-3.4, 0.0012)
        'Judges faster than the other assessors, given grades and places of the documents: -3.40 robust standard \
deviations from the median of the others (adjusted p = 0.0012).'
        >>> FAST_TOPICS.sentence(0.75, 1e-9, 3).partition(": ")[2]
        '75 % of the topics judged fast, 3 in all (adjusted p below 0.0001).'
        """
        value = f"{effect:.0%}".replace("%", " %") if self.is_share else f"{effect:.2f}"
        p = f"= {p_adjusted:.2g}" if p_adjusted >= 1e-4 else "below 0.0001"
        topics = f", {n_topics} in all" if n_topics and "topics" in self.effect else ""
        return f"{self.help.removesuffix('.')}: {value} {self.effect}{topics} (adjusted p {p})."


SPEED = FlagKind(
    "speed",
    "Speed",
    "Judges faster than the other assessors, given grades and places of the documents.",
    "robust standard deviations from the median of the others",
    LOOK_AT_TIMES,
    picture="seconds",
)
FAST_TOPICS = FlagKind(
    "fast-topics",
    "Fast topics",
    "Judges nearly every document of many topics faster than usual.",
    "of the topics judged fast",
    LOOK_AT_TIMES,
    is_share=True,
    picture="fast",
)
GIVING_UP = FlagKind(
    "giving-up",
    "Giving up",
    "Begins to rush at some point of a topic.",
    "as the largest cumulative deviation",
    "Look at the last documents of the topics named here. If they were no longer read, have the judgments made again; "
    "shorter sessions or a quota help.",
    picture="seconds",
)
SERIAL = FlagKind(
    "serial",
    "Pattern of labels",
    "Repeats or alternates labels more than chance allows.",
    "changes of label per expected change",
    picture="labels",
)
ALL_ALIKE = FlagKind(
    "all-alike",
    "Topics without a relevant document",
    "Finds nothing relevant in more topics than the other assessors.",
    "of the topics without a relevant label",
    "Some topics have no relevant document; so many of one assessor are unlikely. Read some documents that many runs "
    "return, and have the judgments made again if they are relevant.",
    is_share=True,
    picture="labels",
)
DRIFT = FlagKind(
    "drift",
    "Drift",
    "The share of relevant labels changes along a topic as it does for nobody else.",
    "robust standard deviations from the trend of the others",
    "A standard that shifts while judging is human. Ask for another look at the first documents of a topic; send a "
    "message with the guidelines.",
    picture="labels",
)
RATE = FlagKind(
    "rate",
    "Share of relevant labels",
    "Calls more or fewer documents relevant than the other assessors.",
    "of the labels relevant",
    NEEDS_GOLD,
    is_share=True,
    picture="labels",
)
NO_RELATION = FlagKind(
    "no-relation",
    "No relation to the prior",
    "Labels go with the ranks of the runs less than those of the other assessors.",
    "as the AUC of the labels against the prior (.5 is chance)",
    "Labels of somebody who guesses have no relation to what the runs return. Read some of them; if they are guesses, "
    "pause the assessor and have all of the judgments made again.",
    picture="auc",
)
FALSE_ALARMS = FlagKind(
    "false-alarms",
    "False alarms",
    "Calls documents relevant that are known not to be, more often than the other assessors.",
    "of the documents known not to be relevant",
    is_share=True,
    picture="auc",
)
MISSES = FlagKind(
    "misses",
    "Misses",
    "Overlooks documents known to be relevant more often than the other assessors.",
    "of the documents known to be relevant",
    is_share=True,
    picture="auc",
)
# On known answers alone, with the exact grade; only the second needs other assessors to compare with.
ACCURACY = FlagKind(
    "accuracy",
    "Accuracy below one half",
    "Is more often wrong than right on known answers.",
    "of the known answers exactly right",
    is_share=True,
)
LESS_ACCURATE = FlagKind(
    "less-accurate",
    "Less accurate than the others",
    "Gives the exact grade of known answers less often than the other assessors do at the same grades.",
    "of the known answers exactly right",
    "Somebody who guesses can be right half of the time where most documents are not relevant. Read some of these "
    "documents; if the grades are guesses, pause the assessor and have the judgments made again.",
    is_share=True,
)
CHANGE = FlagKind(
    "change",
    "Change with time",
    "Answers gold checks differently as time passes.",
    "",
    "Look at the newest judgments first. A message with the guidelines often helps; have the later judgments made "
    "again if they are wrong.",
)
# On two figures alone, which need one peer or none; rules, not tests: they have no p.
PACE = FlagKind(
    "pace",
    "Pace",
    "Answers more than half of the long documents before anybody could read them.",
    "of the first answers within a second",
    "Nobody reads 200 characters within a second. Read some of these documents; have the judgments made again, and "
    "pause the assessor if it goes on.",
    is_share=True,
    picture="seconds",
)
CHANCE = FlagKind(
    "chance",
    "No better than chance",
    "Agrees with the others on shared documents hardly more often than chance would.",
    "as kappa",
    "Read some of the documents on which they differ. If there is one peer alone, either of the two may be at fault: "
    "gold checks, an audit or a third assessor tell who.",
    picture="labels",
)
FLAG_KINDS = (
    SPEED,
    FAST_TOPICS,
    GIVING_UP,
    SERIAL,
    ALL_ALIKE,
    DRIFT,
    RATE,
    NO_RELATION,
    FALSE_ALARMS,
    MISSES,
    ACCURACY,
    LESS_ACCURATE,
    CHANGE,
    PACE,
    CHANCE,
)


def flag_choices() -> list[tuple[str, str]]:
    """Return key and name of every kind."""
    return [(kind.key, kind.label) for kind in FLAG_KINDS]


def flag_kind(key: str) -> FlagKind:
    """Return the kind of this key.

    Raises
    ------
    KeyError
        If there is none.
    """
    return {kind.key: kind for kind in FLAG_KINDS}[key]
