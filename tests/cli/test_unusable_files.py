"""Files and folders that cannot be used: an error with what, where and a hint. A defect stays a defect."""

from __future__ import annotations

import errno
import os

import pytest

from headrace import machine
from headrace.cli.init import create
from headrace.cli.main import main

PAYMENT = '{"id": "p1", "card": "42", "amount": 1.0, "country": "DE", "at": "2026-01-01T00:00:00Z"}\n'
IMPOSSIBLE = ["payments.jsonl/below", "payments.jsonl", "/proc/nowhere", "/sys/nowhere", "x" * 300, "bytes\udcff"]


@pytest.fixture
def shop(tmp_path, monkeypatch):
    create(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    (tmp_path / "shop" / "payments.jsonl").write_text(PAYMENT)
    return tmp_path / "shop"


@pytest.fixture
def failing(monkeypatch):
    """Make `headrace doctor` raise what is given."""

    def with_error(error: BaseException) -> None:
        def find_java() -> machine.Java:
            raise error

        monkeypatch.setattr(machine, "find_java", find_java)

    return with_error


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("data", IMPOSSIBLE)
def test_a_data_folder_in_an_impossible_place_is_no_defect(monkeypatch, capsys, data):
    monkeypatch.setenv("HEADRACE_DATA", data)
    assert main(["send", "payments", "payments.jsonl"]) == 2
    shown = capsys.readouterr().err
    assert "code: file-unusable" in shown
    assert "hint: " in shown


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("data", IMPOSSIBLE)
def test_check_says_that_a_data_folder_cannot_be_used(monkeypatch, capsys, data):
    monkeypatch.setenv("HEADRACE_DATA", data)
    assert main(["check"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "code: file-unusable" in said.err
    assert "hint: " in said.err


def test_check_leaves_no_data_folder_behind_and_keeps_one_that_is_there(shop, monkeypatch):
    monkeypatch.setenv("HEADRACE_DATA", "new/data")
    assert main(["check"]) == 0
    assert not (shop / "new").exists()
    (shop / "new" / "data").mkdir(parents=True)
    assert main(["check"]) == 0
    assert list((shop / "new" / "data").iterdir()) == []


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    "verb",
    [
        ["check"],
        ["store", "rebuild"],
        ["import", "payments.jsonl", "--stream", "payments", "--arrived-at", "at"],
        ["dead-letters", "replay", "--all"],
        ["late", "run"],
        ["logs"],
        ["up", "--detach"],
        ["run", "serve", "--port", "0"],
    ],
    ids=" ".join,
)
def test_no_verb_calls_an_impossible_data_folder_a_defect(monkeypatch, capsys, verb):
    monkeypatch.setenv("HEADRACE_DATA", "payments.jsonl/below")
    assert main(verb) == 2
    assert "where: data, from HEADRACE_DATA" in capsys.readouterr().err


def test_the_error_names_the_place_the_setting_and_a_way_out(shop, monkeypatch, capsys, golden):
    monkeypatch.setenv("HEADRACE_DATA", "payments.jsonl/below")
    assert main(["send", "payments", "payments.jsonl"]) == 2
    golden("cli/file_unusable", capsys.readouterr().err.replace(str(shop), "SHOP"))


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("name", ["none.jsonl", "none.csv", "none.parquet"])
def test_a_file_to_send_that_is_missing_is_named(capsys, name):
    assert main(["send", "payments", name]) == 2
    shown = capsys.readouterr().err
    assert "code: bad-file" in shown
    assert f"got: '{name}'" in shown
    assert "hint: " in shown


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("name", ["none.jsonl", "none.csv", "none.parquet", "none"])
def test_a_file_to_import_that_is_missing_is_named_with_what_to_do(capsys, name):
    assert main(["import", name, "--stream", "payments", "--arrived-at", "at"]) == 2
    shown = capsys.readouterr().err
    assert "code: bad-file" in shown
    assert f"got: '{name}'" in shown
    assert "hint: Give the path of a file or folder that is there" in shown


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_a_folder_is_no_file_to_send(shop, capsys, ending):
    (shop / f"rows.{ending}").mkdir()
    assert main(["send", "payments", f"rows.{ending}"]) == 2
    assert "code: bad-file" in capsys.readouterr().err


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("rate", ["nan", "inf", "-inf", "0", "-1", "1e-300", "1e300"])
def test_a_rate_that_nothing_can_be_sent_at_is_refused(capsys, rate):
    assert main(["send", "payments", "payments.jsonl", f"--rate={rate}"]) == 2
    assert "code: bad-usage" in capsys.readouterr().err


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    "words",
    [
        "demo --rate nan",
        "demo --rate 0",
        "demo --seconds inf",
        "demo --seconds -1",
        "backfill --rate nan",
        "backfill --wait inf",
        "model add fraud payments.jsonl --threshold nan",
        "model add fraud payments.jsonl --metric auc=nan",
        "model add fraud payments.jsonl --missing amount=inf",
        "model add fraud payments.jsonl --range nan:1",
        "model challenge fraud 1 --share nan",
        "logs -n 99999999999999999999",
        "send payments payments.jsonl --batch-ms -1",
    ],
)
def test_a_number_that_nothing_can_be_done_with_is_refused(capsys, words):
    assert main(words.split()) == 2
    assert "code: bad-usage" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe"])
def test_categories_that_are_no_json_are_refused(shop, capsys, content):
    (shop / "features.py").write_text((shop / "features.py").read_text() + 'risk = hr.model("risk", fraud)\n')
    (shop / "categories.json").write_bytes(content)
    assert main(["model", "add", "risk", "payments.jsonl", "--format", "onnx", "--categories", "categories.json"]) == 2
    shown = capsys.readouterr().err
    assert "The file of categories is not JSON." in shown
    assert "where: categories.json" in shown


def test_a_model_of_python_is_added_only_with_allow_code_and_does_not_run_without(shop, capsys):
    (shop / "features.py").write_text((shop / "features.py").read_text() + 'risk = hr.model("risk", fraud)\n')
    (shop / "risk.py").write_text("open('ran', 'w')\ndef risk(row):\n    return 0.5\n")
    assert main(["model", "add", "risk", "risk.py"]) == 2
    shown = capsys.readouterr().err
    assert "code: code-not-allowed" in shown
    assert "--allow-code" in shown
    assert not (shop / "ran").exists()
    assert not list(shop.rglob("model.json"))


@pytest.mark.parametrize("folder", ["payments.jsonl/shop", "/proc/shop", "/sys/shop"])
@pytest.mark.usefixtures("shop")
def test_a_project_is_not_made_where_no_folder_can_be(capsys, folder):
    assert main(["init", folder]) == 2
    shown = capsys.readouterr().err
    assert "where: the command line" in shown
    assert "code: file-unusable" in shown


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EPERM])
def test_what_may_not_be_written_in_the_data_folder_is_no_defect(shop, failing, capsys, number):
    failing(OSError(number, os.strerror(number), str(shop / ".headrace" / "log" / "payments.topic")))
    assert main(["doctor"]) == 2
    assert "where: data, from default" in capsys.readouterr().err


@pytest.mark.parametrize("number", [errno.EFBIG, errno.EMFILE, errno.EIO])
def test_a_machine_that_has_no_more_is_no_defect(failing, capsys, number):
    failing(OSError(number, os.strerror(number)))
    assert main(["doctor"]) == 3
    assert "code: machine-exhausted" in capsys.readouterr().err


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "No such file or directory", "/somewhere/else"),
        PermissionError(errno.EACCES, "Permission denied", "/somewhere/else"),
        FileNotFoundError(errno.ENOENT, "No such file or directory", ".headrace/log/of/headrace's/own"),
        FileExistsError(errno.EEXIST, "File exists", "tests"),
        ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
        OSError("without a number"),
        "x\u20ac".encode,
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_the_user_did_not_name_is_a_defect(failing, error):
    if callable(error):
        with pytest.raises(UnicodeEncodeError) as caught:
            error("ascii")
        error = caught.value
    failing(error)
    assert main(["doctor"]) == 70


def test_a_folder_that_is_gone_is_named(shop, monkeypatch, capsys):
    (shop / "gone").mkdir()
    monkeypatch.chdir(shop / "gone")
    (shop / "gone").rmdir()
    assert main(["check"]) == 2
    assert "The folder you are in is no longer there." in capsys.readouterr().err
