"""The product's settings, with the language of brackets (tests/bracketed.py) and, of each other, nothing changed."""

import os
from pathlib import Path

from touchstone.settings import *  # noqa: F403
from touchstone.settings import LANGUAGES as _LANGUAGES
from touchstone.settings import LOCALE_PATHS as _LOCALE_PATHS

LANGUAGES = [*_LANGUAGES, ("he", "00")]
LOCALE_PATHS = [Path(os.environ["BRACKETS"]), *_LOCALE_PATHS]
