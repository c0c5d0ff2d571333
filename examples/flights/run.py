"""The whole example: history in, two models, two months replayed through log, Spark, store and scorer, and an audit.

`python run.py` in this folder. Everything happens in a new folder, with the commands that are printed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from io import StringIO
from pathlib import Path

import pandas as pd
from sklearn.metrics import roc_auc_score

from flights import dimensions, events, write

HERE = Path(__file__).parent
FILES = ("headrace.toml", "features.py", "train.py")
PATIENCE = 900.0
ONLINE = """
SELECT p.role, p.score, l.arr_delay > 15 AS late
FROM predictions_late_silver p JOIN flights_silver l ON l.id = replace(p.event_id, '-scheduled', '-landed')
"""


def headrace(*words: str, check: bool = True) -> str:
    """Run a command of Headrace in the project; what it prints."""
    print(
        "$ headrace", " ".join(word if " " not in word else repr(" ".join(word.split())) for word in words), flush=True
    )
    command = [sys.executable, "-m", "headrace.cli.main", *words]
    return subprocess.run(command, check=check, stdout=subprocess.PIPE, text=True).stdout


def asked(query: str) -> pd.DataFrame:
    """What the lake answers."""
    return pd.read_csv(StringIO(headrace("lake", "sql", query, "--limit", "0", "--csv")))


def learnt(first: str, until: str, trained_from: str, modes: list[str]) -> dict[str, float]:
    """History in the lake, its tiles, a model of each mode: that of what was known decides, the other watches."""
    count = write(events(first, until), Path("history.jsonl"))
    print(f"{count:,} events of {first} to {until}")
    print(headrace("import", "history.jsonl", "--stream", "flights"))
    print(headrace("backfill"))
    print(f"$ python train.py {trained_from} {' '.join(modes)}", flush=True)
    command = [sys.executable, "train.py", trained_from, *modes]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    if len(modes) > 1:
        headrace("model", "shadow", "late", "1")
    found: dict[str, float] = json.loads(said.stdout.splitlines()[-1])
    return found


def replayed(first: str, until: str, rate: float, versions: int) -> pd.DataFrame:
    """Events as they became known, `rate` in a second; every score with what became of the flight."""
    told = events(first, until)
    count, wanted = write(told, Path("replay.jsonl")), int((told.kind == "scheduled").sum())
    print(f"{count:,} events of {first} to {until}, {wanted:,} of them to be scored")
    headrace("up", "--detach", "--port", "0")
    try:
        headrace("send", "flights", "replay.jsonl", "--rate", str(rate))
        deadline, scored = time.monotonic() + PATIENCE, 0
        while scored < versions * wanted and time.monotonic() < deadline:
            time.sleep(5)
            scored = _count("predictions_late_silver")
        if scored != versions * wanted or _count("flights_silver", "_partition >= 0") != count:
            raise SystemExit(f"{scored:,} scores of {versions} models for {wanted:,} flights are in the lake")
    finally:
        headrace("down")
    return asked(ONLINE)


def _count(table: str, where: str = "true") -> int:
    """How many rows a table of the lake has; none while it is not there."""
    query = f"SELECT count(*) FROM {table} WHERE {where}"
    command = [sys.executable, "-m", "headrace.cli.main", "lake", "sql", query, "--csv"]
    said = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return int(said.stdout.splitlines()[-1]) if said.returncode == 0 else 0


def main() -> None:
    """Run it all, and say what was found."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--history", default="2013-01-01", help="the first day of history")
    given.add_argument("--train", default="2013-02-01", help="the first day that is learnt from")
    given.add_argument("--live", default="2013-09-01", help="the first day that is replayed")
    given.add_argument("--until", default="2013-11-01", help="the day after the last")
    given.add_argument("--rate", default=150.0, type=float, help="events in a second of the replay")
    given.add_argument("--mode", action="append", help="learn from this alone: as_known or as_happened")
    given.add_argument("--keep", type=Path, help="make the project here, and leave it there")
    given.add_argument("--json", type=Path, help="write what was found here as well")
    asked_for = given.parse_args()
    folder = asked_for.keep or Path(tempfile.mkdtemp(prefix="headrace-flights-"))
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copy(HERE / name, folder)
    written = asked_for.json.resolve() if asked_for.json else None
    os.chdir(folder)
    try:
        found = _found(asked_for)
    finally:
        os.chdir(HERE)
        if asked_for.keep is None:
            shutil.rmtree(folder)
    if written:
        written.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))
    if found["skew"]["causes"]["defect"]:
        raise SystemExit("what was served differs from the lake without a reason")


def _found(asked_for: argparse.Namespace) -> dict[str, object]:
    dimensions(Path())
    modes = asked_for.mode or ["as_happened", "as_known"]
    offline = learnt(asked_for.history, asked_for.live, asked_for.train, modes)
    scores = replayed(asked_for.live, asked_for.until, asked_for.rate, len(modes))
    online = {role: round(float(roc_auc_score(some.late, some.score)), 4) for role, some in scores.groupby("role")}
    skew = json.loads(headrace("skew", "--since", "12h", "--json", check=False))
    (label,) = json.loads(headrace("evaluate", "--json"))
    return {
        "offline_auc": {mode: round(auc, 4) for mode, auc in offline.items()},
        "online_auc": {mode: online["champion" if mode == modes[-1] else "shadow"] for mode in modes},
        "landed": len(scores) // len(modes),
        "evaluated": {
            str(each["version"]): {name: each[name] for name in ("count", "states", "auc", "brier", "label_delay_s")}
            for each in label["versions"]
        },
        "auc_by_day": [
            [each["start"][:10], each["version"], each["auc"] and round(each["auc"], 4)] for each in label["windows"]
        ],
        "skew": {name: skew[name] for name in ("compared", "equal", "mismatched", "waiting", "causes", "defects")},
    }


if __name__ == "__main__":
    main()
