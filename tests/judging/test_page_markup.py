"""Links, anchors and images of a page that has passed the sanitiser."""

import re

import pytest

from judging.page_markup import LONGEST_ALT
from judging.sanitise import sanitise_documents

TAG = re.compile(r"<[^>]*>")
ATTRIBUTES = re.compile(r' ([a-z-]+)="')
# What may stand in a tag; an href leads into the page itself.
ALLOWED = {"title", "href", "id", "alt", "data-path", "width", "colspan", "rowspan", "start"}


def safe_html(page):
    (result,) = sanitise_documents([(page, True)])
    assert not result.fell_back
    return result.html


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("<a href='https://example.org/a?b=c#d'>x</a>", '<a title="https://example.org/a?b=c#d">x</a>'),
        ("<a href='//example.org/a'>x</a>", '<a title="https://example.org/a">x</a>'),
        ("<a href='../b/c.html'>x</a>", '<a title="../b/c.html">x</a>'),
        ("<a href='mailto:a@b.example'>x</a>", '<a title="mailto:a@b.example">x</a>'),
        ("<a href='javascript:alert(1)'>x</a>", "<a>x</a>"),
        ("<a href=' java&#10;script&colon;alert(1)'>x</a>", "<a>x</a>"),
        ("<a href='vbscript:x'>x</a><a href='file:///etc/passwd'>y</a>", "<a>x</a><a>y</a>"),
        ("<a href='data:text/html,<script>x</script>'>x</a>", "<a>x</a>"),
        ("<a href=''>x</a><a>y</a>", "<a>x</a><a>y</a>"),
        ("<a href='b' target=_top ping='c' download rel=x style='d' onclick=e>x</a>", '<a title="b">x</a>'),
        ("<a href='\"><img src=x onerror=y>'>x</a>", '<a title="%22%3E%3Cimg%20src=x%20onerror=y%3E">x</a>'),
        # Nobody is told of another host than the one that a browser would go to, nor in letters that look alike.
        ("<a href='https://bank.example@evil.example/'>x</a>", '<a title="https://evil.example/">x</a>'),
        ("<a href='https://b\u0430nk.example/'>x</a>", '<a title="https://xn--bnk-6cd.example/">x</a>'),
        ("<a href='https://a.example/\u202egnp.exe'>x</a>", '<a title="https://a.example/%E2%80%AEgnp.exe">x</a>'),
        ("<a href='https://a.example/\u200b\u00ad\u061c'>x</a>", '<a title="https://a.example/%E2%80%8B%C2%AD%D8%9C">x</a>'),
        ("<a href='https://[::1'>x</a>", "<a>x</a>"),
        ("<a href='one'>x<a href='two'>y</a></a>", '<a title="one">x</a><a title="two">y</a>'),
    ],
)  # fmt: skip
def test_a_link_says_where_it_leads_and_leads_nowhere(link, shown):
    assert safe_html(link) == shown


def test_a_long_address_is_cut():
    page = safe_html(f"<a href='https://a.example/{'b' * 100_000}'>x</a>")
    assert page == f'<a title="https://a.example/{"b" * 179}...">x</a>'


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("<a href='#n'>x</a><p id='n'>y</p>", '<a href="#d1">x</a><p id="d1">y</p>'),
        ("<p id='n'>y</p><a href='#n'>x</a>", '<p id="d1">y</p><a href="#d1">x</a>'),
        ("<a href='#n'>x</a><a name='n'>y</a>", '<a href="#d1">x</a><a id="d1">y</a>'),
        ("<a href='#%C3%BC'>x</a><p id='\u00fc'>y</p>", '<a href="#d1">x</a><p id="d1">y</p>'),
        ("<a href='#a'>x</a><a href='#b'>y</a><a id=a name=b>z</a>",
         '<a href="#d1">x</a><a href="#d1">y</a><a id="d1">z</a>'),
        ("<a href='#b'>x</a><p id=a>y</p><p id=b>z</p>", '<a href="#d1">x</a><p>y</p><p id="d1">z</p>'),
        ("<a href='#n'>x</a><p id=n>1</p><p id=n>2</p>", '<a href="#d1">x</a><p id="d1">1</p><p>2</p>'),
        ("<a href='#nowhere'>x</a><p id=y>z</p>", "<a>x</a><p>z</p>"),
        ("<a href='#'>x</a><a href='#top'>y</a>", '<a href="#top">x</a><a href="#top">y</a>'),
        ("<a href='#top'>x</a><p id=top>y</p>", '<a href="#d1">x</a><p id="d1">y</p>'),
    ],
)  # fmt: skip
def test_a_link_within_the_page_leads_to_its_anchor(page, shown):
    assert safe_html(page) == shown


def test_no_id_is_one_of_the_frames_and_none_is_a_name_of_the_browsers():
    names = ["s0", "s1999", "p0", "d1", "body", "cookie", "__proto__", 'x" onclick="y', "<b>", "\u202es0"]
    links = "".join(f"<a href='#{name.replace('<', '&lt;')}'>go</a>" for name in names)
    page = links + "".join(f"<i id='{name.replace('<', '&lt;')}'>x</i>" for name in names)
    found = re.findall(r' id="([^"]*)"', safe_html(page))
    assert found == [f"d{number}" for number in range(1, len(names) + 1)]


@pytest.mark.parametrize(
    ("image", "shown"),
    [
        ("<img src='figures/a.png' alt='A plot'>", '<img alt="A plot" data-path="figures/a.png">'),
        ("<img src='a.png' width=30 height=20>", '<img alt="" data-path="a.png" width="30">'),
        ("<img src='https://user:word@a.example/b.png'>", '<img alt="" data-path="https://a.example/b.png">'),
        ("<img src='data:image/png;base64,AAAA'>", '<img alt="" data-path="data:image/png;base64">'),
        ("<img srcset='a.png 2x' alt=x>", '<img alt="x" data-path="">'),
        ("<picture><source srcset='b.webp'><img src='a.png'></picture>", '<img alt="" data-path="a.png">'),
        ("<img src='javascript:alert(1)' alt=x>", '<img alt="x" data-path="">'),
        ("<img src=a.png onerror=b style='background:url(c)' usemap=#d longdesc=e>", '<img alt="" data-path="a.png">'),
        ("<img src='\"><script>x</script>' alt='\"><script>'>",
         '<img alt="&quot;&gt;&lt;script&gt;" data-path="&quot;&gt;&lt;script&gt;x&lt;/script&gt;">'),
    ],
)  # fmt: skip
def test_an_image_keeps_its_words_and_its_path_and_loads_nothing(image, shown):
    assert safe_html(image) == shown


def test_a_huge_alternative_text_is_cut():
    page = safe_html(f"<img src=a.png alt='{'b' * 1_000_000}'>")
    assert page == f'<img alt="{"b" * LONGEST_ALT}" data-path="a.png">'


def test_no_tag_has_an_attribute_that_acts_whatever_the_page_says():
    """Every name of an attribute, with every quote, on links and images."""
    names = "href src srcset ping target download style onload onerror id name class action formaction data xlink:href"
    tags = [
        f"<{tag} {name}={quote}{value}{quote}>x"
        for tag in ("a", "img", "p", "figure", "video")
        for name in names.split()
        for quote in ("", "'", '"')
        for value in ("https://a.example/", "javascript:b", "#c", "k0", "x y", "a`b", "\x0bc")
    ]
    found = safe_html("".join(tags))
    inside = TAG.findall(found)
    assert len(inside) > 300
    for tag in inside:
        assert set(ATTRIBUTES.findall(tag)) <= ALLOWED, tag
        assert " href=" not in tag or re.search(r' href="#(d[0-9]+|top)"', tag), tag


def test_fifty_thousand_links_and_anchors_are_read_in_time():
    page = "".join(f"<a href=#a{number}>x</a><i id=a{number}>y</i>" for number in range(50_000))
    assert safe_html(page).endswith('<a href="#d50000">x</a><i id="d50000">y</i>')


def test_the_words_of_a_page_have_a_line_for_a_caption_and_no_address():
    page = "<p>a <a href='https://b.example/'>c</a></p><figure><img src=d.png alt=e><figcaption>f</figcaption></figure>"
    (result,) = sanitise_documents([(page, True)])
    assert result.text == "a c\n\nf"
