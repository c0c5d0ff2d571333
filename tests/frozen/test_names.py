"""What Headrace calls its topics, groups, keys, folders and files, for the project of `tests.frozen.shop`."""

from __future__ import annotations

import ast
from dataclasses import astuple
from pathlib import Path

from headrace.config.config import models_folder, names
from headrace.lake.location import root, uri
from headrace.processes.broker import broker_service
from headrace.processes.redis import redis_folder, redis_service
from headrace.processes.state_folder import find_state_folder
from headrace.spark.late.late_lane import late_file
from headrace.spark.pipeline.runs import checkpoint_of
from headrace.topics import broker_folder, topics
from tests.frozen.shop import by_card, plan, read_config
from tests.frozen.source import calls_with_text

NAMING = {"path", "topic", "group", "key"}
"""The methods of `headrace.config.config.Names`."""


def test_every_topic_of_a_plan_has_the_name_and_the_form_that_it_had(golden):
    lines = []
    for topic in topics(plan, names(read_config()), 2):
        kept = topic.retention
        lines += [
            f"{topic.name}: {topic.partitions} partitions, compacted {topic.compacted}, arrival {topic.arrival}, "
            f"age {kept.age}, size {kept.size}, tombstones {kept.tombstone_age}"
        ]
    golden("frozen/topics", "\n".join(lines))


def test_folders_and_files_of_a_project_are_where_they_were(golden):
    config = read_config()
    named, processes = names(config), find_state_folder(config)
    checkpoints = [named.path("checkpoints", checkpoint_of(by_card, run)) for run in ("1", "2")]
    services = [broker_service(broker_folder(config)), redis_service(redis_folder(config))]
    found = {
        "data": named.path(),
        "checkpoint of the first run": checkpoints[0],
        "checkpoint of a later run": checkpoints[1],
        "how far its late lane has come": late_file(checkpoints[1]),
        "models": models_folder(config),
        "models of another folder": models_folder(read_config(more='[models]\npath = "kept"')),
        "lake": root(config),
        "lake of another folder": root(read_config(more='[lake]\npath = "kept"')),
        "lake in object storage": root(read_config(more='[lake]\npath = "s3://kept/shop"')),
        "bronze": uri(config, "payments", "bronze"),
        "lock of the supervisor": processes.lock,
        "status of the supervisor": processes.status,
        "address of a process": processes.ready("serve"),
        "plan of a process": processes.plan("serve"),
        "log of a process": processes.log("serve"),
        **{f"{each.name}, lock": each.lock for each in services},
        **{f"{each.name}, address": each.file for each in services},
        **{f"{each.name}, log": each.log for each in services},
        **{f"{each.name}, log of the last time": each.log_before for each in services},
    }
    golden("frozen/paths", "\n".join(f"{what}: {where}" for what, where in found.items()))


def test_the_code_asks_for_the_names_that_it_asked_for(golden):
    """Every call of a method of `Names` with a text in it; what is not known before it runs is a star."""
    asked = set()
    for call in calls_with_text():
        match call.func:
            case ast.Attribute(ast.Name("click")):
                pass
            case ast.Attribute(_, name) if name in NAMING:
                text = "/".join(map(literal_text, call.args))
                if set(text) - {"*", "/"}:
                    asked.add(f"{name} {text}")
    golden("frozen/asked_names", "\n".join(sorted(asked)))


def literal_text(node):
    """What is known of a text before the code runs."""
    match node:
        case ast.Constant(str() as text):
            return text
        case ast.JoinedStr(parts):
            return "".join(map(literal_text, parts))
    return "*"


def test_the_name_of_a_store_in_redis_and_of_a_group_has_prefix_and_project():
    named = names(read_config())
    assert (named.key("store"), named.group("webhook")) == ("eu:shop:store", "eu.shop.webhook")
    assert astuple(named) == ("eu", "shop", Path("shop/.headrace"))
