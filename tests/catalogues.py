"""The messages that the product's sources mark for translation, and small readers and writers of gettext's files.

GNU gettext makes the files (docs/languages.md); these few lines let the tests, `make demo` and CI do without it.
"""

import ast
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from django.template import engines
from django.template.base import Template
from django.templatetags.i18n import BlockTranslateNode, TranslateNode

ROOT = Path(__file__).parents[1]
PRODUCT = [ROOT / name for name in ("platform", "judging", "sampling", "analytics")]
LOCALE = ROOT / "platform/touchstone/locale"
GETTEXT = {"gettext", "gettext_lazy", "gettext_noop", "_", "ngettext", "ngettext_lazy"}


class Message(NamedTuple):
    """What a catalogue translates: the English sentence, its plural if it has one, and a context if it needs one."""

    context: str
    singular: str
    plural: str


@dataclass
class Entry:
    """A message with what a catalogue makes of it: one string, or one for each plural form."""

    message: Message
    strings: list[str]
    flags: set[str] = field(default_factory=set)


def messages_of_product() -> dict[Message, str]:
    """Return every marked message, and a file where it stands."""
    places: dict[Message, str] = {}
    for folder in PRODUCT:
        for path in sorted([*folder.rglob("*.html"), *folder.rglob("*.py")]):
            read = messages_of_template if path.suffix == ".html" else messages_of_python
            for message in read(path.read_text()):
                places.setdefault(message, str(path.relative_to(ROOT)))
    return places


def messages_of_python(source: str) -> Iterator[Message]:
    """Find calls of gettext's functions by name; their arguments are literals, which xgettext asks for, too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in GETTEXT:
            texts = [str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)]
            yield Message("", texts[0], texts[1] if node.func.id.startswith("n") else "")


def messages_of_template(source: str) -> Iterator[Message]:
    if "{% load" not in source:  # then there is no such tag in it
        return
    compiled: Any = engines["django"].from_string(source)
    template: Template = compiled.template
    for node in template.nodelist.get_nodes_by_type((TranslateNode, BlockTranslateNode)):  # type: ignore[arg-type]  # as isinstance
        yield from _messages_of_node(node)


def _messages_of_node(node: Any) -> Iterator[Message]:
    context = node.message_context.resolve({}) if node.message_context else ""
    if isinstance(node, TranslateNode):
        text = node.filter_expression.var.literal
        if text is not None:  # else a variable, whose values are marked where they are made
            yield Message(context, text.replace("%", "%%"), "")
        return
    singular, _ = node.render_token_list(node.singular)
    plural = node.render_token_list(node.plural)[0] if node.plural else ""
    yield Message(context, singular, plural)


def read_po(path: Path) -> tuple[dict[str, str], list[Entry]]:
    """Return the header's fields and the entries of a catalogue."""
    entries = [entry for block in path.read_text().split("\n\n") if (entry := _entry(block))]
    header = next(entry for entry in entries if entry.message.singular == "")
    fields = dict(line.split(": ", 1) for line in header.strings[0].splitlines())
    return fields, [entry for entry in entries if entry is not header]


def _entry(block: str) -> Entry | None:
    fields: dict[str, str] = {}
    flags: set[str] = set()
    name = ""
    for line in block.splitlines():
        if line.startswith("#,"):
            flags.update(flag.strip() for flag in line[2:].split(","))
        elif match := re.fullmatch(r'(?:(msg\w+(?:\[\d\])?) )?(".*")', line):
            name = match[1] or name
            fields[name] = fields.get(name, "") + ast.literal_eval(match[2])
    if "msgid" not in fields:
        return None
    message = Message(fields.get("msgctxt", ""), fields["msgid"], fields.get("msgid_plural", ""))
    return Entry(message, [text for name, text in fields.items() if name.startswith("msgstr")], flags)


def write_mo(path: Path, header: str, entries: Iterable[Entry]) -> None:
    """Write a catalogue as gettext's libraries read it: two sorted tables of strings, after seven numbers."""
    texts = {b"": header.encode()}
    for message, strings in ((entry.message, entry.strings) for entry in entries):
        key = f"{message.context}\x04" if message.context else ""
        key += f"{message.singular}\0{message.plural}" if message.plural else message.singular
        texts[key.encode()] = "\0".join(strings).encode()
    keys = sorted(texts)
    start = 28 + 16 * len(keys)
    tables, data = [b"", b""], b""
    for table, column in enumerate((keys, [texts[key] for key in keys])):
        for text in column:
            tables[table] += struct.pack("<II", len(text), start + len(data))
            data += text + b"\0"
    head = struct.pack("<7I", 0x950412DE, 0, len(keys), 28, 28 + 8 * len(keys), 0, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head + tables[0] + tables[1] + data)
