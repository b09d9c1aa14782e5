"""A server that keeps what a webhook sends it, and a campaign to tell of."""

import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from judging.models import Collection, CollectionMember
from judging.services.campaigns import DEFAULT_GRADES, create_campaign


class Listener(ThreadingHTTPServer):
    """Keeps what was posted; answers as it is told."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answering)
        self.heard, self.status, self.seconds = [], 204, 0.0

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.server_port}"


class Answering(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.heard.append((self.path, dict(self.headers), body))
        time.sleep(self.server.seconds)
        self.send_response(self.server.status)
        self.send_header("Location", f"{self.server.origin}/elsewhere")
        self.end_headers()
        self.wfile.write(b"secret words that nobody keeps")

    def log_message(self, *_):
        pass


def campaign_of(actor, name="News", *, members=()):
    collection = Collection.objects.create(name=f"{name} collection", is_restricted=bool(members))
    for member in members:
        CollectionMember.objects.create(collection=collection, user=member)
    return create_campaign(
        collection=collection, name=name, user=actor, grades=DEFAULT_GRADES, judgments_per_item=1
    )


def verbs_heard(listener):
    return [json.loads(body)["verb"] for _, _, body in listener.heard]
