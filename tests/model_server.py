"""A small language model on loopback for tests: it answers chat completions as the test says."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def completion(
    said: Any, *, finish="stop", prompt_tokens=100, completion_tokens=5, **more
) -> tuple[int, dict]:
    """Return status and body of a chat completion."""
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    return 200, {"choices": [{"message": {"content": said}, "finish_reason": finish}], "usage": usage, **more}


def graded(grade: int) -> tuple[int, dict]:
    return completion(json.dumps({"grade": grade}))


class ModelServer:
    """`behave(prompt, n)` gets what the user message says and how often that was asked before.

    It returns (status, body) or (status, body, headers), the body as JSON or as bytes or as an iterable of bytes.
    """

    def __init__(self, behave: Callable[[str, int], tuple]) -> None:
        self.behave = behave
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.n_bytes_sent = 0
        self.n_at_once = self.most_at_once = 0
        self.lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer._answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> "ModelServer":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @property
    def prompts(self) -> list[str]:
        return [body["messages"][1]["content"] for body in self.asked]

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        prompt = body["messages"][1]["content"]
        with self.lock:
            n = self.prompts.count(prompt)
            self.asked.append(body)
            self.headers.append(dict(request.headers))
            self.paths.append(request.path)
            self.n_at_once += 1
            self.most_at_once = max(self.most_at_once, self.n_at_once)
        try:
            status, content, *headers = self.behave(prompt, n)
            self._send(request, status, content, headers[0] if headers else {})
        except (BrokenPipeError, ConnectionResetError):
            pass  # who asked has heard enough
        finally:
            with self.lock:
                self.n_at_once -= 1

    def _send(
        self, request: BaseHTTPRequestHandler, status: int, content: Any, headers: dict[str, str]
    ) -> None:
        if isinstance(content, dict | list | str):
            content = json.dumps(content).encode()
        parts = [content] if isinstance(content, bytes) else content
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Connection", "close")
        request.end_headers()
        for part in parts:
            request.wfile.write(part)
            request.wfile.flush()
            self.n_bytes_sent += len(part)
        request.close_connection = True
