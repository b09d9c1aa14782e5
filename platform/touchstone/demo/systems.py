"""Real retrieval systems, small enough to run on the spot: the runs of the demonstration."""

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

import bm25s
import numpy as np
from numpy.typing import NDArray

logging.getLogger("bm25s").setLevel(
    logging.WARNING
)  # it announces every index at DEBUG, whatever the root logger says

Ranking = list[tuple[str, str, int, float]]  # (topic_id, doc_id, rank from 1, score)
Scores = NDArray[np.float64]
Scorer = Callable[[str], Scores]  # query -> score of every document; 0 where nothing of the query occurs

# Words, acronyms and numbers: "HTTPServer" is read as "HTTP Server", "read_text" as "read text".
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
STOP_WORDS = frozenset(
    """
    a an and are as at be been by can do does for from has have how if in into is it its not of on or such
    that the their then there these they this to was what when where which will with without you your
    """.split()  # noqa: SIM905 - fifty words in two lines, not in fifty
)
TITLE_REPEATS = 3  # a word of the title counts as much as three of the docstring
DIRICHLET_MU = 80.0  # near the mean length of a document here; the usual 1,000-2,500 suits news articles
FUSION_OFFSET = 60  # Cormack, Clarke and Buettcher (2009)


def rankings(
    documents: Sequence[Mapping[str, str]],
    topics: Sequence[Mapping[str, str]],
    depth: int = 100,
) -> dict[str, Ranking]:
    """Return the rankings of eight retrieval systems by run tag.

    Parameters
    ----------
    documents
        `doc_id`, `title` and `text` of each document.
    topics
        `topic_id`, `title` and `description` of each topic. All but one system search for the title alone.
    depth
        Documents a topic at most; fewer where fewer documents contain a word of the query.

    Returns
    -------
    dict
        Run tag to `(topic_id, doc_id, rank, score)`. Scores never rise with the rank; ties are in the order
        of `doc_id`.

    Raises
    ------
    ValueError
        If there is no document, or depth < 1.

    Examples
    --------
    >>> documents = [{"doc_id": "a.sort", "title": "a.sort()", "text": "Sort the list."},
    ...              {"doc_id": "a.copy", "title": "a.copy()", "text": "Copy the list."}]
    >>> topics = [{"topic_id": "1", "title": "sorting", "description": "Sort a list."}]
    >>> [(topic_id, doc_id, rank) for topic_id, doc_id, rank, _ in rankings(documents, topics)["bm25"]]
    [('1', 'a.sort', 1)]
    """
    runs = _runs(documents, topics, _systems, depth)
    runs["fusion"] = _fusion([runs[tag] for tag in ("bm25-title", "dirichlet", "bm25-description")], depth)
    return runs


def late_rankings(
    documents: Sequence[Mapping[str, str]],
    topics: Sequence[Mapping[str, str]],
    depth: int = 100,
) -> dict[str, Ranking]:
    """Return the rankings of two more systems, as `rankings` does: they come when others' runs are pooled and judged.

    One returns little that the others do not, one returns much.
    """
    return _runs(documents, topics, _late_systems, depth)


Systems = dict[
    str, tuple[Scorer, tuple[str, ...]]
]  # by run tag what scores, and the fields of the topic it is given


def _runs(
    documents: Sequence[Mapping[str, str]],
    topics: Sequence[Mapping[str, str]],
    systems: Callable[[Sequence[Mapping[str, str]]], Systems],
    depth: int,
) -> dict[str, Ranking]:
    if not documents:
        raise ValueError("documents must not be empty, got 0")
    if depth < 1:
        raise ValueError(f"depth must be >= 1, got {depth}")
    # Sorted once, so that a stable sort by score leaves ties in the order of doc_id.
    ordered = sorted(documents, key=lambda document: document["doc_id"])
    doc_ids = [document["doc_id"] for document in ordered]
    runs: dict[str, Ranking] = {}
    for tag, (scorer, fields) in systems(ordered).items():
        runs[tag] = []
        for topic in topics:
            query = " ".join(topic[field] for field in fields)
            runs[tag] += _ranking(topic["topic_id"], doc_ids, scorer(query), depth)
    return runs


def _late_systems(documents: Sequence[Mapping[str, str]]) -> Systems:
    both = [terms(document["title"]) + terms(document["text"]) for document in documents]
    return {
        "late-bm25": (_bm25(both, "lucene", k1=0.3, b=0.4), ("title",)),
        "late-tf-idf": (_tf_idf(both), ("description",)),
    }


def _systems(documents: Sequence[Mapping[str, str]]) -> Systems:
    titles = [terms(document["title"]) for document in documents]
    texts = [terms(document["text"]) for document in documents]
    both = [title + text for title, text in zip(titles, texts, strict=True)]
    weighted = [title * TITLE_REPEATS + text for title, text in zip(titles, texts, strict=True)]
    plain = [_words(document["title"] + " " + document["text"]) for document in documents]
    return {
        "bm25": (_bm25(both, "lucene", k1=1.2, b=0.75), ("title",)),
        "bm25-title": (_bm25(weighted, "bm25+", k1=1.5, b=0.6), ("title",)),
        "names-only": (_bm25(titles, "lucene", k1=1.2, b=0.75), ("title",)),
        "bm25-description": (_bm25(both, "bm25l", k1=0.9, b=0.4), ("title", "description")),
        "tf-idf": (_tf_idf(both), ("title",)),
        "dirichlet": (_dirichlet(both), ("title",)),
        "overlap": (_overlap(plain), ("title",)),
    }


def terms(text: str) -> list[str]:
    """Return the index terms of a text: words without stop words, in lower case, without endings.

    Examples
    --------
    >>> terms("json.loads: the HTTPServer parses entries")
    ['json', 'load', 'http', 'server', 'pars', 'entry']
    """
    return [_stem(word) for word in _words(text) if word not in STOP_WORDS]


def _words(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text)]


def _stem(word: str) -> str:
    """Return a word without plural (the "S" stemmer of Harman, 1991) and without a final -ing, -ed or -e."""
    if len(word) > 4 and word.endswith("ies") and word[-4] not in "ae":
        word = word[:-3] + "y"
    elif len(word) > 3 and word.endswith("s") and word[-2] not in "us":
        word = word[:-1]
    for ending in ("ing", "ed", "e"):
        if len(word) >= len(ending) + 4 and word.endswith(ending):
            word = word[: -len(ending)]
            # "stopping" and "stopped" become "stop"; "calling" stays "call", as "call" does
            return word[:-1] if word[-1] == word[-2] and word[-1] not in "lsz" else word
    return word


def _ranking(topic_id: str, doc_ids: Sequence[str], scores: Scores, depth: int) -> Ranking:
    best = np.argsort(-scores, kind="stable")[:depth]
    return [
        (topic_id, doc_ids[index], rank, float(scores[index]))
        for rank, index in enumerate(best, start=1)
        if scores[index] > 0
    ]


def _fusion(runs: Sequence[Ranking], depth: int) -> Ranking:
    """Return the reciprocal rank fusion of several runs: the sum of 1 / (60 + rank)."""
    by_topic: dict[str, defaultdict[str, float]] = {}
    for run in runs:
        for topic_id, doc_id, rank, _ in run:
            by_topic.setdefault(topic_id, defaultdict(float))[doc_id] += 1 / (FUSION_OFFSET + rank)
    fused: Ranking = []
    for topic_id, scores in by_topic.items():
        doc_ids = sorted(scores)
        fused += _ranking(topic_id, doc_ids, np.array([scores[doc_id] for doc_id in doc_ids]), depth)
    return fused


def _bm25(texts: list[list[str]], method: str, *, k1: float, b: float) -> Scorer:
    """Return a scorer by one of the BM25 variants of the `bm25s` package."""
    index = bm25s.BM25(method=method, k1=k1, b=b)
    index.index(texts, show_progress=False)
    postings = _postings(texts)

    def scores(query: str) -> Scores:
        words = [word for word in terms(query) if word in postings]
        result = np.zeros(len(texts))
        if words:
            found = np.unique(np.concatenate([postings[word][0] for word in words]))
            # BM25+ and BM25L give every document something, also those without a word of the query.
            result[found] = np.asarray(index.get_scores(words), dtype=np.float64)[found]
        return result

    return scores


def _tf_idf(texts: list[list[str]]) -> Scorer:
    """Return a scorer by the cosine of (1 + ln tf) idf vectors (Salton and Buckley, 1988, weights "ltc")."""
    postings = _postings(texts)
    idf = {word: float(np.log(len(texts) / len(found))) for word, (found, _) in postings.items()}
    squares = np.zeros(len(texts))
    for word, (found, counts) in postings.items():
        squares[found] += ((1 + np.log(counts)) * idf[word]) ** 2
    lengths = np.sqrt(np.maximum(squares, np.finfo(float).tiny))

    def scores(query: str) -> Scores:
        result = np.zeros(len(texts))
        for word, count in Counter(terms(query)).items():
            if word in postings:
                found, counts = postings[word]
                result[found] += (1 + np.log(count)) * idf[word] ** 2 * (1 + np.log(counts))
        return result / lengths  # the query's own length is the same for all documents

    return scores


def _dirichlet(texts: list[list[str]], mu: float = DIRICHLET_MU) -> Scorer:
    """Return a scorer by query likelihood with Dirichlet smoothing (Zhai and Lafferty, 2001, equation 6).

    Of `sum ln p(word | document)` the part that is the same for all documents is left out, and a constant is
    added so that the scores of documents with a word of the query are positive.
    """
    postings = _postings(texts)
    sizes = np.array([len(text) for text in texts], dtype=np.float64)
    shares = {word: float(counts.sum() / sizes.sum()) for word, (_, counts) in postings.items()}

    def scores(query: str) -> Scores:
        words = [word for word in terms(query) if word in postings]
        matches = np.zeros(len(texts), dtype=bool)
        result = len(words) * np.log(mu / (sizes + mu))
        for word in words:
            found, counts = postings[word]
            matches[found] = True
            result[found] += np.log1p(counts / (mu * shares[word]))
        return np.where(matches, result - result.min() + 1, 0.0)

    return scores


def _overlap(texts: list[list[str]]) -> Scorer:
    """Return a deliberately weak scorer: how often the query's words occur, which long documents win."""
    postings = _postings(texts)

    def scores(query: str) -> Scores:
        result = np.zeros(len(texts))
        for word in set(_words(query)) & postings.keys():
            found, counts = postings[word]
            result[found] += counts
        return result

    return scores


def _postings(texts: list[list[str]]) -> dict[str, tuple[NDArray[np.intp], Scores]]:
    """Return by word the documents that contain it, in order, and how often."""
    found: dict[str, list[tuple[int, int]]] = {}
    for index, text in enumerate(texts):
        for word, count in Counter(text).items():
            found.setdefault(word, []).append((index, count))
    return {
        word: (
            np.array([i for i, _ in pairs], dtype=np.intp),
            np.array([c for _, c in pairs], dtype=np.float64),
        )
        for word, pairs in found.items()
    }
