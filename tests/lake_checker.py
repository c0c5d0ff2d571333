"""An independent look at a stream's lake: reads what was sent and the Delta tables, and nothing of Headrace.

    python tests/lake_checker.py SENT.jsonl LAKE/STREAM LATENESS_MICROSECONDS SKEW_MICROSECONDS

Prints one JSON object of findings by name, each a count; all zero means that every record is in bronze exactly once
with the verdict the rules give it, and every event that counts is in silver exactly once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb
from deltalake import DeltaTable

# What was sent, and what bronze has of it; a record's number travelled in a header.
FACTS = """
CREATE TABLE sent AS SELECT seq, partition, kind, value, "row"->>'id' AS id, ("row"->>'amount')::DOUBLE AS amount,
  "row"->>'card' AS card, "at"::BIGINT AS happened
FROM read_json(?, columns = {seq: 'BIGINT', partition: 'INT', kind: 'VARCHAR', value: 'VARCHAR', "row": 'JSON',
  id: 'VARCHAR', "at": 'BIGINT'}, format = 'newline_delimited');
CREATE TABLE kept AS SELECT partition, "offset", epoch_us(arrived_at) AS arrived, value, verdict, first_partition,
  first_offset, conflict, decode(list_filter(headers, lambda h: h.key = 'seq')[1].value)::BIGINT AS seq,
  epoch_us(event_time) AS happened
FROM bronze;
CREATE TABLE counted AS SELECT _partition AS partition, _offset AS "offset", _late AS late, id, card, amount,
  epoch_us("at") AS happened, epoch_us(_arrived_at) AS arrived FROM silver;
"""

# The rules: the order of tests; among copies not from the future the least (arrived_at, partition, offset) is first.
RULES = """
CREATE TABLE judged AS
WITH alone AS (
  SELECT s.*, k.arrived, k."offset",
    CASE WHEN s.kind <> 'event' THEN s.kind WHEN s.happened - k.arrived > $skew THEN 'future'
      WHEN k.arrived - s.happened > $lateness THEN 'late' ELSE 'admitted' END AS verdict
  FROM sent s JOIN kept k USING (seq)),
ordered AS (
  SELECT *, row_number() OVER copies AS nth, first_value(partition) OVER copies AS first_partition,
    first_value("offset") OVER copies AS first_offset, first_value(amount) OVER copies AS first_amount
  FROM alone WHERE verdict IN ('late', 'admitted')
  WINDOW copies AS (PARTITION BY id, happened ORDER BY arrived, partition, "offset"))
SELECT seq, partition, "offset", arrived, id, card, amount, happened, verdict, 0 AS nth, NULL::INT AS first_partition,
  NULL::BIGINT AS first_offset, false AS conflict FROM alone WHERE verdict NOT IN ('late', 'admitted')
UNION ALL
SELECT seq, partition, "offset", arrived, id, card, amount, happened,
  CASE WHEN nth > 1 AND verdict = 'admitted' THEN 'duplicate' ELSE verdict END, nth,
  CASE WHEN nth > 1 THEN first_partition END, CASE WHEN nth > 1 THEN first_offset END, amount <> first_amount
FROM ordered;
"""

FINDINGS = {
    "sent_but_not_kept": "SELECT count(*) FROM sent WHERE seq NOT IN (SELECT seq FROM kept)",
    "kept_more_than_once": "SELECT count(*) - count(DISTINCT seq) FROM kept",
    "kept_but_never_sent": "SELECT count(*) FROM kept WHERE seq IS NULL OR seq NOT IN (SELECT seq FROM sent)",
    "other_bytes": "SELECT count(*) FROM sent JOIN kept USING (seq) WHERE from_base64(sent.value) <> kept.value",
    "other_partition": "SELECT count(*) FROM sent JOIN kept USING (seq) WHERE sent.partition <> kept.partition",
    "gaps_in_offsets": """SELECT coalesce(sum(gaps), 0) FROM (
        SELECT max("offset") + 1 - count(DISTINCT "offset") AS gaps FROM kept GROUP BY partition)""",
    "wrong_verdict": "SELECT count(*) FROM judged JOIN kept USING (seq) WHERE judged.verdict <> kept.verdict",
    "wrong_first": """SELECT count(*) FROM judged j JOIN kept k USING (seq)
        WHERE j.first_partition IS DISTINCT FROM k.first_partition OR j.first_offset IS DISTINCT FROM k.first_offset""",
    "wrong_conflict": "SELECT count(*) FROM judged JOIN kept USING (seq) WHERE judged.conflict <> kept.conflict",
    "silver_lacks": """SELECT count(*) FROM (SELECT partition, "offset", id, card, amount, happened, arrived,
        verdict = 'late' FROM judged WHERE nth = 1 EXCEPT ALL SELECT partition, "offset", id, card, amount, happened,
        arrived, late FROM counted)""",
    "silver_has_too_much": """SELECT count(*) FROM (
        SELECT partition, "offset", id, card, amount, happened, arrived, late FROM counted
        EXCEPT ALL SELECT partition, "offset", id, card, amount, happened, arrived, verdict = 'late'
        FROM judged WHERE nth = 1)""",
}
TOLD = "SELECT verdict, count(*) FROM kept GROUP BY verdict ORDER BY verdict"


def check(sent: str, lake: str, lateness: int, skew: int) -> dict[str, dict[str, int]]:
    """Findings by name, and the records by verdict."""
    found = duckdb.connect()
    for table in ("bronze", "silver"):
        found.register(table, DeltaTable(str(Path(lake) / table)).to_pyarrow_dataset())
    first, *others = FACTS.split(";")
    found.execute(first, [sent])
    for statement in others:
        if statement.strip():
            found.execute(statement)
    found.execute(RULES.replace("$skew", str(skew)).replace("$lateness", str(lateness)))

    def count(query: str) -> int:
        row = found.execute(query).fetchone()
        return int(row[0]) if row else -1

    verdicts = {str(verdict): int(many) for verdict, many in found.execute(TOLD).fetchall()}
    return {"findings": {name: count(query) for name, query in FINDINGS.items()}, "verdicts": verdicts}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(check(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))) + "\n")
