"""Pages with links and images in a real browser: they look as they were written, and nothing is requested."""

import io
import json
from collections.abc import Iterator

import browser
import pytest
from browser import MARKS
from uploaded_images import plain

from judging.models import Collection
from judging.services.files import import_documents
from judging.services.images import store_images
from touchstone.models import User

pytestmark = MARKS

N = 20
# What the page asks for elsewhere where nothing protects: 20 images, and 20 links that a pointer would follow.
PAGE = (
    "<h1 id='start'>Wings</h1><a id='go' href='#end'>to the end</a>"
    + "".join(
        f"<p><a class=away href='ORIGIN/link{number}' ping='ORIGIN/ping{number}' target=_top>link {number}</a> "
        f"<img src='ORIGIN/away{number}.png' srcset='ORIGIN/set{number}.png 2x' alt='away {number}'></p>"
        for number in range(N)
    )
    + "<p><img id=here src='figures/a.png' alt='A plot' width=40></p>"
    + "<p>line</p>" * 80
    + "<h2 id='end'>The end</h2>"
)
PICTURES = """() => [...document.images].filter(one => one.complete && one.naturalWidth > 0)
  .map(one => one.src.slice(0, 22))"""
CLICK_ALL = "() => document.querySelectorAll('a').forEach(one => one.click())"


@pytest.fixture(scope="module")
def chromium() -> Iterator:
    yield from browser.chromium()


@pytest.fixture(scope="module")
def web(child_environment) -> Iterator[str]:
    yield from browser.web(child_environment)


@pytest.fixture
def page(chromium, web, transactional_db) -> Iterator:
    alice = User.objects.create(username="alice", role=User.Role.MANAGER)
    with browser.page_of(chromium, web, alice) as page:
        yield page


def outside(page, web) -> list[str]:
    """Return a list that fills with the addresses that any frame of the page asks for elsewhere."""
    found: list[str] = []
    page.context.on(
        "request",
        lambda request: None if request.url.startswith((f"{web}/", "data:")) else found.append(request.url),
    )
    return found


def test_a_page_with_twenty_links_and_images_requests_nothing_and_shows_the_image_that_was_uploaded(
    page, web
):
    collection = Collection.objects.create(name="News", shows_html=True)
    line = json.dumps(
        {"_id": "a.html", "title": "Wings", "text": PAGE.replace("ORIGIN", "http://127.0.0.1:9")}
    )
    import_documents(collection=collection, source=io.BytesIO(line.encode()), name="d", is_html=True)
    store_images(collection=collection, images=[("figures/a.png", plain(size=(80, 40)))])
    asked = outside(page, web)
    page.goto(f"{web}/manage/collections/{collection.pk}/shown/", wait_until="networkidle")
    pages, words = page.frames[1:]
    assert pages.url.endswith("?as=pages")
    assert pages.evaluate(PICTURES) == ["data:image/png;base64,"]
    assert pages.locator("img").bounding_box()["width"] == 40
    assert pages.locator("a[title]").count() == N
    assert pages.locator("a[title]").first.get_attribute("title") == "http://127.0.0.1:9/link0"
    assert "not uploaded: http://127.0.0.1:9/away0.png" in pages.inner_text("article")
    assert words.locator("img, a").count() == 0
    pages.evaluate(CLICK_ALL)
    assert pages.evaluate("() => location.hash") == "#d1"
    end = pages.locator("h2").bounding_box()
    frame = page.locator("iframe").first.bounding_box()
    assert frame["y"] <= end["y"] < frame["y"] + frame["height"], "the link within the page leads there"
    page.wait_for_timeout(300)
    assert asked == []
    assert len(page.context.pages) == 1
    assert page.url == f"{web}/manage/collections/{collection.pk}/shown/"


def test_the_control_the_same_page_unprotected_asks_for_all_of_it(page, web):
    asked = outside(page, web)
    page.route("http://127.0.0.1:9/**", lambda route: route.fulfill(status=204, body=""))
    page.route(
        f"{web}/raw",
        lambda route: route.fulfill(
            body=PAGE.replace("ORIGIN", "http://127.0.0.1:9"), content_type="text/html"
        ),
    )
    page.goto(f"{web}/raw", wait_until="load")
    assert len([address for address in asked if "away" in address or "set" in address]) == N
    page.evaluate(CLICK_ALL)
    page.wait_for_timeout(300)
    assert any("link" in address or "ping" in address for address in asked)
