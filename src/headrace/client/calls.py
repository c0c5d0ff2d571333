"""`hr.Client`: features and status from a serving process, over kept-alive HTTP."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

from headrace.client.address import Key, address_of, features_path, name_of
from headrace.client.again import LOOK, READ, SEND, Patience, Safe, Waiting, asked
from headrace.client.answer import Answer, Place, Ready, answer_of, object_of, places_of, ready_of
from headrace.client.table import frame_of
from headrace.client.wire import Reply, Request, Wire
from headrace.clock import SECOND, duration, micros, show_time
from headrace.errors import DataError, shown

if TYPE_CHECKING:
    import pandas as pd

    from headrace.define.stream import Stream
    from headrace.define.view import View

LINES = "application/x-ndjson"


class Client:
    """Reads features over HTTP. Any number of threads may share it.

    A read that finds the server away or busy is repeated, after pauses that grow and are random; every call ends.

    Parameters
    ----------
    url
        Where the service answers, as in `http://127.0.0.1:8080`.
    timeout
        How long one try may take.
    retries
        How many more tries there are.
    within
        How long a call may take, with all its tries and pauses.
    api_key
        Sent with every request, as a bearer token; never shown.
    connections
        How many connections are kept, and how many keys are read at once.
    tls
        How an https server is to be trusted; by default as the machine trusts.
    waiting
        Where chance and time come from, for your tests.

    Examples
    --------
    >>> import headrace as hr
    >>> with hr.Client("http://127.0.0.1:1", timeout="1s", retries=0) as client:
    ...     client.features("card_activity", "42")
    Traceback (most recent call last):
    headrace.errors.MachineError: Serving did not answer.
      code: no-answer
      where: http://127.0.0.1:1
      got: ConnectionRefusedError, '[Errno 111] Connection refused', asked once
      hint: Is it running there? See `headrace status` and `headrace logs serve`.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: Any = "2s",
        retries: int = 3,
        within: Any = "10s",
        api_key: str | None = None,
        connections: int = 8,
        tls: ssl.SSLContext | None = None,
        waiting: Waiting | None = None,
    ) -> None:
        address = address_of(url)
        self.url, self.connections, self._prefix = address.url, _count("connections", connections, 1), address.prefix
        self._patience = Patience(
            duration(timeout, "the client's timeout") / SECOND,
            _count("retries", retries, 0),
            duration(within, "the time for a call") / SECOND,
        )
        self._headers = {"Accept": "application/json", **_authorization(api_key)}
        self._wire, self._waiting, self.closed = Wire(address, connections, tls), waiting, False
        self._threads = ThreadPoolExecutor(connections, "headrace-client")

    def features(self, view: str | View, key: Key) -> Answer:
        """All features of a key as they are now.

        Parameters
        ----------
        view
            The view's name; or the view itself, and then timestamps are datetimes and decimals have all their digits.
        key
            One value; a tuple in the order of the view's columns; or a dict by their names.

        Raises
        ------
        HeadraceError
            What the server refuses, with its own code; `no-answer` when there is no answer in time.
        """
        return answer_of(self._get(features_path(view, key)), view)

    def features_json(self, view: str | View, key: Key) -> bytes:
        """The same as JSON, byte by byte as the server wrote it: every number has all its digits."""
        reply = self._get(features_path(view, key))
        answer_of(reply, view)
        return reply.body

    def features_of(self, view: str | View, keys: Iterable[Key]) -> list[Answer]:
        """All features of several keys, in their order; several are read at once. The first error ends it."""
        return self._read(view, _several(keys))

    def frame(self, view: str | View, keys: Iterable[Key]) -> pd.DataFrame:
        """The same as a table.

        One row for each key: its columns, the features, `as_of`, `freshness_ms`, `stale` and `missing`.
        """
        return frame_of(view, self.features_of(view, keys))

    def status(self) -> dict[str, Any]:
        """How the service and the pipeline behind it stand: what `/status.json` says."""
        return object_of(self._get("/status.json"))

    def ready(self) -> Ready:
        """Whether values can be served, and what is waited for."""
        return ready_of(self._get("/ready", LOOK))

    def send(self, stream: str | Stream, events: Iterable[Mapping[str, Any] | bytes]) -> list[Place]:
        """Append a few events, all or none; for many there is `hr.Producer`.

        They are sent again only when surely nothing was taken. After `no-answer` they may or may not be in the log:
        send them again, for copies of one event id and time count once.

        Parameters
        ----------
        events
            Rows as JSON has them, aware datetimes included, or their JSON text as bytes.
        """
        body = b"\n".join([_line(event) for event in events])
        headers = {**self._headers, "Content-Type": LINES}
        request = Request("POST", f"{self._prefix}/v1/events/{name_of(stream)}", headers, body, repeated=False)
        return places_of(self._ask(request, SEND))

    def close(self) -> None:
        """Close the connections; what is asked after that is refused."""
        self.closed = True
        self._wire.close()
        self._threads.shutdown(wait=False)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def _read(self, view: str | View, keys: list[Key]) -> list[Answer]:
        """The one place that reads several keys: a request each, over the kept connections."""
        paths = [features_path(view, key) for key in keys]
        if len(paths) < 2 or self.closed:
            return [answer_of(self._get(path), view) for path in paths]
        return list(self._threads.map(lambda path: answer_of(self._get(path), view), paths))

    def _get(self, path: str, safe: Safe = READ) -> Reply:
        return self._ask(Request("GET", self._prefix + path, self._headers), safe)

    def _ask(self, request: Request, safe: Safe) -> Reply:
        if self.closed:
            raise DataError("not-running", "The client is closed.", got=self.url, hint="Make another.")

        def attempt(seconds: float) -> Reply:
            return self._wire.exchange(request, seconds)

        return asked(attempt, self.url, self._patience, safe, self._waiting)


def _authorization(api_key: str | None) -> dict[str, str]:
    if api_key is None:
        return {}
    if not isinstance(api_key, str) or not api_key or not all("!" <= sign <= "~" for sign in api_key):
        # What came is not shown: it is a secret all the same.
        raise DataError("bad-argument", "An API key is text of visible ASCII characters, without spaces.")
    return {"Authorization": f"Bearer {api_key}"}


def _count(what: str, value: Any, least: int) -> int:
    if type(value) is not int or value < least:
        raise DataError("bad-argument", f"`{what}` is a whole number from {least}.", got=shown(value))
    return value


def _several(keys: Iterable[Key]) -> list[Key]:
    if isinstance(keys, str | bytes | Mapping):
        raise DataError("bad-argument", "Several keys are a list.", got=shown(keys), hint="Put one key into a list.")
    return list(keys)


def _line(event: Mapping[str, Any] | bytes) -> bytes:
    """An event as one line. A line end in JSON text lies between its parts, for in strings it is escaped."""
    if isinstance(event, bytes):
        return event.replace(b"\n", b" ")
    try:
        text = json.dumps(dict(event), separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_moment)
        return text.encode()
    except (TypeError, ValueError) as error:
        hint = "Hand over its JSON text as bytes, or use hr.Producer, which knows the stream's types."
        raise DataError("bad-record", "An event has no JSON text.", got=shown(str(error)), hint=hint) from error


def _moment(value: Any) -> str:
    if isinstance(value, datetime):
        return show_time(micros(value, "an event's time"))
    raise TypeError(f"{type(value).__name__} has no form in JSON")
