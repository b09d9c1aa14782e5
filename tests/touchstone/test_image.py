"""What .ci/image.py finds wrong with the web process of the image."""

import http.server
import importlib.util
import json
import sys
import threading
import urllib.error
from pathlib import Path
from types import SimpleNamespace

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def tried():
    """Return what .ci/image.py says of a web process whose /readyz answers so."""
    spec = importlib.util.spec_from_file_location("image_check", REPOSITORY / ".ci" / "image.py")
    program = importlib.util.module_from_spec(spec)
    sys.modules["image_check"] = program  # its dataclass asks for it
    spec.loader.exec_module(program)
    pages = {"/livez": (200, "ok"), "/login/": (200, 'Log in <link href="/static/a.css">')}
    pages["/static/a.css"] = (200, "a")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            status, text = pages[self.path]
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *words):
            """Say nothing."""

    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    web = SimpleNamespace(process=SimpleNamespace(poll=lambda: None))

    def found(status, **checks):
        pages["/readyz"] = (status, json.dumps({"checks": checks}))
        return program.faults(f"http://127.0.0.1:{site.server_port}", web)

    yield found
    site.shutdown()
    site.server_close()
    del sys.modules["image_check"]


def test_what_readyz_says_with_503_is_told_in_a_line(tried):
    assert tried(200, database="ok", write="ok", schema="ok", worker="none is running") == []
    said = tried(503, database="ok", write="the disk is full", schema="ok")
    assert said == ["/readyz says of write: the disk is full"]
    assert tried(503, database="does not answer") == [
        "/readyz says of database: does not answer",
        "/readyz says of write: not looked at",
        "/readyz says of schema: not looked at",
    ]
    with pytest.raises(urllib.error.HTTPError):
        tried(500)
