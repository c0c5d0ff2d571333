"""The topics a plan needs, and the log they are in.

Whoever comes first creates them: `headrace up`, `headrace send`, the pipeline. What goes into each is decided by those
who write to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from headrace.clock import Clock
from headrace.config.config import Config, Names, names, resolved
from headrace.errors import ConfigError
from headrace.log.embedded.log import EmbeddedLog
from headrace.log.kafka.log import KafkaLog
from headrace.log.protocol import Log
from headrace.log.topic import Retention, Topic
from headrace.plan.model import Plan
from headrace.processes.broker import running
from headrace.processes.jars import CONNECTOR, present

STATUS, RUNS = "headrace.status", "headrace.runs"
ALERTS, INCIDENTS = "alerts", "headrace.incidents"
"""What is told of incidents, and what people have done about them."""
LETTERS = Retention.of(tombstone_age="30d")
"""A batch of the archive that is run again must see which of its letters were replayed or dropped since."""
SERVED = Retention.of(age="7d")
"""What was served is compared with the lake within days."""


def open_log(config: Config, clock: Clock | None = None, environ: Mapping[str, str] | None = None) -> Log:
    """The log of a project: its own files, or the Kafka cluster it names, or the local broker when it names none.

    Parameters
    ----------
    clock
        Where the embedded log takes arrival times from; Kafka's brokers have their own.
    environ
        Where options such as "env:KAFKA_PASSWORD" are read; the process's own when left out.
    """
    if config.log.kind == "embedded":
        return EmbeddedLog(names(config).path("log"), clock=clock)
    return cluster(config, environ)


def cluster(config: Config, environ: Mapping[str, str] | None = None) -> KafkaLog:
    """The Kafka cluster of a project, whether or not its log is there."""
    variables = os.environ if environ is None else environ
    options, spark_options = (resolved(held, variables) for held in (config.kafka.options, config.kafka.spark_options))
    return KafkaLog(config.kafka.brokers or _local(config), options, spark_options)


def broker_folder(config: Config) -> Path:
    """Where a project's local broker keeps everything."""
    return config.data / "kafka"


def _local(config: Config) -> str:
    found = running(broker_folder(config))
    if found is None:
        message = "No Kafka brokers are named, and no local broker runs."
        hint = "Start one with `headrace up` or `headrace kafka up`, or set kafka.brokers in headrace.toml."
        raise ConfigError("log-unreachable", message, hint=hint)
    return found.brokers


def spark_jars(config: Config, plan: Plan | None = None) -> list[Path]:
    """What Spark needs on its classpath to read a project's log, and Avro where a stream is of it."""
    avro = plan is not None and any(stage.stream.format.endswith("avro") for stage in plan.admissions)
    return present(CONNECTOR) if avro or config.log.kind == "kafka" else []


def topics(plan: Plan, named: Names, partitions: int) -> list[Topic]:
    """Every topic of a plan: events, refused and late records, tiles and their runs, what was served, how things stand.

    >>> import headrace as hr
    >>> from pathlib import Path
    >>> from headrace.plan.build import build
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"clicks_1h": hr.count(over="1h")})
    >>> [topic.name for topic in topics(build([users]), Names("", "shop", Path("data")), 2)]
    ['clicks', 'clicks.dead', 'changelog.clicks.by_user', 'served.users', 'headrace.runs', 'headrace.status']
    """
    made = []
    for stage in plan.admissions:
        name = stage.stream.name
        arrival = "producer" if stage.stream.arrival.source == "producer" else "log"
        made.append(Topic(named.topic(name), partitions, arrival=arrival))
        made.append(Topic(named.topic(f"{name}.dead"), 1, True, LETTERS))
        if stage.stream.late == "side_output":
            made.append(Topic(named.topic(f"{name}.late"), 1, True))
    scored = [model for model in plan.models if model.stream is not None]
    made += [Topic(named.topic(f"{model.predictions.name}.failed"), 1, True, LETTERS) for model in scored]
    made += [Topic(named.topic(f"changelog.{tiles.id}"), 1, True) for tiles in plan.tile_sets]
    views = dict.fromkeys(planned.view.name for planned in plan.features)
    made += [Topic(named.topic(f"served.{view}"), 1, retention=SERVED) for view in views]
    if scored:
        made += [Topic(named.topic(name), 1) for name in (ALERTS, INCIDENTS)]
    return [*made, *(Topic(named.topic(name), 1, True) for name in (RUNS, STATUS))]


def create(log: Log, wanted: Iterable[Topic]) -> None:
    """Create the topics that are not there; one that is keeps its partitions, its retention and its clock.

    A topic in which producers say when records arrived is refused, unless its stream says so too.
    """
    there = log.topics()
    for topic in wanted:
        kept = there.get(topic.name, topic)
        if kept.arrival == "producer" and topic.arrival != "producer":
            message = f"Topic {topic.name!r} keeps the producers' timestamps, and arrival is to be the log's."
            hint = (
                "Set the topic's `message.timestamp.type` to LogAppendTime, or declare the stream with "
                'arrival="producer": lateness is then what producers say it is.'
            )
            raise ConfigError("wrong-arrival", message, got="message.timestamp.type=CreateTime", hint=hint)
        log.create_topic(
            topic.name,
            partitions=kept.partitions,
            compacted=topic.compacted,
            retention=kept.retention,
            arrival=kept.arrival,
        )
