"""The local broker: up, found by its project, down; and what `headrace kafka` says of it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from headrace.cli.init import create
from headrace.cli.main import main
from headrace.config import config
from headrace.errors import ConfigError, HeadraceError, MachineError
from headrace.log.kafka.log import KafkaLog
from headrace.processes import broker, jars
from headrace.topics import broker_folder, open_log
from tests.processes.cluster import PASSWORD, free_ports


@pytest.fixture
def shop(tmp_path):
    folder = tmp_path / "shop"
    create(folder)
    with (folder / "headrace.toml").open("a") as file:
        file.write('\n[log]\nkind = "kafka"\n')
    return folder


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headrace.cli.main", "kafka", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.kafka
def test_a_broker_goes_up_serves_its_project_and_goes_down_with_its_data_kept(shop):
    project = ["--project", str(shop)]
    loaded = config.load(shop)
    first = run("up", *project)
    try:
        assert (first.returncode, first.stderr.startswith("The broker is up (pid ")) == (0, True)
        address = first.stdout.strip()
        again = run("up", *project)
        assert (again.returncode, again.stdout.strip()) == (0, address)
        assert again.stderr.startswith("The broker is already up (pid ")
        with open_log(loaded) as log:
            assert isinstance(log, KafkaLog)
            log.create_topic("t")
            log.append("t", b"kept")
        told = json.loads(run("status", *project, "--json").stdout)
        assert (told["brokers"], told["answers"], told["topics"]) == (address, True, 1)
    finally:
        down = run("down", *project)
    assert (down.returncode, down.stderr) == (0, "Stopped the broker.\n")
    assert broker.running(broker_folder(loaded)) is None
    assert run("down", *project).stderr == "No broker was running.\n"

    # It comes back where it was, with what it had.
    assert run("up", *project).stdout.strip() == address
    try:
        with open_log(loaded) as log:
            assert [record.value for record in log.read("t", 0, 0)] == [b"kept"]
    finally:
        broker.down(broker_folder(loaded), grace=1)


@pytest.mark.kafka
def test_a_broker_that_runs_is_not_started_twice_and_another_port_is_refused(kafka):
    with pytest.raises(HeadraceError) as caught:
        broker.up(kafka.folder)
    assert caught.value.code == "already-running"
    assert kafka.brokers in str(caught.value.got)


@pytest.mark.kafka
def test_a_broker_that_cannot_start_is_an_error_with_what_it_said(tmp_path, kafka):
    (port,) = free_ports(1)
    taken = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://{kafka.brokers}",
        "controller.quorum.voters": f"1@{kafka.brokers}",
    }
    with pytest.raises(MachineError) as caught:
        broker.up(tmp_path, port=port, properties=taken)
    assert (caught.value.code, "exit code" in str(caught.value.got)) == ("start-failed", True)
    assert "broker.log" in str(caught.value.hint)
    assert broker.running(tmp_path) is None


@pytest.mark.kafka
def test_a_port_that_somebody_listens_on_is_refused(tmp_path, kafka):
    with pytest.raises(MachineError) as caught:
        broker.up(tmp_path, port=int(kafka.brokers.rpartition(":")[2]))
    assert (caught.value.code, kafka.brokers in str(caught.value.got)) == ("port-taken", True)


def test_a_project_without_brokers_and_without_a_local_one_is_told_what_to_do(shop):
    with pytest.raises(ConfigError) as caught:
        open_log(config.load(shop))
    assert (caught.value.code, "headrace kafka up" in str(caught.value.hint)) == ("log-unreachable", True)


def test_the_status_of_a_cluster_that_does_not_answer_is_a_failure(shop, capsys):
    assert main(["kafka", "status", "--project", str(shop), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["log"], told["answers"], told["local"]) == ("kafka", False, None)
    assert main(["kafka", "status", "--project", str(shop)]) == 1
    assert "answers   no" in capsys.readouterr().out


@pytest.mark.kafka
def test_no_output_of_a_verb_shows_a_password(shop, kafka):
    (port,) = free_ports(1)
    login = "".join(f'{name} = "{value}"\n' for name, value in kafka.login.items())
    verbs = [["kafka", "status"], ["plan"], ["check"], ["tail", "payments"], ["status"]]
    for brokers, tried in ((kafka.guarded, verbs), (f"127.0.0.1:{port}", verbs[:1])):
        (shop / "headrace.toml").write_text(
            f'[project]\nname = "shop"\n[log]\nkind = "kafka"\n[kafka]\nbrokers = "{brokers}"\n[kafka.options]\n{login}'
        )
        said = ""
        for verb in tried:
            command = [sys.executable, "-m", "headrace.cli.main", *verb, "--project", str(shop)]
            ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
            said += ran.stdout + ran.stderr
        assert PASSWORD not in said + repr(config.load(shop))
        assert ("answers   yes" in said) == (brokers == kafka.guarded)


@pytest.mark.kafka
def test_the_jars_are_listed_as_paths_and_as_json(capsys):
    assert main(["kafka", "jars"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert main(["kafka", "jars", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert listed == told["connector"] + told["broker"]
    assert len(told["broker"]) == len(jars.jars(jars.BROKER))
