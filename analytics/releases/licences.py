"""Licences that machines know by a name: in SPDX, and on the Hugging Face Hub. Any other stays in its own words."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Licence:
    """A licence as SPDX and as the Hub spell it."""

    spdx: str
    hub: str


LICENCES = (
    Licence("CC0-1.0", "cc0-1.0"),
    Licence("CC-BY-4.0", "cc-by-4.0"),
    Licence("CC-BY-SA-4.0", "cc-by-sa-4.0"),
    Licence("CC-BY-NC-4.0", "cc-by-nc-4.0"),
    Licence("CC-BY-NC-SA-4.0", "cc-by-nc-sa-4.0"),
    Licence("CC-BY-ND-4.0", "cc-by-nd-4.0"),
    Licence("CC-BY-NC-ND-4.0", "cc-by-nc-nd-4.0"),
    Licence("CC-BY-3.0", "cc-by-3.0"),
    Licence("CC-BY-SA-3.0", "cc-by-sa-3.0"),
    Licence("ODbL-1.0", "odbl"),
    Licence("ODC-By-1.0", "odc-by"),
    Licence("PDDL-1.0", "pddl"),
    Licence("MIT", "mit"),
    Licence("Apache-2.0", "apache-2.0"),
    Licence("BSD-3-Clause", "bsd-3-clause"),
)


def licence_named(words: str) -> Licence | None:
    """Return the licence that somebody means, whatever its spaces and capitals; None where it is none of these.

    >>> licence_named("CC BY 4.0").spdx, licence_named("cc0"), licence_named("ask us")
    ('CC-BY-4.0', Licence(spdx='CC0-1.0', hub='cc0-1.0'), None)
    """
    plain = re.sub(r"[\s_-]+", "-", words.strip().lower()).rstrip(".")
    plain = {"cc0": "cc0-1.0"}.get(plain, plain)
    known = {one.spdx.lower(): one for one in LICENCES} | {one.hub: one for one in LICENCES}
    return known.get(plain)
