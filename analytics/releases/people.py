"""Who made a release: names as they are cited, each with an ORCID iD where one is given."""

import re
from dataclasses import dataclass

ORCID = re.compile(r"(?:https?://orcid\.org/)?(\d{4}-\d{4}-\d{4}-\d{3}[\dXx])")
AROUND = " \t,;()<>[]"


@dataclass(frozen=True)
class Author:
    """Somebody who is cited."""

    name: str
    orcid: str = ""

    @property
    def parts(self) -> tuple[str, str]:
        """Return the family name and the given names: as a comma parts them, else the last word and those before it.

        >>> Author("Carl-Erik Särndal").parts, Author("van Rijsbergen, C. J.").parts, Author("Plato").parts
        (('Särndal', 'Carl-Erik'), ('van Rijsbergen', 'C. J.'), ('Plato', ''))
        """
        if "," in self.name:
            family, given = self.name.split(",", 1)
        else:
            given, _, family = self.name.rpartition(" ")
        return family.strip(), given.strip()


def author_of(line: str) -> Author:
    """Return who a line names; ValueError where it has an ORCID iD that is none, or no name.

    >>> author_of("Josiah Carberry, https://orcid.org/0000-0002-1825-0097")
    Author(name='Josiah Carberry', orcid='0000-0002-1825-0097')
    >>> author_of("Ada B.")
    Author(name='Ada B.', orcid='')
    """
    found = ORCID.search(line)
    if found is None:
        return Author(" ".join(line.split()))
    orcid = found[1].upper()
    if not is_orcid(orcid):
        raise ValueError(f"{orcid} is no ORCID iD: its last digit does not fit the others")
    name = " ".join((line[: found.start()] + line[found.end() :]).split()).strip(AROUND)
    if not name:
        raise ValueError(f"{orcid} stands without a name")
    return Author(name, orcid)


def is_orcid(text: str) -> bool:
    """Return whether the last digit is the check digit of the others (ISO 7064, MOD 11-2).

    >>> is_orcid("0000-0002-1825-0097"), is_orcid("0000-0002-1825-0098"), is_orcid("0000-0002-1694-233X")
    (True, False, True)
    """
    digits = text.replace("-", "")
    total = 0
    for digit in digits[:-1]:
        total = (total + int(digit)) * 2
    check = (12 - total % 11) % 11
    return digits[-1] == ("X" if check == 10 else str(check))
