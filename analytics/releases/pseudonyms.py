"""Names of assessors in a release: keyed, so that two releases have no name in common, and none can be made again
without its key. Whoever has the log finds each by what was judged: see `touchstone.people.erasing_judges`."""

import hmac
import secrets

LENGTH = 12  # hexadecimal digits: two of a thousand assessors share a name once in 500 million releases


def new_key() -> str:
    """Return a random key for the pseudonyms of one release."""
    return secrets.token_hex(32)


def pseudonym(key: str, assessor: int) -> str:
    """Return the name of an assessor under a key; without the key none can be made again.

    >>> pseudonym("00" * 32, 1) == pseudonym("00" * 32, 1), pseudonym("00" * 32, 1) == pseudonym("01" * 32, 1)
    (True, False)
    """
    secret = bytes.fromhex(key)
    if len(secret) < 16:
        raise ValueError("a key of pseudonyms has at least 16 bytes; without it there are none")
    return hmac.digest(secret, str(assessor).encode(), "sha256").hex()[:LENGTH]
