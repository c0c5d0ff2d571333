"""`hr.Client`: features, scores and status from a serving process, over kept-alive HTTP."""

from __future__ import annotations

import functools
import ssl
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from headrace.client.address import Key, address_of, features_path, named
from headrace.client.answer import (
    EventPosition,
    FeatureAnswer,
    Readiness,
    Refused,
    answer_of,
    answers_of,
    object_of,
    only_answer,
    places_of,
    ready_of,
)
from headrace.client.batch import KeyBatch, RequestValues, body_of, halves, listed, pieces
from headrace.client.connection import HttpRequest, Reply, Wire
from headrace.client.dataframe import frame_of
from headrace.client.event_json import line_of
from headrace.client.retry import LOOK, READ, SEND, Patience, RetryClock, Safe, call_with_retries
from headrace.client.score import Score, Scores, scores_of
from headrace.client.score import body_of as score_body
from headrace.clock import SECOND, duration
from headrace.errors import DataError, shown
from headrace.http_paths import EVENTS, FEATURES_OF_KEYS, READY, SCORE, STATUS, fill_path
from headrace.public_calls import check_making

if TYPE_CHECKING:
    import pandas as pd

    from headrace.define.dimension import Keyed
    from headrace.define.feature_set import FeatureSet
    from headrace.define.model import Model
    from headrace.define.stream import Stream

    Readable: TypeAlias = str | Keyed | FeatureSet

LINES = "application/x-ndjson"
T = TypeVar("T")


@check_making
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
        How many connections are kept, and how many requests a call makes at once.
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
        waiting: RetryClock | None = None,
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

    @overload
    def features(
        self, view: Readable, key: Key, *, request: Mapping[str, Any] | None = None, stale: str | None = None
    ) -> FeatureAnswer: ...

    @overload
    def features(
        self, view: Readable, *, keys: Iterable[Key], request: RequestValues = None, stale: str | None = None
    ) -> list[FeatureAnswer | Refused]: ...

    def features(
        self,
        view: Readable,
        key: Key | None = None,
        *,
        keys: Iterable[Key] | None = None,
        request: Any = None,
        stale: str | None = None,
    ) -> FeatureAnswer | list[FeatureAnswer | Refused]:
        """All features of a key as they are now, or of several.

        Parameters
        ----------
        view
            The name of a view or feature set; or itself, and then timestamps are datetimes and decimals have all
            their digits.
        key
            One value; a tuple in the order of the view's columns; or a dict by their names.
        keys
            Several of them: answers come in their order, and one that was not answered is `Refused`.
        request
            What on-demand features take: a dict, or for several keys one dict for each.
        stale
            `refuse` to have an error in the place of values that are too old, `flag` to have them all the same; left
            out, the server's setting decides.

        Raises
        ------
        HeadraceError
            What the server refuses, with its own code; `no-answer` when there is no answer in time.
        """
        if keys is not None:
            if key is not None:
                raise DataError("bad-argument", "Ask for one key or for several, not for both.", got=shown(key))
            return self._several(view, listed(keys), request, stale)
        if key is None:
            raise DataError("bad-argument", "A key is missing.", hint="Give one; () asks a view that has none.")
        if request is None and stale is None:
            return answer_of(self._get(features_path(view, key)), view)
        return answered(self._several(view, [key], request, stale))[0]

    def features_at(self, view: Readable, key: Key, at: str | datetime) -> FeatureAnswer:
        """All features of a key as they were known at a past moment, from the lake: exact, and slower.

        Parameters
        ----------
        at
            An aware datetime, or RFC 3339 text.
        """
        return answer_of(self._get(features_path(view, key, at)), view)

    def features_json(
        self,
        view: Readable,
        key: Key,
        at: str | datetime | None = None,
        *,
        request: Mapping[str, Any] | None = None,
    ) -> bytes:
        """The same as JSON, byte by byte as the server wrote it: every number has all its digits."""
        if request is None:
            reply = self._get(features_path(view, key, at))
            answer_of(reply, view)
            return reply.body
        if at is not None:
            raise DataError("bad-argument", "Values of a past moment take no request values.", got=shown(request))
        (piece,) = pieces([key], request)
        reply = self._post(FEATURES_OF_KEYS, body_of(named(view), piece, None))
        answered(answers_of(reply, view, 1))
        return only_answer(reply)

    def features_of(
        self, view: Readable, keys: Iterable[Key], *, request: RequestValues = None, stale: str | None = None
    ) -> list[FeatureAnswer]:
        """All features of several keys, in their order; the first that was not answered is raised."""
        return answered(self._several(view, listed(keys), request, stale))

    def frame(
        self, view: Readable, keys: Iterable[Key], *, request: RequestValues = None, stale: str | None = None
    ) -> pd.DataFrame:
        """The same as a table.

        One row for each key: its columns, the features, `as_of`, `freshness_ms`, `stale` and `missing`.
        """
        return frame_of(view, self.features_of(view, keys, request=request, stale=stale))

    @overload
    def score(
        self,
        model: str | Model,
        key: Key,
        *,
        request: Mapping[str, Any] | None = None,
        version: int | None = None,
        stale: str | None = None,
    ) -> Score: ...

    @overload
    def score(
        self,
        model: str | Model,
        *,
        keys: Iterable[Key],
        request: RequestValues = None,
        version: int | None = None,
        stale: str | None = None,
    ) -> Scores: ...

    def score(
        self,
        model: str | Model,
        key: Key | None = None,
        *,
        keys: Iterable[Key] | None = None,
        request: Any = None,
        version: int | None = None,
        stale: str | None = None,
    ) -> Score | Scores:
        """What a model says of a key as it is now, or of several; see `features` for how they are asked.

        Parameters
        ----------
        model
            Its name; or itself, and then timestamps among its features are datetimes and decimals have all their
            digits.
        version
            One of those that serve; left out, the key decides between champion and challenger.
        """
        if (key is None) == (keys is None):
            got = "neither" if key is None else "both"
            raise DataError("bad-argument", "Ask for the score of one key or of several.", got=got)
        asked = list(pieces([key] if keys is None else listed(keys), request))  # type: ignore[list-item]

        path = fill_path(SCORE, named(model))

        def ask(piece: KeyBatch) -> list[Score | Refused]:
            return scores_of(self._post(path, score_body(piece, stale, version)), model, len(piece.keys))

        found = Scores(self._ask_batches(ask, asked))
        if keys is not None:
            return found
        (one,) = found
        if isinstance(one, Refused):
            raise one.error
        return one

    def status(self) -> dict[str, Any]:
        """How the service and the pipeline behind it stand: what `/status.json` says."""
        return object_of(self._get(STATUS))

    def ready(self) -> Readiness:
        """Whether values can be served, and what is waited for."""
        return ready_of(self._get(READY, LOOK))

    def send(self, stream: str | Stream, events: Iterable[Mapping[str, Any] | bytes]) -> list[EventPosition]:
        """Append a few events, all or none; for many there is `hr.Producer`.

        They are sent again only when surely nothing was taken. After `no-answer` they may or may not be in the log:
        send them again, for copies of one event id and time count once.

        Parameters
        ----------
        events
            Rows as JSON has them, aware datetimes included, or their JSON text as bytes.
        """
        body = b"\n".join([line_of(event) for event in events])
        headers = {**self._headers, "Content-Type": LINES}
        request = HttpRequest("POST", self._prefix + fill_path(EVENTS, named(stream)), headers, body, repeated=False)
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

    def _several(
        self, view: Readable, keys: list[Key], request: RequestValues, stale: str | None
    ) -> list[FeatureAnswer | Refused]:
        """The one place that reads several keys: some together, over the kept connections."""
        name = named(view)

        def ask(piece: KeyBatch) -> list[FeatureAnswer | Refused]:
            return answers_of(self._post(FEATURES_OF_KEYS, body_of(name, piece, stale)), view, len(piece.keys))

        return self._ask_batches(ask, list(pieces(keys, request)))

    def _ask_batches(self, ask: Callable[[KeyBatch], list[T]], asked: list[KeyBatch]) -> list[T]:
        """The answers to all pieces, several at once."""
        work = functools.partial(_whole_or_halves, ask)
        found = map(work, asked) if len(asked) < 2 or self.closed else self._threads.map(work, asked)
        return [answer for several in found for answer in several]

    def _post(self, path: str, body: bytes) -> Reply:
        headers = {**self._headers, "Content-Type": "application/json"}
        return self._ask(HttpRequest("POST", self._prefix + path, headers, body), READ)

    def _get(self, path: str, safe: Safe = READ) -> Reply:
        return self._ask(HttpRequest("GET", self._prefix + path, self._headers), safe)

    def _ask(self, request: HttpRequest, safe: Safe) -> Reply:
        if self.closed:
            raise DataError("not-running", "The client is closed.", got=self.url, hint="Make another.")

        def attempt(seconds: float) -> Reply:
            return self._wire.exchange(request, seconds)

        return call_with_retries(attempt, self.url, self._patience, safe, self._waiting)


def _whole_or_halves(ask: Callable[[KeyBatch], list[T]], piece: KeyBatch) -> list[T]:
    """The answers to keys that go together, in halves when they are too many for the server."""
    try:
        return ask(piece)
    except DataError as error:
        if error.code != "too-large" or len(piece.keys) < 2:
            raise
    return [answer for half in halves(piece) for answer in _whole_or_halves(ask, half)]


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


def answered(found: list[FeatureAnswer | Refused]) -> list[FeatureAnswer]:
    """The answers when all are; else the first error is raised."""
    for each in found:
        if isinstance(each, Refused):
            raise each.error
    return [each for each in found if isinstance(each, FeatureAnswer)]
