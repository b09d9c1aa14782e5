"""A draw of whole topics as the methods of estimation take it."""

import numpy as np

from analytics.estimation.audited_topics import TopicAudit
from analytics.estimation.estimate import Refusal
from analytics.estimation.topic_samples import SampledTopics
from analytics.estimation.whole_topics import TakenTopics
from analytics.numbers.arrays import Arrays
from sampling.selections import NOT_BY_DOCUMENT
from sampling.topic_runs import TopicRuns


def sampled_topics(arrays: Arrays) -> SampledTopics | None:
    """Return the topics of the frame, which of them were taken and how they may be predicted; None of other draws.

    While a taken topic waits for judgments nothing is said: which topics are done first is not random.
    """
    if not arrays.has_whole_topics:
        return None
    frame = arrays.frame
    present, first, topic = np.unique(arrays.topic_index, return_index=True, return_inverse=True)
    drawn = frame["drawn_in"].to_numpy() > 0
    n_drawn = np.bincount(topic[drawn], minlength=present.size)
    n_needed = np.bincount(topic[frame["inclusion_probability"].to_numpy() > 0], minlength=present.size)
    n_judged = np.bincount(topic[arrays.judged], minlength=present.size)
    return SampledTopics(
        present=present,
        topics=TakenTopics(
            frame["topic_share"].to_numpy()[first],
            frame["topic_probability"].to_numpy()[first],
            (n_drawn > 0) | (n_needed == 0),
        ),
        fold=frame["fold"].to_numpy()[first].astype(np.int64),
        runs=TopicRuns.of(arrays.returned, topic, present.size),
        prior=frame["prior"].to_numpy(),
        incomplete=_incomplete(n_drawn, n_judged),
        audit=_audit(arrays, topic[arrays.judged], n_drawn, n_needed),
    )


def _incomplete(n_drawn: np.ndarray, n_judged: np.ndarray) -> Refusal | None:
    missing = int(np.count_nonzero(n_judged < n_drawn))
    if not missing:
        return None
    n_taken, n_items = int(np.count_nonzero(n_drawn)), int((n_drawn - n_judged).sum())
    return Refusal(f"{missing} of the {n_taken} drawn topics are not judged completely", n_items)


def _audit(
    arrays: Arrays, topic: np.ndarray, n_drawn: np.ndarray, n_needed: np.ndarray
) -> TopicAudit | Refusal:
    """Return the topics of which all that was drawn has gold, or why none is corrected; `topic` is [judged].

    Audits that wait for gold grades are not in the arrays, so a topic has gold of all its documents or counts as not
    audited. Documents drawn after an audit had no chance of it: nothing is corrected until one more audit is complete.
    """
    certain = n_needed == 0  # nothing to judge: every value is 0
    if arrays.is_by_gold_judges:
        return TopicAudit(np.ones(n_drawn.size), (n_drawn > 0) | certain)
    if arrays.audit_assumption:
        return Refusal(NOT_BY_DOCUMENT)
    if not (arrays.audit_probability > 0).any():
        return Refusal(arrays.no_audit())
    chance = np.ones(n_drawn.size)
    np.minimum.at(chance, topic, arrays.audit_probability)
    n_new, n_taken = int(np.count_nonzero((chance == 0) & (n_drawn > 0))), int(np.count_nonzero(n_drawn))
    if n_new:
        return Refusal(
            f"{n_new} of the {n_taken} drawn topics have documents that were drawn after the newest complete audit: "
            "audit once more"
        )
    n_gold = np.bincount(topic[arrays.audited], minlength=n_drawn.size)
    audited = certain | ((n_gold == n_drawn) & (n_drawn > 0))
    return TopicAudit(chance, audited, np.where(arrays.audited, arrays.audit_grade, -1))
