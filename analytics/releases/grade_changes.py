"""What changed from one release's grades to the next's."""

from collections.abc import Iterable, Iterator


def grade_changes(before: Iterable[bytes], after: Iterable[bytes]) -> dict[str, int]:
    """Return how many grades of two qrels files, by lines in the order of topic and document, came, went and changed.

    >>> grade_changes([b"1 0 a 0", b"1 0 b 1"], [b"1 0 b 2", b"2 0 a 1"])
    {'added': 1, 'changed': 1, 'removed': 1, 'same': 0}
    """
    numbers = {"added": 0, "changed": 0, "removed": 0, "same": 0}
    old, new = _rows(before), _rows(after)
    left, right = next(old, None), next(new, None)
    while left is not None or right is not None:
        if right is None or (left is not None and left[0] < right[0]):
            numbers["removed"] += 1
            left = next(old, None)
        elif left is None or right[0] < left[0]:
            numbers["added"] += 1
            right = next(new, None)
        else:
            numbers["same" if left[1] == right[1] else "changed"] += 1
            left, right = next(old, None), next(new, None)
    return numbers


def _rows(lines: Iterable[bytes]) -> Iterator[tuple[tuple[bytes, bytes], bytes]]:
    """Yield pair and grade of each line. ValueError where the order is not that of the bytes."""
    last: tuple[bytes, bytes] | None = None
    for line in lines:
        topic, _, document, grade = line.split(b" ")
        if last is not None and (topic, document) <= last:
            raise ValueError(f"qrels must be in the order of topic and document, not {line!r} after {last!r}")
        last = (topic, document)
        yield last, grade
