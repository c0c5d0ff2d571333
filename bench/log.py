"""The embedded log on this machine: batched and single appends (each on disk before it returns), tail, read.

The tailing reader and the writer it follows are separate processes; a tail latency runs from before the append,
fsync included, until the record is in the reader's hands.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.harness import Result, measured, run
from headrace.log import EmbeddedLog, Message, follow

TOPIC = "payments"
PARTITIONS = 2
BATCH = 1000
VALUE = (
    b'{"id": "%016d", "card": "%08d", "amount": 12.5, "country": "NL", "merchant": "a shop around the corner",'
    b' "at": "2026-01-01T00:00:00.000000Z"}'
)


def messages(first: int, count: int) -> list[Message]:
    """Payments of about 150 bytes over 5,000 cards."""
    return [Message(VALUE % (i, i % 5000), key=b"%08d" % (i % 5000)) for i in range(first, first + count)]


def append_batched(folder: Path, batches: int) -> float:
    """Records a second, in batches of 1,000 over two partitions."""
    made = [messages(i * BATCH, BATCH) for i in range(batches)]
    with EmbeddedLog(folder) as log:
        log.create_topic(TOPIC, partitions=PARTITIONS)
        start = time.perf_counter()
        for batch in made:
            log.append_batch(TOPIC, batch)
        return batches * BATCH / (time.perf_counter() - start)


def append_single(folder: Path, count: int) -> float:
    """Records a second, one append and one fsync each."""
    made = messages(0, count)
    with EmbeddedLog(folder) as log:
        log.create_topic("single", partitions=PARTITIONS)
        start = time.perf_counter()
        for message in made:
            log.append("single", message.value, key=message.key)
        return count / (time.perf_counter() - start)


def read(folder: Path, topic: str) -> float:
    """Records a second, each as a `Record`, from the start to the end of every partition."""
    with EmbeddedLog(folder) as log:
        count, start = 0, time.perf_counter()
        for records in follow(log, topic, log.start_offsets(topic), limit=10_000, idle=0):
            count += len(records)
        return count / (time.perf_counter() - start)


def read_arrow(folder: Path) -> float:
    """Records a second as Arrow batches: what Spark's reader gets."""
    from headrace.log.embedded.arrow import batches

    with EmbeddedLog(folder) as log:
        count, start = 0, time.perf_counter()
        for partition, end in log.end_offsets(TOPIC).items():
            count += sum(batch.num_rows for batch in batches(log, TOPIC, partition, start=0, end=end))
        return count / (time.perf_counter() - start)


def tail_p99_ms(folder: Path, seconds: float, rate: int = 500) -> float:
    """The 99th percentile of append to reader while another process appends `rate` records a second."""
    with EmbeddedLog(folder) as log:
        log.create_topic("tail", partitions=PARTITIONS)
        positions = log.end_offsets("tail")
        writer = subprocess.Popen([sys.executable, "-m", "bench.log", "--write", str(folder), str(rate), str(seconds)])
        waits = []
        for records in follow(log, "tail", positions, idle=3.0):
            now = time.monotonic_ns()
            waits += [(now - int(record.value or b"0")) / 1e6 for record in records]
        writer.wait()
    waits.sort()
    return waits[int(len(waits) * 0.99)]


def write(folder: str, rate: int, seconds: float) -> None:
    """The writer that `tail_p99_ms` follows: it sends the time."""
    with EmbeddedLog(folder) as log:
        start = time.monotonic()
        for i in range(int(rate * seconds)):
            time.sleep(max(0.0, start + i / rate - time.monotonic()))
            log.append("tail", b"%d" % time.monotonic_ns(), key=b"%d" % (i % 100))


def bare_fsync(folder: Path, count: int) -> float:
    """What the disk itself gives just now: appends of 300 bytes a second, each with an fdatasync."""
    with (folder / "bare").open("ab", buffering=0) as file:
        start = time.perf_counter()
        for _ in range(count):
            file.write(b"x" * 300)
            os.fdatasync(file.fileno())
        return count / (time.perf_counter() - start)


def measure(quick: bool) -> list[Result]:
    """All of it, each time in a fresh folder."""
    found: dict[str, list[float]] = {
        "bare": [],
        "batched": [],
        "single": [],
        "tail": [],
        "read": [],
        "read_single": [],
        "arrow": [],
    }
    for _ in range(3 if quick else 7):
        folder = Path(tempfile.mkdtemp(prefix="bench-log-"))
        try:
            found["batched"].append(append_batched(folder, 200 if quick else 500))
            found["bare"].append(bare_fsync(folder, 500))
            found["single"].append(append_single(folder, 5_000 if quick else 20_000))
            found["read"].append(read(folder, TOPIC))
            found["read_single"].append(read(folder, "single"))
            found["arrow"].append(read_arrow(folder))
            found["tail"].append(tail_p99_ms(folder, 3 if quick else 10))
        finally:
            shutil.rmtree(folder)
    return [
        measured("embedded.append_batched_per_s", found["batched"], "higher", target=100_000),
        measured("embedded.append_single_per_s", found["single"], "higher", target=2_000),
        measured("embedded.tail_p99_ms", found["tail"], "lower", target=10),
        measured("embedded.read_per_s", found["read"], "higher", target=300_000),
        measured("disk.fdatasync_per_s", found["bare"], "higher"),
        measured("embedded.read_of_single_appends_per_s", found["read_single"], "higher"),
        measured("embedded.read_arrow_per_s", found["arrow"], "higher"),
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
    else:
        sys.exit(run("log", measure))
