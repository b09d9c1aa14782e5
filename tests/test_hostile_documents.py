"""Documents are hostile: what they try does work elsewhere (the control), and in Touchstone nothing of it happens.

A canary, an HTTP server on loopback, counts whatever reaches it. Every payload tries to run a script, to have something
loaded, or to lead the page away. The same corpus is served raw by the canary itself, where all of this must happen.
"""

import contextlib
import html
import io
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, pairwise
from urllib.parse import unquote

import playwright.sync_api
import pytest
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone

from judging.models import (
    Assessor,
    Campaign,
    Collection,
    Document,
    Grade,
    Item,
    Judgment,
    Lease,
    Scale,
    Slot,
    Topic,
)
from judging.sanitise import Allowance
from judging.services.errors import ImportRefused
from judging.services.files import import_documents
from judging.views.frame import SHOWN_CHARACTERS
from sampling.models import Draw
from touchstone import embedded
from touchstone.models import Event, User

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

# -- the corpus -----------------------------------------------------------------------------------------------
# URL/... is an address of the canary; JS is a script without quotes, spaces or angle brackets, for every context;
# JS" is the same where the attribute's quotes are double.

JS = "console.log(`canary-ran`);window.canary=1;new/**/Image().src=`URL/script`;try{top.location=`URL/top`}catch(e){}"
PAYLOADS = {
    # scripts
    "script": "<script>JS</script>",
    "script src": "<script src='URL/script.js'></script>",
    "script broken": "<scr<script>ipt>JS</scr</script>ipt>",
    "script case and nul": "<ScRiPt\x00>JS</sCrIpT\x00><script/x>JS</script>",
    "script module": "<script type=module>JS</script>",
    "img onerror": "<img src=x onerror=JS>",
    "img onerror slash": "<img/src/onerror=JS>",
    "img quote break": "\"'><img src=x onerror=JS>",
    "svg onload": "<svg onload=JS>",
    "svg script": "<svg><script>JS</script></svg>",
    "svg href script": "<svg><script href='data:text/javascript,JS'/></svg>",
    "svg animate": "<svg><animate onbegin=JS attributeName=x dur=1s>",
    "svg set": "<svg><a><set attributeName=href to=javascript:JS /><text y=20>go</text></a></svg>",
    "svg use": "<svg><use href='URL/use.svg#x'/><image href='URL/svg-image'/></svg>",
    "svg foreignObject": "<svg><foreignObject><iframe xmlns='http://www.w3.org/1999/xhtml' src='javascript:JS'/></svg>",
    "math": "<math href='javascript:JS'>go</math><math><mi xlink:href='javascript:JS'>go</mi></math>",
    "body onload": "<body onload=JS onpageshow=JS>",
    "details ontoggle": "<details open ontoggle=JS>x</details>",
    "autofocus": "<input autofocus onfocus=JS><select autofocus onfocus=JS><p tabindex=0 onfocus=JS autofocus>x",
    "marquee": "<marquee onstart=JS>x</marquee>",
    "video": "<video src='URL/video' onerror=JS autoplay></video><audio src='URL/audio' onerror=JS></audio>",
    "video source": "<video><source onerror=JS src='URL/source'></video><video poster='URL/poster'></video>",
    "animation event": "<style>@keyframes x{}</style><b style='animation-name:x' onanimationstart=JS>x</b>",
    "object data": "<object data='URL/object'></object><embed src='URL/embed'>",
    "object script": "<object data='javascript:JS'></object><embed src='javascript:JS'>",
    "iframe javascript": "<iframe src='javascript:JS'></iframe>",
    "iframe srcdoc": "<iframe srcdoc='<script>parent.canary=1;JS</script>'></iframe>",
    "iframe src": "<iframe src='URL/frame'></iframe><frameset><frame src='URL/frame2'></frameset>",
    "iframe data": "<iframe src='data:text/html,<script>JS</script>'></iframe>",
    "link javascript": "<a href='javascript:JS'>go</a>",
    "link javascript entities": "<a href='jav&#x09;ascript&colon;JS'>go</a><a href=' &#14; javascript:JS'>go</a>",
    "link data": "<a href='data:text/html,<script>JS</script>'>go</a>",
    "area": "<map name=m><area shape=rect coords=0,0,99,99 href='javascript:JS'></map><img usemap=#m src=x width=99>",
    "form action": "<form action='javascript:JS'><button>go</button></form>",
    "button formaction": "<form><button formaction='javascript:JS'>go</button></form>",
    "isindex": "<form action=javascript:JS><input type=submit value=go><input type=image src='URL/input-image'></form>",
    # what changes its meaning when it is parsed twice
    "mxss noscript": "<noscript><p title='</noscript><img src=x onerror=JS>'></noscript>",
    "mxss style": "<svg><style><img title='</style><img src=x onerror=JS>'></style></svg>",
    "mxss math": "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=JS&gt;'>",
    "mxss math text": "<math><annotation-xml encoding='text/html'><style></math><img src=x onerror=JS></style>",
    "mxss template": "<template><script>JS</script></template><template><img src=x onerror=JS></template>",
    "mxss table": "<table><img src=x onerror=JS><tr><script>JS</script><td><svg/onload=JS></table>",
    "mxss select": "<select><template><style><!--</style><a rel='--><img src=x onerror=JS>'></template></select>",
    "mxss comment": "<!--><img src=x onerror=JS>--><!--!><img src=x onerror=JS><!- <img src=x onerror=JS>",
    "mxss cdata": "<svg><![CDATA[><img src=x onerror=JS>]]></svg>",
    "mxss title": "<title><img src=x onerror=JS></title></title><img src=x onerror=JS>",
    "mxss textarea": "<textarea><p title='</textarea><img src=x onerror=JS>'></textarea>",
    "mxss xmp": "<xmp><p title='</xmp><img src=x onerror=JS>'></xmp>",
    "mxss nesting": "<form><div></form><form><math><mtext></form><form><mglyph><style></math><img src=x onerror=JS>",
    "mxss entities": "&lt;script&gt;JS&lt;/script&gt;&amp;lt;img src=x onerror=JS&amp;gt;",
    "mxss end of ours": "</pre></article></div></body></html><script>JS</script><pre>",
    "mxss plaintext": "<b>x</b><img src=x onerror=JS><plaintext></pre></article><script>JS</script>",
    "attribute value": "<td colspan='1\"><img src=x onerror=JS>'>x</td><ol start='\"><script>JS</script>'>",
    "mark": "<mark>x</mark><span id='p0\"><img src=x onerror=JS>'>",
    # what is loaded
    "img": "<img src='URL/img'><img srcset='URL/srcset 1x'><picture><source srcset='URL/picture'><img></picture>",
    "img lowsrc": "<img lowsrc='URL/lowsrc' dynsrc='URL/dynsrc' longdesc='URL/longdesc' src=//HOST/relative>",
    "background": "<table background='URL/background'><td background='URL/td'></table><body background='URL/body'>",
    "css url": "<p style=\"background:url('URL/css')\">x</p><style>body{background:url('URL/style')}</style>",
    "css import": "<style>@import 'URL/import.css';@font-face{font-family:f;src:url(URL/font)}p{font:9px f}</style>x",
    "css expression": "<p style='width:expression(JS);behavior:url(URL/h);cursor:url(URL/c),auto'>x",
    "link stylesheet": "<link rel=stylesheet href='URL/sheet.css'><link rel='shortcut icon' href='URL/icon'>",
    "link preload": "<link rel=preload as=image href='URL/preload'><link rel=prefetch href='URL/prefetch'>",
    "link preconnect": "<link rel=preconnect href=URL><link rel=dns-prefetch href=//HOST><link rel=prerender href=URL>",
    "link module": "<link rel=modulepreload href='URL/module.js'><link rel=manifest href='URL/manifest'>",
    "base": "<base href='URL/base/'><img src=relative><script src=relative.js></script>",
    "track": "<video><track src='URL/track' default></video><bgsound src='URL/bgsound'>",
    "applet": "<applet code=x archive='URL/applet'></applet><portal src='URL/portal'></portal>",
    # what leads away
    "meta refresh": "<meta http-equiv=refresh content='0;url=URL/refresh'>",
    "meta refresh javascript": "<meta http-equiv=refresh content='0;url=javascript:JS'>",
    "link top": "<a href='URL/top' target=_top>go</a><a href='URL/parent' target=_parent>go</a>",
    "link blank": "<a href='URL/blank' target=_blank>go</a><a href='URL/self'>go</a>",
    "a ping": "<a href=#x ping='URL/ping'>go</a>",
    "form top": "<form action='URL/form' target=_top><button>go</button></form>",
    "button top": "<button form=f formaction='URL/formaction' formtarget=_top>go</button><form id=f></form>",
    "label": "<label for=s>go</label><form action='URL/label' target=_top><input id=s type=submit value=go></form>",
    "svg link top": "<svg width=99 height=50><a href='URL/svg-top' target=_top><text y=20>go</text></a></svg>",
    # what hides
    "utf-7": "+ADw-script+AD4-JS+ADw-/script+AD4-<meta charset=utf-7>",
    "overlong": "\u00c0\u00bcscript\u00c0\u00beJS\uff1cscript\uff1eJS\uff1c/script\uff1e",
    "bidi": "\u202e<script>JS</script>\u202c\u2066<img src=x onerror=JS>\u2069",
    "nul": "<img\x00 src=x one\x00rror=JS><\x00script>JS</script>",
    "control": "<img\x0bsrc=x\x0conerror=JS><a href='\x01javascript:JS'>go</a>",
    "separators": "<script>\u2028JS\u2029</script>//\u2028<img src=x onerror=JS>",
    "template brackets": "{{ 7|safe }}{% load x %}${JS}{{constructor.constructor('JS')()}}",
    "json": "</script><script>JS</script><!--<script>",
    "unclosed": "<img src=x onerror=JS //<a href='URL/top",
    "unclosed quote": "<img src='URL/dangling?",
}  # fmt: skip


def payload(name: str, mode: str, canary: str) -> str:
    """Return the payload; its addresses name it and how it was imported."""
    here = f"{canary}/hit/{mode}/{name.replace(' ', '-')}"
    text = PAYLOADS[name].replace("JS", JS).replace("URL", here)
    return text.replace("HOST", here.removeprefix("http://"))


class Canary(ThreadingHTTPServer):
    """Counts requests and bare connections; serves the raw corpus under /raw/, and /parent that frames one of it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.hits: list[str] = []
        self.n_connections = 0
        self.address = f"http://127.0.0.1:{self.server_port}"

    def get_request(self):
        self.n_connections += 1
        return super().get_request()

    def handle_error(self, request, client_address) -> None:
        """A browser that hangs up is no news."""


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        canary, (kind, _, name) = self.server, unquote(self.path).lstrip("/").partition("/")
        if kind == "raw":
            body = "<!doctype html><body><pre>" + payload(name, "raw", canary.address) + "</pre>"
        elif kind == "parent":
            body = f"<!doctype html><iframe width=300 height=300 src='/raw/{html.escape(name)}'></iframe>"
        else:
            canary.hits.append(self.path)
            body = ""
        data = body.encode("utf-8", "surrogatepass")
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_HEAD = do_OPTIONS = do_GET  # noqa: N815 (the standard library's names)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def canary() -> Iterator[Canary]:
    server = Canary()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


# -- the browser ----------------------------------------------------------------------------------------------


@dataclass
class Seen:
    """What happened in the browser that should not."""

    ran: list[str] = field(default_factory=list)  # addresses of frames in which a script of a payload ran
    left: list[str] = field(
        default_factory=list
    )  # addresses to which a page was led away, or that were opened
    requests: list[str] = field(default_factory=list)  # addresses asked for outside the site
    readable: list[str] = field(default_factory=list)  # cookies that a document's frame could read
    n_frames: int = 0
    n_as_text: int = 0


# In each document: everything is clicked on, also what no pointer would find, and secrets are tried for.
LOOK = """() => {
  const targets = document.querySelectorAll("a, area, button, input, label, summary, [tabindex], [href]");
  for (const one of targets) one.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}));
  const read = window.origin === "null" ? [] : [window.origin];
  for (const take of [() => document.cookie, () => `storage ${localStorage.length}`]) {
    try { if (take()) read.push(take()); } catch (e) { if (e.name !== "SecurityError") read.push(e.name); }
  }
  return {ran: Boolean(window.canary), read, as_text: document.querySelectorAll("pre.text").length};
}"""


def browse(visit, site: str, cookies: list[dict]) -> Seen:
    """Run `visit(context, seen)` in a Chromium of its own, in a thread: Playwright and Django do not mix."""
    if CHROMIUM is None:
        reason = "no Chromium on this machine: the browser tests cannot run (apt-get install chromium)"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_browse, visit, site, cookies).result()


def _browse(visit, site: str, cookies: list[dict]) -> Seen:
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    flags += ["--disable-features=IsolateSandboxedIframes"]  # no process for each frame: quicker
    seen = Seen()
    with playwright.sync_api.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=[*flags, "--disable-sync"])
        context = browser.new_context(viewport={"width": 800, "height": 600})
        context.set_default_timeout(10_000)
        context.add_cookies(cookies)
        context.on("console", lambda message: "canary-ran" in message.text and seen.ran.append(message.text))
        context.on("dialog", lambda dialog: (seen.ran.append(dialog.message), dialog.dismiss()))
        context.on(
            "request", lambda request: _outside(request.url, site) and seen.requests.append(request.url)
        )
        visit(context, seen)
        browser.close()
    return seen


def _outside(url: str, site: str) -> bool:
    return not url.startswith((f"{site}/", "data:", "about:", "blob:", "chrome-error:"))


def look_into(frame, seen: Seen) -> None:
    """Look whether a script ran in a document, click on everything in it, and try to read what it must not."""
    seen.n_frames += 1
    try:
        found = frame.evaluate(LOOK)
    except playwright.sync_api.Error:  # it is being led away just now
        seen.left.append(frame.url)
        return
    seen.n_as_text += found["as_text"]
    seen.readable += found["read"]
    if found["ran"]:
        seen.ran.append(frame.url)


# -- the corpus where nothing protects: the control -----------------------------------------------------------


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
def test_served_raw_the_corpus_runs_scripts_sends_requests_and_leads_the_page_away(canary):
    def visit(context, seen: Seen) -> None:
        idle, names = context.new_page(), list(PAYLOADS)
        for start in range(0, len(names), 15):
            pages = {name: context.new_page() for name in names[start : start + 15]}
            for name, page in pages.items():
                with contextlib.suppress(playwright.sync_api.Error):  # it is led away already
                    page.goto(f"{canary.address}/parent/{name}", wait_until="commit")
            idle.wait_for_timeout(400)
            for frame in chain(*(page.frames[1:] for page in pages.values())):
                look_into(frame, seen)
            idle.wait_for_timeout(200)
            for page in pages.values():
                seen.left += [page.url] if "/parent/" not in page.url else []
                page.close()

    seen = browse(visit, canary.address, [])
    reached = {hit.split("/")[3] for hit in canary.hits if hit.startswith("/hit/raw/")}
    assert len(seen.ran) >= 40
    assert len(reached) >= 60
    assert len(seen.left) >= 30
    assert seen.readable
    assert {"link-top", "form-top", "img", "css-url", "css-import", "a-ping", "base"} <= reached


# -- the corpus in Touchstone ---------------------------------------------------------------------------------

MODES = {"html": (True, True), "html-as-text": (True, False), "plain": (False, True)}  # is_html, shows_html


def make_scale() -> Scale:
    scale = Scale.objects.create(name="two")
    Grade.objects.bulk_create(
        Grade(scale=scale, value=value, label=f"grade {value}", gain=value) for value in range(2)
    )
    return scale


def make_campaign(
    documents: list[dict], *, is_html: bool, shows_html: bool, name: str, titles: list[str], **fields
):
    """Import the documents into a new collection and lease them all to Bob; return the campaign and the tokens."""
    collection = Collection.objects.create(name=name, shows_html=shows_html, description=titles[0])
    lines = "".join(f"{json.dumps(document)}\n" for document in documents)
    allowance = Allowance(cpu_seconds=2)
    import_documents(
        collection=collection,
        source=io.BytesIO(lines.encode()),
        name=name,
        is_html=is_html,
        allowance=allowance,
    )
    Topic.objects.bulk_create(
        Topic(collection=collection, topic_id=f"t{number}", title=title, description=title, narrative=title)
        for number, title in enumerate(titles)
    )
    topic = collection.topics.get(topic_id="t0")
    campaign = Campaign.objects.create(
        collection=collection, scale=make_scale(), name=name, state="open", gold_check_rate=0, **fields
    )
    user, _ = User.objects.get_or_create(username="bob")
    bob = Assessor.objects.create(campaign=campaign, user=user)
    found = {document.doc_id: document for document in collection.documents.defer("text", "html")}
    items = Item.objects.bulk_create(
        Item(campaign=campaign, topic=topic, document=found[document["_id"]]) for document in documents
    )
    now = timezone.now()
    slots = Slot.objects.bulk_create(
        Slot(
            item=item, purpose="judge", number=1, campaign=campaign, topic=topic, position=position, state="leased",
            assessor=bob, token=uuid.uuid4(), leased_at=now, lease_until=now + timezone.timedelta(hours=1),
        )
        for position, item in enumerate(items)
    )  # fmt: skip
    Lease.objects.bulk_create(Lease(token=s.token, slot=s, assessor=bob, leased_at=now) for s in slots)
    return campaign, [slot.token for slot in slots]


def judge_with_comments(campaign: Campaign, comments: list[str]) -> None:
    for slot, comment in zip(campaign.slots.order_by("-position")[: len(comments)], comments, strict=True):
        Slot.objects.filter(pk=slot.pk).update(state="done")
        Judgment.objects.create(
            item=slot.item, assessor=slot.assessor, grade=1, slot=slot, comment=comment[:2000], lease_token=slot.token,
            client_token=uuid.uuid4(),
        )  # fmt: skip


def cookie_of(user: User, site: str) -> dict:
    session = SessionStore()
    session["_auth_user_id"] = str(user.pk)
    session["_auth_user_backend"] = settings.AUTHENTICATION_BACKENDS[0]
    session["_auth_user_hash"] = user.get_session_auth_hash()
    session.save()
    return {"name": settings.SESSION_COOKIE_NAME, "value": session.session_key, "url": site}


@pytest.fixture
def web(transactional_db, child_environment) -> Iterator[str]:
    """The real web server on the test's database."""
    address = f"127.0.0.1:{embedded.free_port()}"
    command = [sys.executable, "-m", "gunicorn", "touchstone.wsgi", "--threads", "8", "--bind", address]
    server = subprocess.Popen(
        [*command, "--no-control-socket", "--log-level", "error"], env=child_environment
    )
    embedded.answers(f"http://{address}/livez")()
    yield f"http://{address}"
    server.terminate()
    server.wait(30)


# As the screen makes them, but without the attribute "sandbox": the answer's own policy must be enough.
FRAMES = """addresses => Promise.all(addresses.map(address => new Promise(done => {
  const frame = document.createElement("iframe");
  frame.addEventListener("load", done);
  frame.src = address;
  document.body.append(frame);
})))"""


def import_corpus(canary: str, modes: Iterable[str]) -> dict[str, tuple[Campaign, list[uuid.UUID]]]:
    """Import the corpus as these MODES: as texts and titles; topics, guidelines, descriptions and comments too."""
    fields = [payload(name, "field", canary).replace("\0", "\ufffd") for name in PAYLOADS]
    made = {}
    for mode in modes:
        is_html, shows_html = MODES[mode]
        documents = [
            {
                "_id": name.replace(" ", "-"),
                "title": payload(name, f"{mode}-title", canary),
                "text": payload(name, mode, canary),
            }
            for name in PAYLOADS
        ]
        how = {"is_html": is_html, "shows_html": shows_html, "guidelines": "\n\n".join(fields)}
        made[mode] = make_campaign(
            documents, name=f"{mode} <script>", titles=["".join(fields), *fields], **how
        )
        pairs = ["".join(fields[start : start + 2]) for start in range(0, len(fields), 2)]
        judge_with_comments(made[mode][0], pairs)  # the newest fifty are shown to the manager
    return made


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
@pytest.mark.django_db(transaction=True)
def test_in_touchstone_nothing_runs_nothing_is_loaded_and_nothing_leads_away(web, canary):
    made = import_corpus(canary.address, MODES)
    assert Document.objects.exclude(html="").count() > 60
    frames = {mode: [f"{web}/frame/{token}/" for token in tokens] for mode, (_, tokens) in made.items()}

    def visit(context, seen: Seen) -> None:
        page = context.new_page()
        page.on("framenavigated", lambda frame: frame == page.main_frame and seen.left.append(frame.url))

        def go(address: str) -> None:
            seen.left.append(f"expected {address}")
            page.goto(address)

        for addresses in frames.values():  # in a page of the site
            go(f"{web}/judge/")
            page.evaluate(FRAMES, addresses)
            page.wait_for_timeout(300)
            for frame in page.frames[1:]:
                look_into(frame, seen)
            page.wait_for_timeout(300)
        for address in (
            frames["html"] + frames["plain"]
        ):  # opened by themselves, and without marks between the tags
            go(f"{address}?marks=0")
            look_into(page.main_frame, seen)
        for (
            campaign,
            _,
        ) in made.values():  # the judging screen, which shows titles, topics and one's own comments
            go(f"{web}/judge/{campaign.pk}/")
            page.wait_for_selector("#judge[data-ready=true]")
            page.keyboard.press("u")
            page.wait_for_timeout(500)
            assert "canary-ran" in page.inner_text("#judge")  # it is there, as text
            assert not page.evaluate("window.canary")

    seen = browse(visit, web, [cookie_of(User.objects.get(username="bob"), web)])
    assert (seen.ran, seen.requests, seen.readable) == ([], [], [])
    assert unexpected(seen.left) == []
    assert seen.n_frames == 5 * len(PAYLOADS)
    # What has no words is called empty; all else of two modes is text, and most of the third is not.
    assert 2 * len(PAYLOADS) < seen.n_as_text < 4 * len(PAYLOADS)
    assert (canary.hits, canary.n_connections) == ([], 0)


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
@pytest.mark.django_db(transaction=True)
def test_nothing_runs_where_a_manager_sees_topics_titles_and_comments(web, canary):
    ((campaign, _),) = import_corpus(canary.address, ["plain"]).values()
    facts = {"batch": 1, "question": "pool", "method": "default", "selection": "poisson", "seed": 1}
    Draw.objects.create(campaign=campaign, frame="f", n_frame=99, n_drawn=0, **facts)
    slot = campaign.slots.get(position=0)
    judgment = {"item": slot.item, "assessor": slot.assessor, "lease_token": slot.token}
    Judgment.objects.create(**judgment, obstacle="other", client_token=uuid.uuid4())
    alice = User.objects.create(username="alice", role=User.Role.MANAGER)
    here = f"/manage/campaigns/{campaign.pk}"
    with_payloads = [
        f"/manage/collections/{campaign.collection_id}/",
        f"{here}/comments/",
        f"{here}/topics/",
        f"{here}/leases/",
    ]
    paths = [*with_payloads, f"{here}/", f"{here}/events/", f"{here}/assessors/{slot.assessor.pk}/"]

    def visit(context, seen: Seen) -> None:
        page = context.new_page()
        page.on("framenavigated", lambda frame: seen.left.append(frame.url))
        for path in paths:
            seen.left.append(f"expected {web}{path}")
            assert page.goto(web + path).status == 200, path
            page.wait_for_timeout(100)
            assert ("canary-ran" in page.content()) is (path in with_payloads), path
            assert not page.evaluate("window.canary")

    seen = browse(visit, web, [cookie_of(alice, web)])
    assert (seen.ran, seen.requests, unexpected(seen.left)) == ([], [], [])
    assert (canary.hits, canary.n_connections) == ([], 0)


def unexpected(navigations: list[str]) -> list[str]:
    """Return the addresses that a page came to without having been sent there."""
    pairs = list(pairwise(["", *navigations]))
    return [
        there for before, there in pairs if not there.startswith("expected") and before != f"expected {there}"
    ]


# -- slow documents -------------------------------------------------------------------------------------------

_children: list[str] = []


def _note_children(event: str, arguments: tuple) -> None:
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec", "os.system"):
        _children.append(event)


sys.addaudithook(_note_children)  # cannot be taken away again; it costs nothing

SLOW = {
    "nested": "<div>" * 50_000,
    "attributes": "<p " + " ".join(f"a{number}=1" for number in range(200_000)) + ">x",
    "comments": "<!--" * 200_000,
    "unclosed comments": "<!-- x " * 200_000,
    "unclosed tags": "<b><i><p><ul><li><table><tr><td>" * 2_000,
    "unclosed attribute": '<p title="' + "x" * 1_000_000,
    "brackets": "<" * 300_000,
    "quoted brackets": '<"' * 150_000,
    "ampersands": "&" * 300_000,
    "entities": "&lt;script&gt;" * 20_000,
    "formatting": "<p>" + "".join(f"<b a{number}>" for number in range(1_000)) + "<p>x" * 1_000,
    "spaces": "x" + " " * 1_000_000 + "x",
    "lines": "x" + "\n \t" * 200_000 + "x",
    "letters": "a" * 1_000_000 + "!",
    "words": "wing lift drag " * 70_000,
    "accents": "a" + "\u0301\u0316" * 300_000,
    "accented words": ("a" + "\u0301\u0316" * 20 + " ") * 10_000,
    "expanding": "\ufdfa " * 300_000,
    "addresses": "http://" + "a." * 300_000,
    "backtracking": ("a" * 50 + "! ") * 10_000,
    "underscores": "_a" * 200_000,
    "emoji": "\U0001f468\u200d" * 150_000,
    "right to left": "\u202e\u05d0 " * 150_000,
    "cells": "<table>" + "<tr><td>x" * 20_000,
    "lists": "<ul><li>" * 5_000,
    "long table": "<td colspan=999 rowspan=999>x" * 20_000,
    "cdata": "<svg><![CDATA[" + "]]" * 200_000,
    "text": "word " * 1_900_000,
    "empty": "<p></p>" * 100_000,
    "nothing": "",
}  # fmt: skip


@pytest.fixture
def slow(db, client):
    documents = [
        {"_id": f"source-{number}", "title": name, "text": text}
        for number, (name, text) in enumerate(SLOW.items())
    ]
    campaign, tokens = make_campaign(
        documents, is_html=True, shows_html=True, name="slow", titles=["wing lift accents xaaa"]
    )
    client.force_login(User.objects.get(username="bob"))
    return campaign, dict(zip(SLOW, tokens, strict=True))


@pytest.mark.django_db
def test_thirty_slow_documents_are_imported_in_bounded_time_and_no_view_starts_the_sanitiser(slow, client):
    _, tokens = slow
    assert len(tokens) == 30
    assert _children  # the import did, so the watch works
    as_source = Document.objects.filter(html="").exclude(text="").values_list("title", flat=True)
    assert {"nested", "attributes", "formatting"} <= set(as_source)
    assert Event.objects.get(verb="imported documents").detail["n_as_source"] >= 3
    _children.clear()
    client.get(f"/frame/{tokens['nothing']}/")  # the first request of a process loads its templates
    for name, token in tokens.items():
        before = time.process_time()
        answer = client.get(f"/frame/{token}/")
        assert time.process_time() - before < 1, name
        assert answer.status_code == 200
        assert len(answer.content) < 12 * SHOWN_CHARACTERS, name
        assert b"<div><div>" not in answer.content
    assert _children == []


@pytest.mark.django_db
def test_a_document_of_more_than_ten_megabytes_is_refused_with_its_place():
    collection = Collection.objects.create(name="big")
    line = b'{"_id": "d1", "text": "ok"}\n{"_id": "d2", "text": "' + b"word " * 10_000_000 + b'"}\n'
    with pytest.raises(ImportRefused, match=r"^big:2:1: document longer than 10000000 characters$"):
        import_documents(collection=collection, source=io.BytesIO(line), name="big", is_html=True)
    assert not collection.documents.exists()


@pytest.mark.django_db
def test_an_import_says_how_many_documents_it_could_not_make_safe():
    collection, said = Collection.objects.create(name="c"), []
    lines = [
        {"_id": f"d{number}", "text": "<div>" * 50_000 if number < 2 else "<b>x</b>"} for number in range(4)
    ]
    source = io.BytesIO("".join(f"{json.dumps(line)}\n" for line in lines).encode())
    allowance = Allowance(cpu_seconds=2, total_seconds=1)  # the first one overdraws it
    count = import_documents(
        collection=collection, source=source, name="c", is_html=True, allowance=allowance, warn=said.append
    )
    assert count == 4
    assert said == ["4 documents are shown as source text: too hard to make safe"]
    assert list(collection.documents.order_by("doc_id").values_list("text", "html")) == [
        (line["text"], "") for line in lines
    ]


# -- the frame ------------------------------------------------------------------------------------------------


@pytest.fixture
def shown(db, client):
    """Return a function that imports one document and gets its frame."""

    def show(text: str, *, is_html=True, shows_html=True, title="", query="", topic="wings", **fields):
        document = {"_id": "source-id-7", "title": title, "text": text}
        name = f"c{Collection.objects.count()}"
        _, (token,) = make_campaign(
            [document], is_html=is_html, shows_html=shows_html, name=name, titles=[topic], **fields
        )
        client.force_login(User.objects.get(username="bob"))
        answer = client.get(f"/frame/{token}/{query}")
        assert "source-id-7" not in answer.content.decode()
        return answer, answer.content.decode().partition('<div class="page">')[2]

    return show


@pytest.mark.django_db
def test_html_is_shown_where_the_collection_opted_in_and_its_words_elsewhere(shown):
    page = "<h1>On wings</h1><table><tr><td colspan=2>a &lt; b</td></tr></table>"
    _, body = shown(page)
    assert "<h1>On <mark>wings</mark></h1>" in body
    assert '<td colspan="2">a &lt; b</td>' in body
    _, body = shown(page, shows_html=False)
    assert '<pre class="text">\nOn <mark>wings</mark>\n\na &lt; b</pre>' in body
    _, body = shown(page, is_html=False)
    assert '<pre class="text">\n&lt;h1&gt;On <mark>wings</mark>&lt;/h1&gt;' in body


@pytest.mark.django_db
def test_marks_can_be_switched_off_by_the_assessor_and_by_the_campaign(shown):
    assert "<mark>" in shown("wings")[1]
    assert "<mark>" not in shown("wings", query="?marks=0")[1]
    assert "<mark>" not in shown("wings", highlights_terms=False)[1]


@pytest.mark.django_db
def test_an_empty_document_is_called_empty_and_an_untitled_one_has_no_source_id_for_a_title(shown):
    for text in ("", "<p> </p><!-- x -->"):
        answer, body = shown(text)
        assert "This document is empty." in body
        assert "<title>Document</title>" in answer.content.decode()
    assert "This document is empty." not in shown("x", title="A <b>title")[1]


@pytest.mark.django_db
def test_of_a_long_document_the_beginning_is_shown_and_said_how_much_is_not(shown):
    text = "w" * SHOWN_CHARACTERS
    _, body = shown(text, is_html=False)
    assert text in body
    assert "characters" not in body
    _, body = shown(text + "x" * 1234, is_html=False)
    assert text in body
    assert "wx" not in body
    note = "The document has 201,234 characters. The first 200,000 are shown here; the other 1,234 are not."
    assert note in body
    assert "x" * 20 not in body


@pytest.mark.django_db
def test_html_that_is_too_long_is_shown_as_its_words_never_cut(shown):
    _, body = shown("<p>" + "<b>wing</b> " * 20_000)
    assert '<pre class="text">' in body
    assert "<b>" not in body
    assert "are not." not in body  # its text is short enough


@pytest.mark.django_db
def test_the_frame_has_its_own_policy_and_nothing_to_compare_documents_by(shown):
    headers = [dict(shown(text)[0].headers) for text in ("<p>one</p>", "two " * 999)]
    for found in headers:
        del found["Content-Length"]
    assert headers[0] == headers[1] == {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        "font-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'",
        "X-Frame-Options": "SAMEORIGIN",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "private, max-age=3600",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Vary": "Cookie",
    }  # fmt: skip


@pytest.mark.django_db
def test_anothers_document_is_absent(shown, client):
    shown("text")
    token = Lease.objects.get().token
    client.force_login(User.objects.create(username="charlie"))
    foreign, absent = client.get(f"/frame/{token}/"), client.get(f"/frame/{uuid.uuid4()}/")
    assert (foreign.status_code, absent.status_code) == (404, 404)
    client.logout()
    assert client.get(f"/frame/{token}/").status_code == 302
