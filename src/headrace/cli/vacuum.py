"""What `headrace lake vacuum` does to each table, and how it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.cli.byte_size import show_size
from headrace.cli.output import talk
from headrace.clock import HOUR, SystemClock
from headrace.plural import show_count

if TYPE_CHECKING:
    from headrace.define.stream import Stream
    from headrace.lake.table import LakeTable
    from headrace.plan.model import Plan

    Opened = list[tuple[Stream, dict[str, LakeTable]]]


@dataclass(frozen=True)
class VacuumOptions:
    """How long versions are kept, from which age on days are forgotten (None: none), and whether it is only asked."""

    keep: int
    age: int | None
    dry: bool

    @property
    def hours(self) -> int:
        """What is kept in whole hours, rather more than less."""
        return -(-self.keep // HOUR)

    @property
    def first_day(self) -> str | None:
        """The first day that stays."""
        from headrace.lake.retention import first_day_kept

        return None if self.age is None else first_day_kept(self.age, SystemClock().now())

    def refuse_needed(self, opened: Opened, plan: Plan) -> None:
        """Refuse before anything is done when one of the streams needs what would go."""
        from headrace.lake.retention import refuse_needed

        for declared, tables in opened:
            if self.age is not None:
                refuse_needed(tables, plan, declared, self.age)

    def say_what_goes(self, opened: Opened) -> None:
        """Say which days would be forgotten, before it is asked whether that is meant."""
        from headrace.lake.overview import days_before

        for declared, tables in opened:
            for name, table in tables.items():
                old = days_before(table, self.first_day or "")
                days = f"{show_count(old.days, 'day')} before {self.first_day}"
                held = f"{show_count(old.rows, 'row')} in {show_count(old.files, 'file')}, {show_size(old.bytes)}"
                talk(f"{declared.name} {name}: {days}, {held}")


def vacuumed(stream: str, name: str, table: LakeTable, wish: VacuumOptions) -> dict[str, Any]:
    """Forget and vacuum one table, or say what that would do."""
    from headrace.clock import parse_timestamp
    from headrace.lake.maintenance import forget, vacuum
    from headrace.lake.overview import days_before, on_disk

    day, forgotten = wish.first_day, 0
    if day is not None:
        old = days_before(table, day).rows
        forgotten = old if wish.dry or not old else forget(table, parse_timestamp(f"{day}T00:00:00Z") or 0)
    before = on_disk(table)
    removed = set(vacuum(table, wish.hours, dry=wish.dry))
    after = {path: size for path, size in before.items() if path not in removed} if wish.dry else on_disk(table)
    return {
        "stream": stream,
        "table": name,
        "forgotten_rows": forgotten,
        "files": {"before": len(before), "after": len(after)},
        "bytes": {"before": sum(before.values()), "after": sum(after.values())},
    }


def told_of(told: list[dict[str, Any]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """A header and rows for people."""
    rows: list[tuple[str, ...]] = [
        (
            each["stream"],
            each["table"],
            f"{each['forgotten_rows']:,}",
            f"{each['files']['before']:,} -> {each['files']['after']:,}",
            f"{show_size(each['bytes']['before'])} -> {show_size(each['bytes']['after'])}",
        )
        for each in told
    ]
    return ("stream", "table", "rows forgotten", "files", "size"), rows
