"""A small schema registry that speaks the Confluent protocol over HTTP: what tests talk to instead of a real one.

It keeps schemas by number, versions by subject, asks for a password if told to, and can be made to fail: `broken` are
answers given, one each, before it works again.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

TYPE = "application/vnd.schemaregistry.v1+json"


class RegistryServer:
    """The state of a registry; `asked` is every request it got."""

    def __init__(self, user: str = "", password: str = "") -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, list[int]] = {}
        self.asked: list[str] = []
        self.broken: list[tuple[int, bytes]] = []
        self.refuses: list[str] = []
        self.address = ""
        pair = base64.b64encode(f"{user}:{password}".encode()).decode()
        self.authorization = f"Basic {pair}" if user else None

    def register(self, subject: str, schema: str, kind: str = "AVRO", references: list[Any] | None = None) -> int:
        body: dict[str, Any] = {"schema": schema}
        body |= {} if kind == "AVRO" else {"schemaType": kind}
        body |= {"references": references} if references else {}
        number = next((n for n, held in self.schemas.items() if held == body), len(self.schemas) + 1)
        self.schemas[number] = body
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        parts = [unquote(part) for part in path.strip("/").split("/")]
        match method, *parts:
            case "GET", "schemas", "ids", number:
                found = self.schemas.get(int(number))
                return (200, found) if found else (404, {"error_code": 40403, "message": "Schema not found"})
            case "GET", "subjects", subject, "versions", *rest:
                return self.version(subject, *rest)
            case "POST", "subjects", subject, "versions":
                if self.refuses:
                    return 409, {"error_code": 409, "message": "; ".join(self.refuses)}
                return 200, {"id": self.register(subject, body["schema"], body.get("schemaType", "AVRO"))}
            case "POST", "compatibility", "subjects", subject, "versions", "latest":
                if subject not in self.subjects:
                    return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
                return 200, {"is_compatible": not self.refuses, "messages": self.refuses}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def version(self, subject: str, version: str | None = None) -> tuple[int, Any]:
        numbers = self.subjects.get(subject)
        if not numbers:
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        if version is None:
            return 200, list(range(1, len(numbers) + 1))
        at = len(numbers) if version == "latest" else int(version)
        if not 1 <= at <= len(numbers):
            return 404, {"error_code": 40402, "message": f"Version {version} not found."}
        number = numbers[at - 1]
        return 200, {"subject": subject, "version": at, "id": number, **self.schemas[number]}


def _handler(state: RegistryServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply("GET")

        def do_POST(self) -> None:
            self.reply("POST")

        def reply(self, method: str) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            state.asked.append(f"{method} {self.path}")
            if state.broken:
                status, data = state.broken.pop(0)
            elif state.authorization not in (None, self.headers.get("Authorization")):
                status, data = 401, json.dumps({"error_code": 401, "message": "Unauthorized"}).encode()
            else:
                status, body = state.answer(method, urlsplit(self.path).path, json.loads(text) if text else {})
                data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", TYPE)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Requests are in `asked`."""

    return Handler


@contextmanager
def serving(state: RegistryServer, tls: Any = None) -> Iterator[RegistryServer]:
    """Serve on a free port of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    state.address = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
