"""All settings, one row each: a field of a section with its kind, its default and its meaning.

To add a setting, add a field here. `Config` holds the sections; the section of serving is in `serve_settings`. What is
read, checked, documented and taken by default is derived from the fields (`row`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from headrace.config.hidden_table import Hidden, Table
from headrace.config.kinds import (
    BASE_ADDRESS,
    BROKERS,
    FILE_PATH,
    FOLDER,
    HTTP_ADDRESS,
    POSITIVE,
    REDIS_ADDRESS,
    SECRET,
    STORAGE_PLACE,
    ZONE,
    Choice,
    Choices,
    DayList,
    Duration,
    Text,
    WholeNumber,
)
from headrace.config.row import setting

MODES = ("micro-batch", "real-time")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER")
PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")

OTHER_VARIABLES: dict[str, str] = {
    "HEADRACE_ENV": "The environment to use: a name NAME of an `[env.NAME]` overlay.",
    "HEADRACE_SUPERVISOR": "Set by `headrace up` for the processes it starts: whose they are.",
    "HEADRACE_API_KEY": "The API key that verbs such as `headrace get` send to serving; it is never shown.",
    "HEADRACE_DEBUG": "When 1, an unexpected failure shows its Python traceback.",
}
"""Variables that are not settings."""


@dataclass(frozen=True)
class PipelineSettings:
    """How the live pipeline runs: the section [pipeline]."""

    mode: str = setting(
        Choice(MODES), "micro-batch", "How Spark runs the live pipeline: in small batches, or event by event."
    )
    real_time_batch: int = setting(
        Duration(), "5m", "Length of a real-time batch. Output pauses at its end, and a crash runs it again."
    )


@dataclass(frozen=True)
class ProcessSettings:
    """Which parts of the Spark process stand alone: the section [processes]."""

    separate: tuple[str, ...] = setting(
        Choices(("archive", "late", "evaluate")), [], "Parts of the Spark process that run as processes of their own."
    )
    hung_after: int = setting(
        Duration(),
        "5m",
        "How long a part of the Spark process, or a process of `headrace run score`, may make no progress. Its jobs "
        "are then cancelled; after the same time again its process is restarted.",
    )


@dataclass(frozen=True)
class SchemaSettings:
    """Which changes of a schema are allowed: the section [schema]."""

    compatibility: str = setting(
        Choice(("backward", "forward", "full", "none")),
        "backward",
        "What a changed schema must keep being able to read, unless its stream says otherwise.",
    )


@dataclass(frozen=True)
class RegistryAccess:
    """A schema registry and how to be let in: the section [schema]."""

    address: str = setting(
        BASE_ADDRESS,
        "",
        "The URL of a registry with the Confluent protocol; empty for schemas in files of the project.",
        name="registry",
    )
    user: str = setting(Text(), "", "The user for the registry's basic authentication.", name="registry_user")
    password: str = setting(
        SECRET,
        "",
        "The variable with the password; it is read when the registry is asked, and never shown.",
        name="registry_password",
    )
    ca: str = setting(FILE_PATH, "", "The authorities to trust over https; left out, the system's.", name="registry_ca")
    certificate: str = setting(FILE_PATH, "", "The certificate to show to the registry.", name="registry_certificate")
    key: str = setting(
        FILE_PATH, "", "The key of that certificate, if it is in a file of its own.", name="registry_key"
    )
    timeout: int = setting(Duration(), "5s", "How long one answer of the registry may take.", name="registry_timeout")


@dataclass(frozen=True)
class LogSettings:
    """Where records are kept: the section [log]."""

    kind: str = setting(
        Choice(("embedded", "kafka")),
        "embedded",
        "Where records are kept: in files of the project, or in a Kafka cluster.",
    )
    partitions: int = setting(
        WholeNumber(1, 1_024, "partitions"),
        2,
        "How many partitions a stream's topic is created with; a topic that exists keeps its own.",
    )


@dataclass(frozen=True)
class KafkaSettings:
    """The Kafka cluster: the section [kafka]."""

    brokers: str = setting(
        BROKERS, "", "The cluster, as host:port with commas; empty for the broker that `headrace up` starts."
    )
    options: Hidden = setting(
        Table(words={"security.protocol": PROTOCOLS, "sasl.mechanism": MECHANISMS, "sasl.mechanisms": MECHANISMS}),
        {},
        "Properties of librdkafka for every client, such as SASL and TLS; `env:NAME` is read from the environment. In "
        "a variable, a JSON object. Values are never shown.",
    )
    spark_options: Hidden = setting(
        Table(), {}, "Options of Spark's Kafka connector, beside those translated from `kafka.options`."
    )


@dataclass(frozen=True)
class LakeSettings:
    """Where history is kept: the section [lake]."""

    path: str = setting(
        STORAGE_PLACE, "", "Where Delta tables are kept, as in s3://bucket/lake; empty for `lake` in the data folder."
    )
    options: Hidden = setting(
        Table(endpoints=("AWS_ENDPOINT", "AWS_ENDPOINT_URL")),
        {},
        "Options of deltalake for object storage; `env:NAME` is read from the environment. Values are never shown.",
    )


@dataclass(frozen=True)
class ArchiveSettings:
    """How records are put into the lake: the section [archive]."""

    every: int = setting(
        Duration(), "10s", "How often records go into the lake without a backlog; a shorter time makes smaller files."
    )
    most: int = setting(
        WholeNumber(1, 100_000_000, "records"), 500_000, "The most records in one batch of the archive."
    )


@dataclass(frozen=True)
class LateSettings:
    """How late events are found: the section [late]."""

    every: int = setting(
        Duration(), "10s", "How often the lake is searched for events that came too late for the pipeline."
    )


@dataclass(frozen=True)
class AuditSettings:
    """How what was served is compared with the lake: the section [audit]."""

    every: int = setting(
        Duration(), "1m", "How often what was served is compared with the lake while `headrace up` runs."
    )
    most: int = setting(
        WholeNumber(0, 10_000_000, "samples"),
        5_000,
        "The most samples of a view in one comparison, drawn evenly; 0 turns the audit off.",
    )


@dataclass(frozen=True)
class EvaluateSettings:
    """How predictions are evaluated: the section [evaluate]."""

    every: int = setting(
        Duration(),
        "10m",
        "How often `headrace up` joins predictions with labels and looks for drift, with a label or drift.watch.",
    )


@dataclass(frozen=True)
class DriftSettings:
    """How models are watched for drift: the section [drift]."""

    watch: str = setting(
        Choice(("labelled", "all", "none")),
        "labelled",
        "The models that `headrace up` watches: those with a label, all that score a stream, or none.",
    )
    window: int = setting(Duration(), "1h", "The length of the windows that are compared.")
    reference: int = setting(
        Duration(),
        "28d",
        "Time after a version's first prediction that counts as normal; the rhythm is learnt from it.",
    )
    false_alarms_per_month: float = setting(
        POSITIVE, 1, "How many incidents a month may have without a cause, over everything that is watched of a model."
    )
    detector: str = setting(
        Choice(("page-hinkley", "adwin", "ddm", "hddm-a", "hddm-w")),
        "page-hinkley",
        "What finds a change in a series once its rhythm is taken out.",
    )
    labels_after: int = setting(
        Duration(), "1d", "How long after its end a window is judged by its labels, at most the label's horizon."
    )
    keep: int = setting(
        Duration(), "400d", "How long an incident that is over is kept and listed; one that is not over is always kept."
    )
    zone: str = setting(ZONE, "UTC", "The time zone of hours and days.")
    holidays: tuple[date, ...] = setting(DayList(), "", "Days like no other, as in `2026-12-25, 2026-12-26`.")


@dataclass(frozen=True)
class AlertSettings:
    """Where incidents are sent: the section [alerts]."""

    webhook: str = setting(
        HTTP_ADDRESS, "", "Where incidents are posted, as JSON that Slack understands; empty for nowhere."
    )
    secret: str = setting(SECRET, "", "The variable with the secret that signs webhooks; empty for no signature.")


@dataclass(frozen=True)
class StoreSettings:
    """Where tiles are kept for serving: the section [store]."""

    kind: str = setting(
        Choice(("lmdb", "redis")),
        "lmdb",
        "Where tiles are kept for serving: in a file of each process's own, or in a Redis that replicas share.",
    )
    url: str = setting(
        REDIS_ADDRESS,
        "redis://127.0.0.1:6379",
        "The Redis: redis://host:port/number, rediss:// for TLS, unix:///path, or `env:NAME` for a variable that "
        "holds it, as an address with a password must. Left out, the project's own Redis if one was started.",
    )


@dataclass(frozen=True)
class ModelSettings:
    """Where models are kept: the section [models]."""

    path: str = setting(FOLDER, "", "The folder of the versions of models; empty for `models` in the data folder.")
