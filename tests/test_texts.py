"""Texts that people read stand in translation tags, on the pages that assessors and newcomers see."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
JUDGING, ROOF = ROOT / "judging/templates/judging", ROOT / "platform/touchstone/templates"
MARKED = [
    *(JUDGING / f"{name}.html" for name in (
        "assessor_home", "complete", "consent", "entry_gone", "entry_other_user", "entry_refused", "hit", "join",
        "judge", "study", "training", "training_result",
    )),
    *(ROOF / f"{name}.html" for name in ("base", "error", "home", "login")),
]  # fmt: skip
TRANSLATED = re.compile(r"\{%\s*blocktranslate\b.*?endblocktranslate\s*%\}", re.DOTALL)
NO_TEXT = re.compile(
    r"\{% block body_class %\}\w*\{% endblock %\}|\{%.*?%\}|\{#.*?#\}|\{\{.*?\}\}|<!--.*?-->|"
    r"<(script|style|kbd|code)\b.*?</\1>|&[a-z]+;",
    re.DOTALL,
)
ATTRIBUTE = re.compile(r'\b(?:aria-label|title|placeholder|alt)="([^"]*)"')
WORD = re.compile(r"[^\W\d_]{2,}")


def bare_texts(source: str) -> list[str]:
    """Return what a reader would see untranslated; the product's name is nobody's to translate."""
    without = NO_TEXT.sub(" ", TRANSLATED.sub(" ", source))
    texts = [*ATTRIBUTE.findall(without), *re.sub(r"<[^<>]*>", "\n", without).split("\n")]
    return [text.strip() for text in texts if WORD.search(text.replace("Touchstone", ""))]


@pytest.mark.parametrize("path", MARKED, ids=lambda path: path.stem)
def test_no_text_is_left_unmarked(path):
    assert bare_texts(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "<p>Log in</p>",
        '<a title="Go home" href="/">→</a>',
        "{% if a %}Nothing{% endif %}",
        '<p>{% translate "One" %} and another</p>',
    ],
)
def test_a_planted_bare_text_is_found(source):
    assert len(bare_texts(source)) == 1


def test_marked_texts_keys_and_values_are_not_complained_of():
    source = (
        '<p title="{% translate "One" %}">{{ name }} {% blocktranslate %}Two <b>words</b>{% endblocktranslate %} '
        "<kbd>Esc</kbd> 95&nbsp;% · Touchstone</p>"
    )
    assert bare_texts(source) == []
