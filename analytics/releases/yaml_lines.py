"""YAML as a release holds it: mappings, lists and texts, in a form that every reader takes the same way.

Texts stand in double quotes, so that none is read as a number, a date, a truth value or a mark of YAML.
"""

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

Value = str | bool | Mapping[str, "Value"] | Sequence["Value"]
LARGEST = 0xFFFF  # that \u names


def yaml_lines(value: Value, indent: str = "") -> Iterator[str]:
    """Yield the lines of a mapping or a list.

    >>> print("\\n".join(yaml_lines({"title": "No: 1", "is_new": True, "authors": [{"name": "Ada"}], "tags": ["x"]})))
    title: "No: 1"
    is_new: true
    authors:
      - name: "Ada"
    tags:
      - "x"
    """
    if isinstance(value, str | bool):
        yield indent + _scalar(value)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            if isinstance(one, str | bool):
                yield f"{indent}{key}: {_scalar(one)}"
            else:
                yield f"{indent}{key}:"
                yield from yaml_lines(one, f"{indent}  ")
    else:
        for one in value:
            first, *others = yaml_lines(one, f"{indent}  ")
            yield f"{indent}- {first.lstrip()}"
            yield from others


def _scalar(value: str | bool) -> str:
    return quote(value) if isinstance(value, str) else str(value).lower()


def quote(text: str) -> str:
    """Return a text in double quotes; what YAML does not allow as it is, by its number.

    >>> print(quote('a "b"\\n\\u2028'))
    "a \\"b\\"\\n\\u2028"
    """
    return "".join(map(_escape, json.dumps(text, ensure_ascii=False)))


def _escape(character: str) -> str:
    if unicodedata.category(character) in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"):
        number = ord(character)
        return f"\\u{number:04x}" if number <= LARGEST else f"\\U{number:08x}"
    return character
