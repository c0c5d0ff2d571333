"""How `headrace lateness` looks to people; `cli.lateness` says the same as JSON."""

from __future__ import annotations

from typing import Any

from headrace.cli.byte_size import show_size
from headrace.cli.output import data, table
from headrace.clock import HOUR, MILLISECOND, MINUTE, SECOND, micros, show_duration, show_time
from headrace.plural import show_count

WIDTH = 40


def show(name: str, told: dict[str, Any]) -> None:
    """Print what is known of a stream's lateness."""
    records = show_count(told["records"], "record")
    data(f"stream {name}: {records} from the {told['source']}{_when(told)}{_left_out(told)}")
    if not told["records"]:
        return
    data("")
    _quantiles(told)
    data("")
    _histogram(told)
    data("")
    _choices(told)
    data("")
    _advice(told)


def _when(told: dict[str, Any]) -> str:
    if not told["records"]:
        return ""
    days = [show_time(micros(told[name]) // SECOND * SECOND) for name in ("first_arrival", "last_arrival")]
    return f", {days[0]} to {days[1]}{'' if told['exact'] else ', from a sketch'}"


def _left_out(told: dict[str, Any]) -> str:
    said = {"copies": "copies", "assumed_arrival": "with an assumed arrival", "unreadable": "not readable"}
    parts = [f"{count:,} {said[name]}" for name, count in told["left_out"].items() if count]
    return f"; left out: {', '.join(parts)}" if parts else ""


def _quantiles(told: dict[str, Any]) -> None:
    rows = {"all": told["delays"]} | {_partition(int(number)): held for number, held in told["partitions"].items()}
    cells = [
        (name, f"{held['records']:,}", *(delay(held[each]) for each in ("p50", "p90", "p99", "p99_9", "max")))
        for name, held in rows.items()
    ]
    table(("partition", "records", "P50", "P90", "P99", "P99.9", "max"), cells)


def _partition(number: int) -> str:
    return f"{number}" if number >= 0 else f"import {-1 - number}"


def delay(micros: int) -> str:
    """A measured delay, to three digits or the second.

    >>> delay(1_234), delay(12_345_678), delay(125_000_001), delay(-1_500_000)
    ('1.23 ms', '12.3 s', '2m5s', '-1.5 s')
    """
    if micros < 0:
        return f"-{delay(-micros)}"
    if micros < SECOND:
        return f"{micros / MILLISECOND:.3g} ms"
    if micros < MINUTE:
        return f"{micros / SECOND:.3g} s"
    unit = SECOND if micros < HOUR else MINUTE
    return show_duration(round(micros / unit) * unit)


def _histogram(told: dict[str, Any]) -> None:
    most = max(bucket["records"] for bucket in told["histogram"])
    rows = [
        (_bucket(bucket), f"{bucket['records']:,}", share(bucket["records"] / told["records"]), bar(bucket, most))
        for bucket in told["histogram"]
    ]
    table(("delay", "records", "share", ""), rows)


def _bucket(bucket: dict[str, Any]) -> str:
    if bucket["from"] is None:
        return "ahead of time"
    start = show_duration(bucket["from"])
    return f"{start} and more" if bucket["to"] is None else f"{start}..{show_duration(bucket['to'])}"


def bar(bucket: dict[str, Any], most: int) -> str:
    """A bar as long as a bucket's share of the fullest; a bucket that has something has at least a sliver.

    >>> bar({"records": 10}, 10) == "█" * 40, bar({"records": 1}, 10_000), bar({"records": 0}, 10)
    (True, '▏', '')
    """
    return "█" * round(WIDTH * bucket["records"] / most) or ("▏" if bucket["records"] else "")


def share(part: float) -> str:
    """A share in percent, with digits enough to tell little from nothing.

    >>> share(0.5), share(0.00042), share(0.000001), share(0)
    ('50 %', '0.042 %', '< 0.001 %', '0 %')
    """
    if 0 < part < 0.00001:
        return "< 0.001 %"
    if 0.9995 < part < 1:
        return "> 99.9 %"
    return f"{100 * part:.3g} %"


def _choices(told: dict[str, Any]) -> None:
    now, best = told["allowed_lateness"], told["recommended"]["allowed_lateness"]
    outage = told.get("outage", {}).get("allowed_lateness")
    marks = {now: ["now"]}
    for value, word in ((best, "recommended"), (outage, "for the outage")):
        if value is not None:
            marks.setdefault(value, []).append(word)
    rows = [
        (
            show_duration(value := each["allowed_lateness"]),
            share(each["late"]),
            _state(each),
            ", ".join(marks.get(value, [])),
        )
        for each in told["lateness_choices"]
    ]
    table(("allowed_lateness", "late", "state", ""), rows)
    data("")
    skews = [
        (
            show_duration(each["max_clock_skew"]),
            share(each["future"]),
            _mark_current(each["max_clock_skew"], told["max_clock_skew"]),
        )
        for each in told["skew_choices"]
    ]
    table(("max_clock_skew", "future", ""), skews)


def _state(choice: dict[str, Any]) -> str:
    return f"about {show_size(choice['state']['bytes'])}"


def _mark_current(value: int, present: int) -> str:
    return "now" if value == present else ""


def _advice(told: dict[str, Any]) -> None:
    best, p99 = told["recommended"], delay(told["delays"]["p99"])
    says = f'recommended: allowed_lateness="{show_duration(best["allowed_lateness"])}"'
    data(f"{says}, 1.5 to 2 times P99 ({p99}): {share(best['late'])} late, {_state(best)} of state")
    outage = told.get("outage")
    if outage is None:
        return
    lasts, lateness = (show_duration(outage[name]) for name in ("outage", "allowed_lateness"))
    says = f'an outage of {lasts}: allowed_lateness="{lateness}"'
    data(f"{says}, which holds it and P99.9 after it: {_state(outage)} of state")
    if "fits" in outage:
        data(_budget(outage))


def _budget(outage: dict[str, Any]) -> str:
    budget = show_size(outage["state_budget"])
    if outage["fits"]:
        return f"That fits in {budget}."
    if outage["longest_lateness"] is None:
        return f"That does not fit in {budget}, and no lateness does."
    longest, spared = (show_duration(outage[name]) for name in ("longest_lateness", "longest_outage"))
    return f"That does not fit in {budget}: the longest lateness that does is {longest}, for an outage of {spared}."
