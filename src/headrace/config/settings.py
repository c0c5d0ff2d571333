"""The table of all settings: what each is called, takes, means, and is when nobody says otherwise.

It is data. `config` reads headrace.toml and the environment by it, and the reference in the docs is written from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

VARIABLE = "HEADRACE_"
NUMBER = "a whole number"
SHARE = "a share"
DECIMAL = "a number"
TABLE = "a table of text"
PARTS_LIST = "a list of parts"
DAYS = "days"
LOGS = ("embedded", "kafka")
STORES = ("lmdb", "redis")
MODES = ("micro-batch", "real-time")
DETECTORS = ("page-hinkley", "adwin", "ddm", "hddm-a", "hddm-w")
PARTS = ("archive", "late", "evaluate")
STALE = ("flag", "refuse")
REACH = ("loopback", "anywhere")
COMPATIBILITIES = ("backward", "forward", "full", "none")

# Variables that are not settings.
OTHER_VARIABLES: dict[str, str] = {
    "HEADRACE_ENV": "The environment to use: a name NAME of an `[env.NAME]` overlay.",
    "HEADRACE_SUPERVISOR": "Set by `headrace up` for the processes it starts: whose they are.",
    "HEADRACE_API_KEY": "The API key that verbs such as `headrace get` send to serving; it is never shown.",
    "HEADRACE_DEBUG": "When 1, an unexpected failure shows its Python traceback.",
}


@dataclass(frozen=True)
class Setting:
    """One setting: its dotted name, what it takes, its default and what it means.

    >>> SETTINGS["pipeline.mode"].variable
    'HEADRACE_PIPELINE_MODE'
    """

    name: str
    takes: str
    default: str | None
    meaning: str
    choices: tuple[str, ...] = ()
    pattern: str | None = None
    least: int = 0
    most: int = 0

    @property
    def variable(self) -> str:
        """The environment variable that overrides it."""
        return VARIABLE + self.name.replace(".", "_").upper()

    @property
    def section(self) -> str:
        """The table of headrace.toml it stands in; empty for the top."""
        return self.name.rpartition(".")[0]


class Hidden(Mapping[str, str]):
    """A table whose values may be secrets: it shows its names alone.

    >>> Hidden({"sasl.password": "open sesame"})
    Hidden(['sasl.password'])
    """

    def __init__(self, held: Mapping[str, str]) -> None:
        self._held = dict(held)

    def __getitem__(self, name: str) -> str:
        return self._held[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def __repr__(self) -> str:
        return f"Hidden({sorted(self._held)})"


_NAME = r"[a-z][a-z0-9_-]{0,62}"

SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        setting.name: setting
        for setting in (
            Setting("project.name", "a name", None, "What the project is called. Required.", pattern=_NAME),
            Setting("features", "a path", "features.py", "The Python file that defines streams, views and sets."),
            Setting("data", "a path", ".headrace", "The folder for everything Headrace writes."),
            Setting(
                "prefix",
                "a name",
                "",
                "Put before every topic, group, key and path, so that environments can share a cluster.",
                pattern=f"(?:{_NAME})?",
            ),
            Setting("load_timeout", "a duration", "10s", "How long the features file may take to load."),
            Setting(
                "pipeline.mode",
                "a choice",
                "micro-batch",
                "How Spark runs the live pipeline: in small batches or event by event.",
                choices=MODES,
            ),
            Setting(
                "pipeline.real_time_batch",
                "a duration",
                "5m",
                "How long a batch of real-time mode lasts: at its end output pauses, after a crash it is run again.",
            ),
            Setting(
                "processes.separate",
                PARTS_LIST,
                "",
                "Parts of the Spark process that get a process of their own: archive, late, evaluate.",
                choices=PARTS,
            ),
            Setting(
                "processes.hung_after",
                "a duration",
                "5m",
                "How long a part of the Spark process may do nothing before its jobs are cancelled, and after the same "
                "time again the process is started anew; and a process of `headrace run score`, if there are several.",
            ),
            Setting(
                "schema.compatibility",
                "a choice",
                "backward",
                "What a changed schema must keep being able to read, unless its stream says otherwise.",
                choices=COMPATIBILITIES,
            ),
            Setting(
                "schema.registry",
                "an address",
                "",
                "A registry that speaks the Confluent protocol, as in https://registry:8081; left out, the project's "
                "own files.",
            ),
            Setting("schema.registry_user", "text", "", "The user for the registry's basic authentication."),
            Setting(
                "schema.registry_password",
                "env:NAME",
                "",
                "The variable that holds the password; it is read when the registry is asked and never shown.",
            ),
            Setting("schema.registry_ca", "a file", "", "The authorities to trust over https; left out, the system's."),
            Setting("schema.registry_certificate", "a file", "", "The certificate to show to the registry."),
            Setting("schema.registry_key", "a file", "", "The key of that certificate, if it is in a file of its own."),
            Setting("schema.registry_timeout", "a duration", "5s", "How long one answer of the registry may take."),
            Setting(
                "log.kind",
                "a choice",
                "embedded",
                "Where records are kept: in files of the project, or in a Kafka cluster.",
                choices=LOGS,
            ),
            Setting(
                "log.partitions",
                NUMBER,
                "2",
                "How many partitions a stream's topic is created with; a topic that exists keeps its own.",
                least=1,
                most=1024,
            ),
            Setting(
                "kafka.brokers",
                "brokers",
                "",
                "The cluster, as host:port with commas between; left out, the project's own broker, which "
                "`headrace up` starts.",
            ),
            Setting(
                "kafka.options",
                TABLE,
                "{}",
                "Properties of librdkafka for every client, such as SASL and TLS; `env:NAME` is read from the "
                "environment. In a variable, a JSON object. Values are never shown.",
            ),
            Setting(
                "kafka.spark_options",
                TABLE,
                "{}",
                "What Spark's Kafka connector needs beyond what is translated from `kafka.options`, as it takes it.",
            ),
            Setting(
                "lake.path",
                "a folder or address",
                "",
                "Where history is kept as Delta tables: a folder, or an address such as s3://bucket/lake; left out, "
                "`lake` in the data folder.",
            ),
            Setting(
                "lake.options",
                TABLE,
                "{}",
                "What deltalake needs to reach object storage; `env:NAME` is read from the environment. Values are "
                "never shown.",
            ),
            Setting(
                "archive.every",
                "a duration",
                "10s",
                "How often records are put into the lake when there is no backlog; more often makes smaller files.",
            ),
            Setting(
                "archive.most",
                NUMBER,
                "500000",
                "The most records in one batch of the archive.",
                least=1,
                most=100_000_000,
            ),
            Setting(
                "late.every",
                "a duration",
                "10s",
                "How often the lake is searched for events that came too late for the pipeline.",
            ),
            Setting(
                "audit.every",
                "a duration",
                "1m",
                "How often what was served is compared with the lake while `headrace up` runs.",
            ),
            Setting(
                "audit.most",
                NUMBER,
                "5000",
                "The most samples of a view that are compared each time, drawn evenly; 0 starts no audit.",
                least=0,
                most=10_000_000,
            ),
            Setting(
                "evaluate.every",
                "a duration",
                "10m",
                "How often predictions are joined with the labels that have come, and looked at for drift, while "
                "`headrace up` runs; projects with a label or with drift.watch.",
            ),
            Setting(
                "drift.watch",
                "a choice",
                "labelled",
                "Which models `headrace up` watches for drift: those with a label, all that score a stream, or none.",
                choices=("labelled", "all", "none"),
            ),
            Setting("drift.window", "a duration", "1h", "How long the windows are that are compared."),
            Setting(
                "drift.reference",
                "a duration",
                "28d",
                "How long after a version's first prediction all is taken to be well: its rhythm is learnt from that.",
            ),
            Setting(
                "drift.false_alarms_per_month",
                DECIMAL,
                "1",
                "How many incidents a month may have without a cause, over everything that is watched of a model.",
            ),
            Setting(
                "drift.detector",
                "a choice",
                "page-hinkley",
                "What finds a change in a series once its rhythm is taken out.",
                choices=DETECTORS,
            ),
            Setting(
                "drift.labels_after",
                "a duration",
                "1d",
                "How long after its end a window is judged by its labels, at most the label's horizon.",
            ),
            Setting(
                "drift.keep",
                "a duration",
                "400d",
                "How long an incident that is over is kept and listed; one that is not over is always kept.",
            ),
            Setting("drift.zone", "a time zone", "UTC", "The time zone of hours and days."),
            Setting("drift.holidays", DAYS, "", "Days like no other, as in `2026-12-25, 2026-12-26`."),
            Setting(
                "alerts.webhook",
                "an address",
                "",
                "Where incidents are told by HTTP, as JSON that Slack understands; nowhere when empty.",
            ),
            Setting(
                "alerts.secret",
                "env:NAME",
                "",
                "The variable with the secret by which webhooks are signed; unsigned when empty.",
            ),
            Setting(
                "store.kind",
                "a choice",
                "lmdb",
                "Where tiles are kept for serving: in a file of each process's own, or in a Redis that replicas share.",
                choices=STORES,
            ),
            Setting(
                "store.url",
                "a Redis address",
                "redis://127.0.0.1:6379",
                "The Redis: redis://host:port/number, rediss:// for TLS, unix:///path, or `env:NAME` for a variable "
                "that holds it. An address with a password must come from a variable; it is never shown. Left out, the "
                "project's own Redis if `headrace up` or `headrace redis up` has started one.",
            ),
            Setting(
                "models.path",
                "a folder",
                "",
                "Where versions of models are kept; left out, `models` in the data folder.",
            ),
            Setting("serve.host", "a host", "127.0.0.1", "The address that serving listens on."),
            Setting("serve.port", NUMBER, "8787", "The port that serving listens on; 0 takes a free one.", most=65_535),
            Setting(
                "serve.workers",
                NUMBER,
                "1",
                "How many processes answer; another one fills the store.",
                least=1,
                most=64,
            ),
            Setting(
                "serve.max_body",
                NUMBER,
                "8388608",
                "The largest body of a request, in bytes, before and after decompression.",
                least=1_000,
                most=536_870_912,
            ),
            Setting(
                "serve.max_lag",
                NUMBER,
                "1000000",
                "Events of a stream the pipeline has yet to read, beyond which no more are taken; 0 for no such bound.",
                most=999_999_999,
            ),
            Setting(
                "serve.min_free_disk",
                NUMBER,
                "268435456",
                "Free bytes of the embedded log's disk below which no events are taken; 0 for no such bound.",
                most=999_999_999,
            ),
            Setting(
                "serve.max_keys",
                NUMBER,
                "1000",
                "The most keys of one `POST /v1/features`, each counted once for every view that is read.",
                least=1,
                most=100_000,
            ),
            Setting(
                "serve.concurrency",
                NUMBER,
                "16",
                "How many requests with several keys or with events each worker works on at once.",
                least=1,
                most=1_000,
            ),
            Setting(
                "serve.queue",
                NUMBER,
                "256",
                "How many more of them may wait; one beyond is answered with 503 and a time to come back.",
                most=100_000,
            ),
            Setting(
                "serve.max_connections",
                NUMBER,
                "4096",
                "The most connections; one more ends the one that has been idle longest.",
                least=1,
                most=1_000_000,
            ),
            Setting("serve.timeout", "a duration", "30s", "How long a request may take, the sending of it included."),
            Setting(
                "serve.idle",
                "a duration",
                "30s",
                "How long a connection may do nothing, or take to send a request's head, before it is ended.",
            ),
            Setting(
                "serve.drain",
                "a duration",
                "5s",
                "How long requests under way have to end at a shutdown; `headrace up` waits 8 s for a process to end.",
            ),
            Setting(
                "serve.dimensions_every",
                "a duration",
                "10s",
                "How often each worker looks whether the table of a dimension has changed.",
            ),
            Setting(
                "serve.models_every",
                "a duration",
                "1s",
                "How often each worker looks whether the roles of a model's versions have changed.",
            ),
            Setting(
                "serve.score_timeout",
                "a duration",
                "1s",
                "How long a version of a model may take to score a row; one that says nothing for so long is killed.",
            ),
            Setting(
                "serve.score_queue",
                NUMBER,
                "1000",
                "The most rows that one version of a model has under way in each worker; beyond it requests get 503.",
                least=1,
                most=1_000_000,
            ),
            Setting(
                "serve.stale",
                "a choice",
                "flag",
                "Whether an answer older than its view's `max_staleness` is flagged or refused; a request may say.",
                choices=STALE,
            ),
            Setting(
                "serve.sample",
                SHARE,
                "0.01",
                "The share of reads that are kept in `served.<view>`, to compare them with the lake later; 0 for none.",
            ),
            Setting(
                "serve.keys",
                TABLE,
                "{}",
                "Names to API keys, as `role:sha256:HASH`, `role:env:NAME` or `role:file:PATH`; roles are read, write, "
                "admin, with `+` between several. `headrace keys new` makes one. Values are never shown.",
            ),
            Setting(
                "serve.without_keys",
                "a choice",
                "loopback",
                "Where serving may listen when it has no keys: on this machine alone, or anywhere.",
                choices=REACH,
            ),
            Setting("serve.certificate", "a file", "", "The certificate, with its chain, to serve over https (PEM)."),
            Setting("serve.certificate_key", "a file", "", "The key of that certificate, if it is in another file."),
        )
    }
)
