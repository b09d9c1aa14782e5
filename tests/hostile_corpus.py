"""Documents that try to run a script, to have something loaded, or to lead the page away; and a campaign of them.

A canary, an HTTP server on loopback, counts whatever reaches it. The same corpus is served raw by the canary itself.
"""

import html
import io
import json
import uuid
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from django.utils import timezone

from judging.models import (
    Assessor,
    Campaign,
    Collection,
    Grade,
    Item,
    Lease,
    Scale,
    Slot,
    Topic,
)
from judging.sanitise import Allowance
from judging.services.files import import_documents
from touchstone.models import User

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
    "img data": "<img src='data:image/svg+xml,<svg onload=JS><image href=\"URL/data-svg\"/></svg>' alt=x>",
    "img sizes": "<img sizes=100vw srcset='URL/one 1x, URL/two 2x' src='URL/three' alt='\"><script>JS</script>'>",
    "image set": "<p style='background:image-set(\"URL/set\" 1x);list-style:url(URL/list);content:url(URL/content)'>x",
    "img above": "<img src='../../../../../..URL/above'><img src='%2e%2e%2fURL%2fabove'><img src='\\\\HOST\\share'>",
    "img huge alt": "<img src='URL/alt' alt='" + "\u202e&quot;><script>JS</script>" * 500 + "'>",
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
    "link in the page": "<a href='#x' onclick=JS>go</a><a href=#top>go</a><p id=x onfocus=JS tabindex=0>x",
    "link clobbers": "<a href=#s0 id=s0 name=top>go</a><p id=cookie name=body>x<img name=getElementById src='URL/n'>",
    "links nested": "<a href='URL/one'><table><a href='URL/two' target=_top><b>go</table></a>",
    "link long": "<a href='URL/" + "a" * 20_000 + "' target=_top>go</a>",
    "link bidi": "<a href='URL/\u202egnp.x' title=JS>\u202egnp</a><a href='https://HOST\u2028@HOST' target=_top>go</a>",
    "link quote": "<a href='URL/\"><script>JS</script>' target=_top>go</a>",
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
        canary: Any = self.server
        kind, _, name = unquote(self.path).lstrip("/").partition("/")
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
            assessor=bob, token=uuid.uuid4(), leased_at=now, lease_until=now + timedelta(hours=1),
        )
        for position, item in enumerate(items)
    )  # fmt: skip
    Lease.objects.bulk_create(Lease(token=s.token, slot=s, assessor=bob, leased_at=now) for s in slots)
    return campaign, [slot.token for slot in slots]
