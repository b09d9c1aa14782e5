"""Why a request is refused: the base that services derive their refusals from, and frames, which stand below them.

Pure functions know nothing of requests: they raise ValueError.
"""


class Refused(Exception):
    """Base of all refusals; `status` is the HTTP status, the class name the machine-readable type."""

    status = 400
    title = "The request cannot be carried out"
