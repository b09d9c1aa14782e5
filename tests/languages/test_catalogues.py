"""The catalogues of the assessors' languages: whole, without fuzzy lines, with the same placeholders, and compiled."""

import gettext
import re
from collections.abc import Iterable

import pytest
from catalogues import LOCALE, Entry, Message, messages_of_product, messages_of_python, messages_of_template
from catalogues import read_po as read
from django.conf import settings
from django.utils.translation import to_locale

LANGUAGES = [to_locale(code) for code, _ in settings.LANGUAGES if code != settings.LANGUAGE_CODE]
# What a translation must keep: values, doubled percent signs, tags.
KEPT = re.compile(r"%\(\w+\)[sd]|%%|</?\w+>")
NUMBERS = range(130)


def po(locale: str) -> tuple[dict[str, str], list[Entry]]:
    return read(LOCALE / locale / "LC_MESSAGES/django.po")


def faults(header: dict[str, str], entries: list[Entry], messages: set[Message]) -> list[str]:
    """Return what is wrong with a catalogue, as sentences."""
    forms = int(re.search(r"nplurals=(\d+)", header["Plural-Forms"])[1])
    known = {entry.message for entry in entries}
    wrong = [f"missing: {message}" for message in messages - known]
    wrong += [f"not in the sources: {message}" for message in known - messages]
    for entry in entries:
        message = entry.message
        if "fuzzy" in entry.flags:
            wrong.append(f"fuzzy: {message.singular}")
        if len(entry.strings) != (forms if message.plural else 1) or not all(entry.strings):
            wrong.append(f"empty or not in {forms} forms: {message.singular}")
        for text in entry.strings:
            if not is_filled_alike(message, text):
                wrong.append(f"other placeholders: {text}")
    return wrong


def is_filled_alike(message: Message, text: str) -> bool:
    """Whether the text has the placeholders of the singular or of the plural: "one" may leave the number out."""
    allowed = [sorted(KEPT.findall(source)) for source in (message.singular, message.plural) if source]
    return sorted(KEPT.findall(text)) in allowed


@pytest.mark.parametrize("locale", LANGUAGES)
def test_no_message_is_missing_fuzzy_or_with_other_placeholders(locale):
    header, entries = po(locale)
    assert faults(header, entries, set(messages_of_product())) == []


@pytest.mark.parametrize("locale", LANGUAGES)
def test_the_compiled_catalogue_says_what_the_readable_one_says(locale):
    _, entries = po(locale)
    with (LOCALE / locale / "LC_MESSAGES/django.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    for message, strings in ((entry.message, entry.strings) for entry in entries):
        if message.plural:
            assert {compiled.ngettext(message.singular, message.plural, n) for n in NUMBERS} == set(strings)
        elif message.context:
            assert compiled.pgettext(message.context, message.singular) == strings[0]
        else:
            assert compiled.gettext(message.singular) == strings[0]


def test_only_assessors_sources_are_marked():
    places = set(messages_of_product().values())
    assert {
        place for place in places if place.startswith(("platform/console", "analytics", "sampling"))
    } == set()


def entry(singular: str, *strings: str, plural: str = "", flags: Iterable[str] = ()) -> Entry:
    return Entry(Message("", singular, plural), list(strings), set(flags))


@pytest.mark.parametrize(
    ("planted", "complaint"),
    [
        ([], "missing"),
        ([entry("Hello", "Hallo"), entry("Old", "Alt")], "not in the sources"),
        ([entry("Hello", "Hallo", flags={"fuzzy"})], "fuzzy"),
        ([entry("Hello", "")], "empty"),
        ([entry("Hello", "Hallo %(name)s")], "other placeholders"),
        ([entry("Hello", "<b>Hallo")], "other placeholders"),
    ],
)
def test_a_planted_fault_is_found(planted, complaint):
    header = {"Plural-Forms": "nplurals=2; plural=(n != 1);"}
    (found,) = faults(header, planted, {Message("", "Hello", "")})
    assert complaint in found


def test_a_plural_needs_all_forms_and_one_may_leave_the_number_out():
    header = {"Plural-Forms": "nplurals=2; plural=(n != 1);"}
    message = Message("", "Your run", "Your %(n)s runs")
    whole = Entry(message, ["Ihr Lauf", "Ihre %(n)s Läufe"])
    assert faults(header, [whole], {message}) == []
    assert len(faults(header, [Entry(message, ["Ihr Lauf"])], {message})) == 1


def test_messages_are_found_in_templates_and_in_python():
    template = (
        '{% load i18n %}{% translate "95 %" %}{% if a %}{% translate "Main" context "menu" %}{% endif %}'
        "{% blocktranslate count n=a with b=c %}{{ n }} run{% plural %}{{ n }} runs {{ b }}{% endblocktranslate %}"
        "{% translate a %}"
    )
    assert list(messages_of_template(template)) == [
        ("", "95 %%", ""),
        ("menu", "Main", ""),
        ("", "%(n)s run", "%(n)s runs %(b)s"),
    ]
    python = 'a = gettext("One")\nb = {"c": _("Two " "and more")}\nngettext("1 run", "%(n)s runs", n)'
    assert set(messages_of_python(python)) == {
        ("", "One", ""),
        ("", "Two and more", ""),
        ("", "1 run", "%(n)s runs"),
    }
