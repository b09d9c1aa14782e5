"""A sign in regular expressions that Python 3.10 does not have."""

import sys

# After a quantifier: what it took is never tried again. Write it only where nothing behind it can fail: there it finds
# the same without, and only remembers more.
POSSESSIVE = "+" if sys.version_info >= (3, 11) else ""
