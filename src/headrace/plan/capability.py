"""Which stage runs in which mode, and why not where it does not.

The table is what `headrace plan` prints and what the planner obeys. The real-time column rests on what was tried on
Spark 4.3 (see ARCHITECTURE.md); what was not tried there counts as "no" until it has been.
"""

from __future__ import annotations

from headrace.config.config import Config
from headrace.errors import ConfigError, shown

MODES = ("batch", "micro-batch", "real-time")

STAGES: dict[str, dict[str, str | None]] = {
    "read kafka": {"batch": None, "micro-batch": None, "real-time": None},
    "read embedded": {
        "batch": None,
        "micro-batch": None,
        "real-time": "Spark reads event by event from Kafka only, and the log is embedded",
    },
    "admit": {"batch": None, "micro-batch": None, "real-time": None},
    "admit confluent-avro": {
        "batch": None,
        "micro-batch": None,
        "real-time": "a schema that appears while the query runs is looked up by a Python function",
    },
    "deduplicate": {"batch": None, "micro-batch": None, "real-time": None},
    "tiles": {"batch": None, "micro-batch": None, "real-time": None},
    "late lane": {
        "batch": None,
        "micro-batch": "late events are folded from the lake, by a batch job beside the stream",
        "real-time": "late events are folded from the lake, by a batch job beside the stream",
    },
    "backfill": {
        "batch": None,
        "micro-batch": "tiles before the hand-over are written once, by a batch job",
        "real-time": "tiles before the hand-over are written once, by a batch job",
    },
}
"""stage -> mode -> None where it runs, else the reason why it does not."""


def reason_against(stage: str, mode: str, format: str = "json", log: str = "kafka") -> str | None:
    """Why a stage over a stream of this format in this log does not run in a mode; None if it does.

    >>> reason_against("tiles", "real-time") is None
    True
    >>> reason_against("tiles", "real-time", log="embedded")
    'Spark reads event by event from Kafka only, and the log is embedded'
    """
    needed = (STAGES[stage], STAGES.get(f"admit {format}", STAGES["admit"]), STAGES[f"read {log}"])
    return next((each[mode] for each in needed if each[mode]), None)


def refuse_impossible_mode(config: Config) -> None:
    """Refuse settings whose log cannot be read in the pipeline's mode, whatever the project defines."""
    if STAGES[f"read {config.log.kind}"][config.pipeline.mode] is None:
        return
    message = "Real-time mode needs Kafka: Spark reads event by event from no other log, and this log is embedded."
    hint = 'Take Kafka (`headrace up --kafka`, or log.kind = "kafka"), or leave pipeline.mode at "micro-batch".'
    where = config.origin["pipeline.mode"]
    raise ConfigError("bad-setting", message, got=shown(config.pipeline.mode), hint=hint, where=where)
