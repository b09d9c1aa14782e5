"""Lines of columns parted by blanks: runs, qrels and the like, told by where their numbers stand."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from judging.recognised import KnownIds
from judging.trec import BEIR_HEADER, DECIMAL, INTEGER, TOKEN

SURE_RANKS = 5  # up to which numbers count up: grades do not
MOST = 0.8  # of the lines have the form; the others are its faults


@dataclass(frozen=True)
class LineKind:
    """What lines hold, as `Recognition` has it."""

    kind: str
    file_format: str
    is_sure: bool
    why: str
    rivals: tuple[str, ...] = ()


def lines_kind(lines: Sequence[str], known: KnownIds) -> LineKind | None:
    """Return what lines of columns hold; None if they have no columns with numbers in their places."""
    rows = [TOKEN.findall(line) for line in lines]
    if rows and rows[0] == BEIR_HEADER and len(rows) > 1:
        return LineKind("judgments", "beir", True, "Judgments: it has the header of BEIR's qrels.")
    if _has_cells(lines):
        return None
    width, n = Counter(map(len, rows)).most_common(1)[0]
    if n < MOST * len(rows) or width not in FORMS:
        return None
    columns = list(zip(*(row for row in rows if len(row) == width), strict=True))
    return FORMS[width](columns, known)


def _has_cells(lines: Sequence[str]) -> bool:
    """Return whether tabs part the lines into cells with blanks in them: a table of texts."""
    widths = {line.count("\t") for line in lines}
    return len(widths) == 1 and widths != {0} and any(" " in line.strip() for line in lines)


Columns = list[tuple[str, ...]]


def _are_whole(column: Sequence[str]) -> bool:
    return sum(bool(INTEGER.fullmatch(one)) for one in column) >= MOST * len(column)


def _are_numbers(column: Sequence[str]) -> bool:
    return sum(bool(DECIMAL.fullmatch(one)) for one in column) >= MOST * len(column)


def _are_chances(column: Sequence[str]) -> bool:
    values = [float(one) for one in column if DECIMAL.fullmatch(one)]
    return len(values) >= MOST * len(column) and all(0 <= one <= 1 for one in values)


def _stand_swapped(topics: Sequence[str], documents: Sequence[str], known: KnownIds) -> bool:
    """Return whether the ids that are known stand in each other's place."""
    topic_shares, document_shares = known.shares(topics), known.shares(documents)
    return (topic_shares[1] > topic_shares[0]) and (document_shares[0] >= document_shares[1])


SWAPPED = "Lines of topic and document, but their ids are known the other way round."


def _six(columns: Columns, known: KnownIds) -> LineKind | None:
    if not (_are_numbers(columns[3]) and _are_numbers(columns[4])):
        return None
    if _stand_swapped(columns[0], columns[2], known):
        return LineKind("runs", "", False, SWAPPED)
    if len(set(columns[5])) > 1:
        return LineKind("runs", "run", False, "A run? It has the columns of one, but several tags.")
    return LineKind("runs", "run", True, "A run: lines of topic Q0 document rank score tag.")


def _five(columns: Columns, known: KnownIds) -> LineKind | None:
    fits = {
        "prels": _are_whole(columns[2]) and _are_whole(columns[3]) and _are_chances(columns[4]),
        "stratified": _are_whole(columns[1]) and _are_whole(columns[3]) and _are_whole(columns[4]),
    }
    keys = [key for key, is_so in fits.items() if is_so]
    if len(keys) == 1 and not (keys == ["prels"] and _are_whole(columns[4])):
        words = {
            "prels": "topic document grade method probability",
            "stratified": "topic 0 document stratum grade",
        }
        return LineKind("judgments", keys[0], True, f"A sample: lines of {words[keys[0]]}.")
    if keys:
        why = "A sample? Its numbers fit prels (topic document grade method probability) and qrels in strata."
        return LineKind("judgments", keys[0], False, why, ("prels", "stratified"))
    if any(map(_are_numbers, columns[2:])):
        return LineKind(
            "", "", False, "Like a run, but with 5 columns: topic Q0 document rank score tag are 6."
        )
    return None


def _four(columns: Columns, known: KnownIds) -> LineKind | None:
    if not _are_whole(columns[3]):
        if _are_numbers(columns[3]):
            return LineKind("", "", False, "Like qrels, but the last column is no whole number.")
        return None
    if _stand_swapped(columns[0], columns[2], known):
        return LineKind("judgments", "qrels", False, SWAPPED)
    second = set(columns[1])
    if second <= {"0", "Q0", "q0", "1", "-"}:
        return LineKind("judgments", "qrels", True, "Judgments: lines of topic 0 document grade.")
    if not any(INTEGER.fullmatch(one) for one in second) and len(second) > 1:
        return LineKind("judgments", "qrels_jg", True, "Judgments: lines of topic assessor document grade.")
    why = "Judgments: is the second column who judged, or a number that means nothing?"
    return LineKind("judgments", "qrels", False, why, ("qrels_jg",))


def _three(columns: Columns, known: KnownIds) -> LineKind | None:
    if not _are_numbers(columns[2]):
        return None
    if _stand_swapped(columns[0], columns[1], known):
        return LineKind("", "", False, SWAPPED)
    if not _are_whole(columns[2]):
        if _are_chances(columns[2]):
            return LineKind("scores", "", True, "Scores: lines of topic document score, within [0, 1].")
        return LineKind(
            "", "", False, "Lines of three columns, the last a number that is neither a grade nor a score."
        )
    longest = _highest_rank(columns[0], columns[2])
    if longest >= SURE_RANKS:
        return LineKind(
            "runs", "msmarco", True, "A run: lines of topic document rank, the ranks counting up."
        )
    of_topics, of_documents = known.shares(columns[0])[0], known.shares(columns[1])[1]
    is_known = bool(of_topics and of_documents)
    is_graded = any(one not in ("0", "1") for one in columns[2])
    why = "Judgments: lines of topic document grade."
    is_sure = is_known and is_graded and longest < 2  # grades may count up by chance
    if not is_sure:
        why = "Judgments (topic document grade), a run (with ranks), scores, or topics with weights? They all fit."
    return LineKind("judgments", "cranfield", is_sure, why, () if is_sure else ("msmarco",))


def _highest_rank(topics: Sequence[str], numbers: Sequence[str]) -> int:
    """Return up to which rank numbers count up from 0 or 1 in every topic; 0 if they do not."""
    last: dict[str, int] = {}
    for topic, number in zip(topics, numbers, strict=True):
        if not INTEGER.fullmatch(number):
            return 0
        before = last.get(topic)
        if int(number) not in ((0, 1) if before is None else (before + 1,)):
            return 0
        last[topic] = int(number)
    return max(last.values(), default=0)


FORMS = {3: _three, 4: _four, 5: _five, 6: _six}
