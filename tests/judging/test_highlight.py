"""Marking the topic's words: it finds them, and it changes nothing else."""

import html
import re
import time

import nh3
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judging.highlight import MOST_TERMS, marked_html, marked_text, terms
from judging.sanitise import SAFE_ATTRIBUTES, SAFE_TAGS

PUT_IN = re.compile(r"</?mark>")
MARKED = re.compile(r"<mark>(.*?)</mark>", re.DOTALL)
TAG = re.compile(r"<[^>]*>")


def marked_words(text, title):
    return MARKED.findall(marked_text(text, terms(title)))


@pytest.mark.parametrize(
    ("title", "text", "found"),
    [
        ("mirrors", "A mirror, MIRRORS; mirrored?", ["mirror", "MIRRORS", "mirrored"]),
        ("mirror", "Mirrors mirrorless remirror", ["Mirrors"]),
        ("café", "Cafe CAFÉ cafe\u0301s coffee", ["Cafe", "CAFÉ", "cafe\u0301s"]),
        ("Straße", "STRASSE strasse Straßen", ["STRASSE", "strasse"]),
        ("bodies heated", "the body, a heating bus", ["body", "heating"]),
        ("the 2020 B2B budget", "2020 20200 b2b budgets the", ["2020", "b2b", "budgets"]),
        ("AT&T <b>", "at&t b <b> AT T", []),
        ("lift_off", "lift off liftoff", ["lift"]),
        ("मिरर दर्पण", "यह दर्पण है", ["दर्पण"]),
        ("ﬁne ＡＢＣ", "fine abc", ["fine", "abc"]),
    ],
)
def test_words_are_found_by_their_stem_whatever_their_case_and_accents(title, text, found):
    assert marked_words(text, title) == found


def test_stop_words_and_single_letters_are_no_terms_and_numbers_are():
    assert terms("What is the effect of a 7 x 9 wing?") == {"effect", "7", "9", "wing"}


def test_the_description_helps_only_a_title_of_fewer_than_two_terms():
    assert terms("wings", "lift and drag") == {"wing", "lift", "drag"}
    assert terms("wing lift", "drag") == {"wing", "lift"}
    assert terms("", "") == frozenset()


def test_a_long_title_gives_its_first_terms_and_no_more():
    many = " ".join(f"word{number}" for number in range(10_000))
    assert terms(many) == {f"word{number}" for number in range(MOST_TERMS)}


def test_of_html_only_text_is_marked_never_tags_or_entities():
    page = '<table><tr><td colspan="2">td colspan &lt;td&gt; amp&amp;lt 2</td></tr></table>'
    assert PUT_IN.sub("", marked_html(page, terms("td colspan lt amp 2"))) == page
    found = MARKED.findall(marked_html(page, terms("td colspan lt amp 2")))
    assert found == ["td", "colspan", "td", "amp", "lt", "2"]


def test_a_bracket_between_quotes_ends_no_tag():
    tag = '<td colspan="1>wing" rowspan="wing">'
    assert marked_html(f"{tag}wing</td>", terms("wing")) == f"{tag}<mark>wing</mark></td>"


@pytest.mark.parametrize("broken", ["<td wing", '<td colspan="wing>', '<"<"<"<"', "a<"])
def test_a_tag_that_never_ends_is_shown_not_obeyed(broken):
    assert TAG.findall(PUT_IN.sub("", marked_html(broken, terms("wing")))) == []


TOPICS = st.text(st.sampled_from("abcdeimnorst ABC é ß 019 lt gt amp p b"), max_size=30)
TEXTS = st.text(
    st.sampled_from("abcdeimnorst ABC é\u0301 ß 019\n\t<>&\"';#x_=/!-\u00a0\u202e\U0001f600ا日"), max_size=300
)
PAGES = st.lists(
    st.one_of(
        TEXTS,
        st.sampled_from(
            ["<p>", "</p>", "<b>", "<i>", "</b>", "<table>", "<tr>", "<td colspan=2>", "</table>", "<ul><li>",
             "<pre>\n", "<br>", "<!-- a -->", "<script>a</script>", "&amp;", "&lt;b&gt;", "&eacute;", "&#x202e;",
             "<svg><b>", "<mark>", "<span id=p0>", "<h1>ab</h1>", "<ol start='3\">a'>", "amp;", "&"]
        ),
    ),
    max_size=25,
).map("".join)  # fmt: skip


@settings(deadline=None)
@given(TEXTS, TOPICS)
def test_without_its_marks_marked_text_is_the_escaped_text(text, topic):
    marked = marked_text(text, terms(topic))
    assert PUT_IN.sub("", marked) == html.escape(text)
    assert html.unescape(TAG.sub("", marked)) == text


@settings(deadline=None)
@given(PAGES, TOPICS)
def test_without_its_marks_marked_html_is_the_sanitisers_html(page, topic):
    safe = nh3.clean(page, tags=SAFE_TAGS, attributes=SAFE_ATTRIBUTES, url_schemes=set(), link_rel=None)
    marked = marked_html(safe, terms(topic))
    assert PUT_IN.sub("", marked) == safe
    for word in MARKED.findall(marked):
        assert not set(word) & set("<>&;\"' ")
    read = {"tags": SAFE_TAGS | {"mark"}, "attributes": {**SAFE_ATTRIBUTES, "span": {"id"}}}
    parsed = nh3.clean(marked, url_schemes=set(), link_rel=None, **read)
    for put_in in (
        "<mark>",
        '<span id="p',
    ):  # a browser finds every one where it was put: in no tag, no entity
        assert parsed.count(put_in) == marked.count(put_in)


@settings(deadline=None)
@given(st.text(max_size=300), st.text(max_size=60))
def test_any_text_under_any_topic_is_escaped_completely(text, topic):
    assert PUT_IN.sub("", marked_text(text, terms(topic, text))) == html.escape(text)


SLOW = {
    "letters": "a" * 200_000,
    "words": "wing lift " * 20_000,
    "accents": "a" + "\u0301\u0316" * 100_000,
    "accents of many words": ("a" + "\u0301\u0316" * 29 + " ") * 3300,
    "entities": "&amp" * 50_000,
    "brackets": "<" * 200_000,
    "quoted brackets": '<"' * 100_000,
    "quoted tags": '<a "><a ' * 25_000,
    "tags": "<b>wing</b>" * 18_000,
    "underscores": "_a" * 100_000,
    "expanding": "\ufdfa" * 200_000,
}


@pytest.mark.parametrize("name", SLOW)
def test_what_a_frame_shows_at_most_is_marked_in_little_time(name):
    wanted = terms("wing lift accents", SLOW[name])
    before = time.process_time()
    marked_text(SLOW[name], wanted)
    marked_html(SLOW[name], wanted)
    assert time.process_time() - before < 1
