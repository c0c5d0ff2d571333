"""The settings of serving, one row each: where it listens, whom it answers, how much at once, and for how long."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.config.hidden_table import Hidden, Table
from headrace.config.kinds import FILE_PATH, HOST, SHARE, Choice, Seconds, WholeNumber
from headrace.config.row import setting


@dataclass(frozen=True)
class ServeSettings:
    """Who may ask serving, how much at once, and for how long: the section [serve]."""

    host: str = setting(HOST, "127.0.0.1", "The address that serving listens on.")
    port: int = setting(WholeNumber(0, 65_535), 8787, "The port that serving listens on; 0 takes a free one.")
    workers: int = setting(
        WholeNumber(1, 64, "processes"), 1, "How many processes answer; another one fills the store."
    )
    max_body: int = setting(
        WholeNumber(1_000, 536_870_912, "bytes"),
        8_388_608,
        "The largest body of a request, in bytes, before and after decompression.",
    )
    max_lag: int = setting(
        WholeNumber(0, 999_999_999, "events"),
        1_000_000,
        "Unread events of a stream above which no more are taken: the pipeline is too far behind. 0 is no bound.",
    )
    min_free_disk: int = setting(
        WholeNumber(0, 999_999_999, "bytes"),
        268_435_456,
        "Free bytes of the embedded log's disk below which no events are taken. 0 is no bound.",
    )
    max_keys: int = setting(
        WholeNumber(1, 100_000, "keys"),
        1_000,
        "The most keys of one `POST /v1/features`, each counted once for every view that is read.",
    )
    concurrency: int = setting(
        WholeNumber(1, 1_000, "requests"),
        16,
        "How many requests with several keys or with events a worker handles at once.",
    )
    queue: int = setting(
        WholeNumber(0, 100_000, "requests"),
        256,
        "How many more such requests may wait; the next gets 503 and a time to come back. 0 is none.",
    )
    max_connections: int = setting(
        WholeNumber(1, 1_000_000, "connections"),
        4_096,
        "The most connections; one more ends the one that has been idle longest.",
    )
    timeout: float = setting(Seconds(), "30s", "How long a request may take, the sending of it included.")
    idle: float = setting(
        Seconds(), "30s", "How long a connection may be idle, or take to send a request's head, before it is closed."
    )
    drain: float = setting(
        Seconds(), "5s", "How long requests may take to end at a shutdown; `headrace up` waits 8 s for a process."
    )
    dimensions_every: float = setting(
        Seconds(), "10s", "How often a worker looks for changes in the table of a dimension."
    )
    models_every: float = setting(
        Seconds(), "1s", "How often a worker looks for changes in the roles of a model's versions."
    )
    score_timeout: float = setting(
        Seconds(), "1s", "How long a version of a model may take to score; one that is silent for longer is killed."
    )
    score_queue: int = setting(
        WholeNumber(1, 1_000_000, "rows"),
        1_000,
        "The most rows that a version of a model works on in each worker; more get 503.",
    )
    stale: str = setting(
        Choice(("flag", "refuse")),
        "flag",
        "Whether an answer older than its view's `max_staleness` is flagged or refused; a request may choose.",
    )
    sample: float = setting(
        SHARE, 0.01, "The share of reads kept in `served.<view>`, to be compared with the lake. 0 keeps none."
    )
    keys: Hidden = setting(
        Table(),
        {},
        "Names to API keys, as `role:sha256:HASH`, `role:env:NAME` or `role:file:PATH`; roles are read, write, admin, "
        "with `+` between several. `headrace keys new` makes one. Values are never shown.",
    )
    without_keys: str = setting(
        Choice(("loopback", "anywhere")),
        "loopback",
        "Where serving may listen when it has no keys: on this machine alone, or anywhere.",
    )
    certificate: str = setting(FILE_PATH, "", "The certificate, with its chain, to serve over https (PEM).")
    certificate_key: str = setting(FILE_PATH, "", "The key of that certificate, if it is in another file.")


DEFAULTS = ServeSettings()
"""What serving does when nobody says otherwise."""
