"""headrace.toml, its overlays and the variables over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace.clock import SECOND
from headrace.config.config import SETTINGS, Config, load, names, parse
from headrace.config.kinds import Choice, WholeNumber
from headrace.config.reading import read as read_settings
from headrace.config.row import fill, rows, section, setting
from headrace.errors import ConfigError, HeadraceError, ProjectError
from scripts.reference import setting_line

NAMED = '[project]\nname = "shop"\n'
STAGING = NAMED + '[env.staging]\nprefix = "st"\n[env.staging.pipeline]\nmode = "real-time"\n'


def read(text: str, environ: Mapping[str, str] | None = None, env: str | None = None) -> Config:
    return parse(text, Path("root"), environ or {}, env=env)


def refused(text: str, environ: Mapping[str, str] | None = None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read(text, environ)
    return caught.value


def test_a_project_needs_only_a_name():
    config = read(NAMED)
    assert (config.name, config.prefix, config.pipeline.mode, config.schema.compatibility) == (
        "shop",
        "",
        "micro-batch",
        "backward",
    )
    assert (config.features, config.data) == (Path("root/features.py"), Path("root/.headrace"))
    assert config.load_timeout == 10 * SECOND
    assert config.origin["project.name"] == "headrace.toml"
    assert config.origin["prefix"] == "default"


def test_serving_and_the_log_have_defaults_that_need_no_service():
    config = read(NAMED)
    assert (config.serve.host, config.serve.port, config.log.partitions) == ("127.0.0.1", 8787, 2)


def test_a_whole_number_comes_from_the_file_as_a_number_and_from_a_variable_as_text():
    assert read(NAMED + "[serve]\nport = 0\n[log]\npartitions = 1024\n").log.partitions == 1024
    assert read(NAMED + "[serve]\nport = 1\n", {"HEADRACE_SERVE_PORT": "65535"}).serve.port == 65_535


def test_a_whole_number_in_quotes_or_out_of_its_bounds_is_refused_with_the_bounds():
    quoted = refused(NAMED + '[serve]\nport = "80"\n')
    assert (quoted.message, quoted.hint) == (
        "'serve.port' takes a whole number from 0 to 65535.",
        "Write it without quotes.",
    )
    text = refused(NAMED, {"HEADRACE_SERVE_PORT": "http"})
    assert (text.where, text.got, text.hint) == ("HEADRACE_SERVE_PORT", "'http'", None)


def test_kafka_is_a_log_with_brokers_and_options():
    text = NAMED + '[log]\nkind = "kafka"\n[kafka]\nbrokers = "a:9092,b:9093"\n[kafka.options]\n'
    config = read(text + 'sasl.username = "ada"\n"sasl.password" = "open"\nenable.ssl = true\nretries = 3\n')
    assert (config.log.kind, config.kafka.brokers) == ("kafka", "a:9092,b:9093")
    assert dict(config.kafka.options) == {
        "sasl.username": "ada",
        "sasl.password": "open",
        "enable.ssl": "true",
        "retries": "3",
    }


def test_no_option_of_kafka_is_ever_shown():
    options = '[kafka.options]\nsasl.password = "open sesame"\n[kafka.spark_options]\na = "open sesame"\n'
    assert "open sesame" not in repr(read(NAMED + options))
    for wrong in ('"open sesame"', '["open sesame"]', "3"):
        assert "open sesame" not in str(refused(NAMED + f"[kafka]\noptions = {wrong}\n"))
    listed = refused(NAMED + '[kafka.options]\nsasl.password = ["open sesame"]\n')
    assert (listed.got, "open sesame" in str(listed)) == ("'sasl.password'", False)
    assert "open sesame" not in str(refused(NAMED, {"HEADRACE_KAFKA_OPTIONS": "open sesame"}))


@pytest.mark.parametrize("brokers", ["here", "here:", "a:1,", "http://a:1", "a:1 b:2", "a:123456"])
def test_brokers_that_are_no_addresses_are_refused(brokers):
    assert refused(NAMED + f'[kafka]\nbrokers = "{brokers}"\n').code == "bad-setting"


def test_a_password_among_the_brokers_is_not_shown():
    error = refused(NAMED + '[kafka]\nbrokers = "ada:open-sesame@here:9092"\n')
    assert (error.got, "open-sesame" in str(error)) == ("'here:9092'", False)


def test_brokers_may_be_addresses_of_either_kind():
    assert read(NAMED + '[kafka]\nbrokers = "[::1]:9092,127.0.0.1:9093"\n').kafka.brokers == "[::1]:9092,127.0.0.1:9093"


def test_parts_are_a_list_in_the_file_and_have_commas_in_a_variable():
    assert read(NAMED + '[processes]\nseparate = ["archive", "late"]\n').processes.separate == ("archive", "late")
    assert read(NAMED, {"HEADRACE_PROCESSES_SEPARATE": "late, archive"}).processes.separate == ("late", "archive")
    assert read(NAMED).processes.separate == ()


@pytest.mark.parametrize("written", ['["achive"]', "[1]", "7", '"archive,pipeline"'])
def test_a_part_that_is_none_is_refused(written):
    error = refused(NAMED + f"[processes]\nseparate = {written}\n")
    assert (error.code, error.message) == ("bad-setting", "'processes.separate' takes a list of parts.")


def test_a_project_without_a_name_is_refused():
    assert "no name" in refused("").message


def test_an_overlay_wins_over_the_file_when_its_environment_is_chosen():
    config = read('prefix = "all"\n' + STAGING, {"HEADRACE_ENV": "staging"})
    assert (config.env, config.prefix, config.pipeline.mode) == ("staging", "st", "real-time")
    assert config.origin["pipeline.mode"] == "headrace.toml [env.staging]"


def test_an_overlay_does_nothing_when_its_environment_is_not_chosen():
    config = read('prefix = "all"\n' + STAGING)
    assert (config.env, config.prefix, config.pipeline.mode) == (None, "all", "micro-batch")


def test_a_variable_wins_over_the_overlay():
    config = read(STAGING, {"HEADRACE_ENV": "staging", "HEADRACE_PREFIX": "mine", "HOME": "/home/ada"})
    assert config.prefix == "mine"
    assert config.origin["prefix"] == "HEADRACE_PREFIX"


def test_the_environment_named_in_the_call_wins_over_the_variable():
    assert read(STAGING + "[env.live]\n", {"HEADRACE_ENV": "staging"}, env="live").env == "live"


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_has_a_variable_that_works(name):
    kind = SETTINGS[name].kind
    values: dict[str, Sequence[str]] = {
        "a duration": ["7s"],
        "a share from 0 to 1": ["0.5"],
        "a number above zero": ["0.5"],
        "brokers": ["other:9092"],
        "an address": ["https://other:8081"],
        "a Redis address": ["redis://other:6380"],
        "env:NAME": ["env:OTHER"],
        "a table of text": ['{"client.id": "other"}'],
        "a list of parts": ["late,archive"],
        "a time zone": ["Europe/Berlin"],
        "days": ["2026-12-25"],
    }
    match kind:
        case Choice(choices):
            value = choices[-1]
        case WholeNumber(least=least):
            value = str(max(7, least))
        case _:
            value = "70d" if name == "drift.reference" else values.get(kind.takes, ["other"])[0]
    config = read(NAMED, {SETTINGS[name].variable: value})
    assert config.origin[name] == SETTINGS[name].variable
    changed = {read(NAMED).origin[key] != config.origin[key]: key for key in SETTINGS}
    assert changed[True] == name


@pytest.mark.parametrize(("text", "share"), [("0", 0.0), ("1", 1.0), ("0.25", 0.25), ("1.0", 1.0)])
def test_a_share_is_a_number_from_0_to_1(text, share):
    assert read(f"{NAMED}[serve]\nsample = {text}\n").serve.sample == share
    assert read(NAMED, {"HEADRACE_SERVE_SAMPLE": text}).serve.sample == share


@pytest.mark.parametrize("text", ["1.1", "-0.5", "nan", "inf", "true", '"0.1"'])
def test_a_share_beyond_that_is_refused(text):
    assert "a share from 0 to 1" in refused(f"{NAMED}[serve]\nsample = {text}\n").message
    assert "a share from 0 to 1" in refused(NAMED, {"HEADRACE_SERVE_SAMPLE": text}).message


def test_an_environment_that_is_not_there_is_refused_with_the_closest_one():
    error = refused(STAGING, {"HEADRACE_ENV": "stagin"})
    assert (error.code, error.where, error.hint) == ("unknown-environment", "HEADRACE_ENV", "Did you mean 'staging'?")


def test_an_environment_asked_of_a_file_without_any_is_refused():
    assert refused(NAMED, {"HEADRACE_ENV": "x"}).hint == "headrace.toml has no [env.NAME] table."


@pytest.mark.parametrize(
    ("text", "got", "hint"),
    [
        ('prefx = "a"\n', "'prefx'", "Did you mean 'prefix'?"),
        ('mode = "real-time"\n', "'mode'", "It belongs in [pipeline]."),
        ('[pipeline]\nprefix = "a"\n', "'pipeline.prefix'", "It belongs above the first [table]."),
        ('[pipelines]\nmode = "real-time"\n', "'pipelines'", "Did you mean 'pipeline.mode'?"),
        ('[env.live]\nprefx = "a"\n', "'prefx'", "Did you mean 'prefix'?"),
    ],
)
def test_an_unknown_key_is_refused_with_a_hint(text, got, hint):
    error = refused(text)
    assert (error.code, error.got, error.hint) == ("unknown-setting", got, hint)


def test_a_mistake_in_an_overlay_that_is_not_chosen_is_found_too():
    assert refused(NAMED + "[env.live]\nprefix = 3\n").where == "headrace.toml [env.live]"


def test_an_unknown_variable_is_refused_with_the_closest_one():
    error = refused(NAMED, {"HEADRACE_PREFX": "a"})
    assert (error.code, error.hint) == ("unknown-setting", "Did you mean 'HEADRACE_PREFIX'?")


@pytest.mark.parametrize(
    "text",
    [
        "prefix = 3",
        'prefix = "Not A Name"',
        'prefix = ["a"]',
        'data = ""',
        'data = "a\\u0000b"',
        "load_timeout = 10",
        'load_timeout = "soon"',
        'load_timeout = "0s"',
        'pipeline = "real-time"',
        '[pipeline]\nmode = "realtime"',
        "[schema]\ncompatibility = true",
        "[project]\nname = 7",
        "[log]\npartitions = 0",
        "[log]\npartitions = true",
        "[log]\npartitions = 2.0",
        '[log]\npartitions = "2"',
        "[serve]\nport = 65536",
        "[serve]\nport = -1",
        "[serve]\nhost = 127",
        '[serve]\nhost = "http://here"',
        '[serve]\nhost = ""',
        '[project]\nname = "../up"',
        'env = "staging"',
        '[env]\nstaging = "x"',
        "this is not TOML",
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_with_its_origin(text):
    error = refused(text)
    assert error.code == "bad-setting"
    assert error.where == "headrace.toml"
    assert error.got


def test_what_is_not_toml_is_refused_with_the_line_and_what_to_do():
    error = refused("[project]\nname = shop")
    assert (error.code, error.message, error.where) == ("bad-setting", "headrace.toml is not TOML.", "headrace.toml")
    assert "line 2" in (error.got or "")
    assert error.hint == 'Mend the line that is named. A text stands in quotes, as in name = "shop".'


WRONG = {
    "lake.path": [
        "ftp://here/lake",
        "s3:/bucket",
        "s3://",
        "http://here/lake",
        "wasb://c/x",
        "  ",
        "a\0b",
        "file://here",
    ],
    "store.url": ["redis://here:99999", "redis://here/three", "http://here", "redis://", "unix://", "redis://here?x=1"],
    "kafka.brokers": ["here:0", "here:99999", "a b:9092", "256.0.0.1:9092", ":9092", "a:1,,b:2"],
    "schema.registry": [
        "http://",
        "http://:8081",
        "http://here:99999",
        "http://here:x",
        "https://[::1",
        "http://a?b=c",
    ],
    "alerts.webhook": ["hooks.slack.com/x", "http://256.1.1.1/", "ftp://here"],
    "alerts.secret": ["open sesame", "env:", "env:1x"],
    "serve.host": ["256.1.1.1", "a:b", "here/there", "-"],
    "serve.certificate": ["s3://bucket/cert.pem", "a\0b"],
    "models.path": ["s3://bucket/models", "  "],
    "data": ["s3://bucket/data"],
    "features": ["https://here/features.py"],
    "drift.zone": ["Mars/Olympus", "", "/etc"],
    "drift.holidays": ["Christmas", "2026-13-01", "2026-12-25; 2026-12-26"],
    "drift.window": ["29d"],
    "kafka.options": ['{"security.protocol": "SSLL"}', '{"sasl.mechanism": "SCRAM-SHA-255"}'],
    "lake.options": ['{"AWS_ENDPOINT_URL": "minio:9000"}', '{"aws_endpoint": "ftp://here"}'],
    "serve.timeout": ["1", "soon", "0s", "-1s", "200000d"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_structured_value_is_checked_when_the_settings_are_read(name, value):
    error = refused(NAMED, {SETTINGS[name].variable: value})
    assert (error.code, error.where) == ("bad-setting", SETTINGS[name].variable)
    assert name in error.message
    assert error.hint


RIGHT = {
    "lake.path": [
        "lake",
        "../lake",
        "/data/lake",
        "s3://bucket/lake",
        "gs://bucket",
        "abfss://box@account.dfs.core.windows.net/x",
    ],
    "store.url": ["redis://here", "rediss://[::1]:6380/3", "unix:///run/redis.sock?db=2", "env:REDIS_URL"],
    "kafka.brokers": ["here:9092,10.0.0.1:9093,[::1]:9094", "kafka-0.kafka.svc.cluster.local:9092", "my_broker:9092"],
    "schema.registry": ["http://here", "https://here.example:8081/api/v1", "http://[::1]:8081"],
    "alerts.webhook": ["https://hooks.slack.com/services/T0/B0/xyz"],
    "serve.host": ["0.0.0.0", "::", "localhost", "my-host.example"],
    "kafka.options": ['{"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "client.id": "x"}'],
    "lake.options": ['{"AWS_ENDPOINT_URL": "http://minio:9000", "AWS_REGION": "env:AWS_REGION"}'],
    "drift.zone": ["Europe/Berlin", "UTC"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in RIGHT.items() for value in values])
def test_a_value_of_the_right_form_is_taken(name, value):
    assert read(NAMED, {SETTINGS[name].variable: value}).origin[name] == SETTINGS[name].variable


def test_what_a_folder_or_address_may_be_is_in_the_hint():
    error = refused(NAMED, {"HEADRACE_LAKE_PATH": "ftp://here/lake"})
    assert error.got == "'ftp://here/lake', no storage that can be reached: ftp://"
    assert error.hint == ("Write a folder, or an address that begins with s3://, gs://, abfs://, abfss://, file://.")


def test_a_bad_choice_is_refused_with_the_closest_one_and_the_variable_it_came_from():
    error = refused(NAMED, {"HEADRACE_PIPELINE_MODE": "realtime"})
    assert (error.where, error.got, error.hint) == ("HEADRACE_PIPELINE_MODE", "'realtime'", "Did you mean 'real-time'?")


def test_the_file_is_found_from_a_folder_below(tmp_path):
    (tmp_path / "headrace.toml").write_text(NAMED)
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert load(tmp_path / "a" / "b", {}).root == tmp_path
    assert load(tmp_path / "headrace.toml", {}).root == tmp_path


def test_the_nearest_file_governs(tmp_path):
    (tmp_path / "headrace.toml").write_text(NAMED)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "headrace.toml").write_text('[project]\nname = "inner"\n')
    assert load(tmp_path / "inner", {}).name == "inner"


def test_a_folder_without_a_project_is_refused_with_what_to_do(tmp_path):
    with pytest.raises(ProjectError) as caught:
        load(tmp_path, {})
    assert caught.value.code == "no-project"
    assert "headrace init" in str(caught.value.hint)


def test_a_file_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "headrace.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(HeadraceError, match="cannot be read"):
        load(tmp_path, {})


def test_names_outside_the_process_carry_the_prefix():
    made = names(read('prefix = "eu"\n' + NAMED))
    assert made.topic("payments") == "eu.payments"
    assert made.group("pipeline") == "eu.shop.pipeline"
    assert made.key("cards", "42") == "eu:shop:cards:42"
    assert made.path("lake") == Path("root/.headrace/eu/lake")


def test_names_without_a_prefix_are_bare():
    made = names(read(NAMED))
    assert made.topic("payments") == "payments"
    assert made.key("cards") == "shop:cards"
    assert made.path("lake") == Path("root/.headrace/lake")


def test_a_registry_has_an_address_a_user_and_the_name_of_a_password():
    text = NAMED + '[schema]\nregistry = "https://here:8081/api/"\nregistry_user = "ada"\nregistry_ca = "ca.pem"\n'
    access = read(text + 'registry_password = "env:SECRET"\n').registry
    assert (access.address, access.user, access.password) == ("https://here:8081/api", "ada", "env:SECRET")
    assert (access.ca, access.certificate, access.timeout) == (str(Path("root") / "ca.pem"), "", 5_000_000)
    assert read(NAMED).registry.address == ""


@pytest.mark.parametrize("address", ["here:8081", "ftp://here", "https://ada:open-sesame@here", "http://a b"])
def test_an_address_that_is_none_is_refused_without_showing_a_password(address):
    error = refused(NAMED + f'[schema]\nregistry = "{address}"\n')
    assert error.code == "bad-setting"
    assert "open-sesame" not in str(error)


def test_a_registrys_password_in_the_file_is_refused_and_not_shown():
    error = refused(NAMED + '[schema]\nregistry_password = "open sesame"\n')
    assert (error.code, "open sesame" in str(error)) == ("bad-setting", False)


@dataclass(frozen=True)
class Kettle:
    """A section of one setting: its row is all that is written of it."""

    cups: int = setting(WholeNumber(1, 12, "cups"), 4, "How many cups are made at once.")


@dataclass(frozen=True)
class Kitchen:
    kettle: Kettle = section(Kettle)


@pytest.mark.parametrize(
    ("text", "environ", "cups", "origin"),
    [
        ("", {}, 4, "default"),
        ("[kettle]\ncups = 2", {}, 2, "headrace.toml"),
        ("[kettle]\ncups = 2\n[env.live.kettle]\ncups = 3", {"HEADRACE_ENV": "live"}, 3, "headrace.toml [env.live]"),
        ("[kettle]\ncups = 2", {"HEADRACE_KETTLE_CUPS": "5"}, 5, "HEADRACE_KETTLE_CUPS"),
    ],
)
def test_a_setting_is_one_row_which_is_read_from_everywhere(text, environ, cups, origin):
    _, given = read_settings(rows(Kitchen), text, Path("root"), environ)
    assert given == {"kettle.cups": (cups, origin)}
    assert fill(Kitchen, {name: value for name, (value, _) in given.items()}) == Kitchen(Kettle(cups))


def test_a_row_has_the_default_the_error_and_the_line_of_the_reference():
    assert Kitchen().kettle.cups == 4
    with pytest.raises(ConfigError, match=r"'kettle.cups' takes a whole number from 1 to 12") as caught:
        read_settings(rows(Kitchen), "[kettle]\ncups = 13", Path("root"), {})
    assert (caught.value.got, caught.value.where) == ("13", "headrace.toml")
    line = setting_line(rows(Kitchen)["kettle.cups"])
    assert line == (
        "| `kettle.cups` | a whole number from 1 to 12 (cups) | `4` | `HEADRACE_KETTLE_CUPS` "
        "| How many cups are made at once. |"
    )


def test_the_defaults_of_a_section_are_those_of_a_project_that_sets_nothing():
    config = read(NAMED)
    sections = {name: value for name, value in vars(config).items() if type(value).__module__.endswith("settings")}
    assert sections == {name: type(value)() for name, value in sections.items()}
    assert len(sections) == 16
