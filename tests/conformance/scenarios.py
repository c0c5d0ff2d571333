"""The named scenarios: each a stream that is known to go wrong somewhere, always the same.

Restarts are not among them: engines that can be restarted are, over all scenarios at once (`engines.py`). Nor is the
idle partition: nobody ever writes to the last one.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal as Exact
from typing import Any

from headrace.clock import DAY, HOUR, MINUTE, SECOND
from tests.conformance.cases import Case, Delivery, Sent
from tests.conformance.definitions import GAP, LATENESS, SKEW

MOST, LEAST = 2**63 - 1, -(2**63)


def at(happened: int, number: int = 0, *, delay: int = 0, partition: int = 0, card: str = "a", **fields: Any) -> Sent:
    """One event that is delivered once."""
    fields = {"cents": number, "country": "DE", "amount": number / 4, **fields}
    return Sent(f"{happened}-{number}", happened, card, fields, (Delivery(delay, partition),))


def copied(sent: Sent, *deliveries: Delivery) -> Sent:
    """The event, delivered like that."""
    return Sent(sent.id, sent.happened, sent.card, sent.fields, deliveries, sent.raw)


def events_on_tile_boundaries() -> Iterable[Sent]:
    for step in (SECOND, MINUTE, 5 * MINUTE, HOUR, DAY):
        for near in (-1, 0, 1):
            yield at(step + near, step // SECOND + near, partition=near + 1)


def tiles_of_a_second_and_of_a_day() -> Iterable[Sent]:
    for day in range(3):
        for second in (0, 1, 2, 10, 59, 86_399):
            yield at(day * DAY + second * SECOND + 500_000, second, partition=second % 3, price=Exact("0.01"))


def sessions_bridged_by_late_events() -> Iterable[Sent]:
    for start in (0, 2 * GAP, 4 * GAP + 2):
        yield from (at(10 * MINUTE + start + step * SECOND, step) for step in (0, 20, 40))
    # Each bridges one pause exactly; of the third, which is a little too long, the first half only.
    for late in (GAP, 3 * GAP, 3 * GAP + 40 * SECOND):
        yield at(10 * MINUTE + late, 7, delay=HOUR, partition=1)
    yield at(10 * MINUTE + 4 * GAP, 8, delay=2 * HOUR, partition=2)


KEYS = (
    "",
    " ",
    "'",
    '"',
    "\\",
    "\n",
    "\t\r",
    "{}",
    "[1]",
    "null",
    "ключ",
    "日本",
    "e\u0301",
    "é",
    "🜁",
    "👩‍👩‍👧",
    "a\u0000b",
)


def unicode_and_empty_keys() -> Iterable[Sent]:
    for number, key in enumerate(KEYS):
        yield at(number * SECOND, number, card=key, country=key, note=key, shop=-number)
        yield at(MINUTE + number * SECOND, number + 100, card=key, country=key[::-1], delay=HOUR)


def negative_numbers() -> Iterable[Sent]:
    for number in range(-6, 7):
        value = number / 8
        huge = (Exact(number) / 7).quantize(Exact("1e-18"))
        fields = {"amount": value, "price": Exact(number).scaleb(-2), "huge": huge, "due": number * DAY}
        yield at((number + 7) * SECOND, number, shop=-number, **fields)
    yield at(30 * SECOND, 0, amount=-0.0, due=-1)


def integers_at_their_ends() -> Iterable[Sent]:
    for number, cents in enumerate((MOST, MOST, MOST, LEAST, LEAST, LEAST, LEAST, MOST, -1, 0, 2**62, 2**32, -(2**32))):
        yield at(number * 20 * SECOND, cents, shop=MOST if number % 2 else LEAST, partition=number % 3)


def division_by_zero() -> Iterable[Sent]:
    for number, amount in enumerate((0.0, -0.0, 1.0, -1.0, 1e308, 5e-324)):
        yield at(number * SECOND, number, amount=amount, shop=0)
        yield at(number * SECOND + 1, number, amount=amount, shop=number)


TEXTS = ("", " 12 ", "12", "1.5", "-.5", "1e5", "NaN", "Infinity", "0x1F", "9223372036854775808", "true", "T", "1_000")
MOMENTS = ("2026-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01", "99999999.995", "0000-01-01T00:00:00Z", "١٢")


def bad_casts() -> Iterable[Sent]:
    for number, note in enumerate((*TEXTS, *MOMENTS)):
        yield at(number * SECOND, number, note=note)


def decimals_of_all_their_digits() -> Iterable[Sent]:
    prices = [Exact("99999999.99"), Exact("-99999999.99"), Exact("0.01"), Exact("0.00"), Exact("1.50")]
    wide = [Exact(f"{sign}{'9' * 20}.{'9' * 18}") for sign in ("", "-")] + [Exact("0." + "0" * 17 + "1"), Exact("0")]
    for number in range(60):
        fields = {"price": prices[number % 5], "huge": wide[0] if number < 40 else wide[number % 4]}
        yield at(number * 4 * SECOND, number, partition=number % 3, **fields)


def floats_of_every_size() -> Iterable[Sent]:
    sizes = (1e300, -1e300, 1.7976931348623157e308, 1e9 + 0.25, 1e9 + 0.5, 1e-300, 5e-324, 0.1, 0.2, -0.3)
    for number, amount in enumerate(sizes):
        yield at(number * 7 * SECOND, number, amount=amount, partition=number % 3)


def nulls_and_nothing_else() -> Iterable[Sent]:
    empty = dict.fromkeys(("cents", "country", "amount"))
    yield from (at(number * 10 * SECOND, number, **empty) for number in range(8))
    yield at(5 * MINUTE, 1, delay=HOUR, **empty)
    yield at(20 * SECOND, 1, card="one value", paid=True)
    yield at(40 * SECOND, 1, card="one value", **empty)


def hot_key() -> Iterable[Sent]:
    for number in range(800):
        hot = number % 2 == 0
        fields = {"country": f"c{number % 300}", "price": Exact(number % 251), "paid": number % 3 == 0}
        # Half of the hot events in one minute: more than a sketch keeps exactly.
        happened = number * 50_000 if number < 400 else number * SECOND
        yield at(HOUR + happened, number, card="hot" if hot else f"{number % 40}", partition=number % 3, **fields)


def one_partition_far_behind() -> Iterable[Sent]:
    # As many in partition 0 as elsewhere in hours: whoever reads the same share of each runs ahead in the others.
    for number in range(360):
        yield at(2 * HOUR + number * 30 * SECOND, number, card=f"{number % 5}", paid=True)
    for number in range(9):
        yield at(2 * HOUR + number * 20 * MINUTE, 1_000 + number, card=f"{number % 5}", partition=1 + number % 2)


def duplicates_across_partitions() -> Iterable[Sent]:
    edges = (-SKEW, -1, 0, 1, LATENESS - 1, LATENESS)
    for number in range(12):
        first, second, third = (edges[(number * 5 + step) % 6] for step in (0, 1, 3))
        places = (Delivery(first, 0), Delivery(second, 1), Delivery(third, 2), Delivery(first, 1))
        yield copied(at(number * 13 * SECOND, number), *places)


def late_duplicates() -> Iterable[Sent]:
    for number in range(6):
        event = at(number * 31 * SECOND, number)
        yield copied(event, Delivery(LATENESS, 0), Delivery(LATENESS + 1, 1), Delivery(HOUR + number, 2))
        # No copy of these was on time: the first late one counts.
        other = at(number * 31 * SECOND, 100 + number, card="only late")
        yield copied(other, Delivery(2 * HOUR, 0), Delivery(HOUR, 1), Delivery(HOUR, 2), Delivery(DAY, 0))


def arrivals_that_tie() -> Iterable[Sent]:
    for number in range(20):
        event = at(number * SECOND, number, delay=(30 - number) * SECOND, partition=number % 3)
        yield copied(event, *event.deliveries, Delivery((30 - number) * SECOND, (number + 1) % 3))


def future_records() -> Iterable[Sent]:
    for number, ahead in enumerate((SKEW, SKEW + 1, HOUR, 30 * DAY)):
        yield at(DAY + number * SECOND, number, delay=-ahead, partition=number % 3)
        # Too early first, then in time: the second copy is the one that counts.
        again = at(DAY + number * SECOND, 100 + number)
        yield copied(again, Delivery(-ahead - 1, 0), Delivery(number, 1), Delivery(HOUR, 2))


def one_bad_producer_clock() -> Iterable[Sent]:
    for number in range(30):
        yield at(3 * HOUR + number * 10 * SECOND, number, partition=number % 2, card=f"{number % 3}")
    for number in range(30):
        off = 40 * DAY if number < 10 else -3 * DAY if number < 20 else -5 * MINUTE
        yield at(3 * HOUR + off + number * 10 * SECOND, 100 + number, delay=-off, partition=2, card=f"{number % 3}")


def poison_between_good_records() -> Iterable[Sent]:
    raws = (b"", b"{not json", b"[]", b"null", b'{"id":1}', b"\xff\xfe", b'{"id":"a","card":"b"} x')
    for number, raw in enumerate(raws):
        yield at(number * SECOND, number)
        yield Sent(f"poison-{number}", number * SECOND, "a", {}, (Delivery(),), raw)
    yield at(10 * SECOND, 10, shop=666)


def records_appended_again() -> Iterable[Sent]:
    for number, after in enumerate((0, SECOND, LATENESS, LATENESS + 1, HOUR, DAY)):
        yield copied(at(number * 20 * SECOND, number), Delivery(0, 1, after))
        yield copied(at(number * 20 * SECOND, 100 + number), Delivery(0, 0), Delivery(0, 1, after))
        yield copied(at(number * 20 * SECOND, 200 + number), Delivery(SECOND, 2, HOUR), Delivery(0, 1, after))
        yield copied(at(number * 20 * SECOND, 300 + number), Delivery(HOUR, 2, after))


def copies_that_contradict_each_other() -> Iterable[Sent]:
    for number in range(20):
        first, second = (at(number * SECOND, cents, note="contradiction") for cents in (number, -number - 1))
        # The one that arrives first stands in the partition that is read last.
        yield copied(Sent(f"{number}", first.happened, "a", first.fields), Delivery(0, 2))
        yield copied(Sent(f"{number}", second.happened, "a", second.fields), Delivery(1 + number, number % 2))


_MADE = (
    events_on_tile_boundaries,
    tiles_of_a_second_and_of_a_day,
    sessions_bridged_by_late_events,
    unicode_and_empty_keys,
    negative_numbers,
    integers_at_their_ends,
    division_by_zero,
    bad_casts,
    decimals_of_all_their_digits,
    floats_of_every_size,
    nulls_and_nothing_else,
    hot_key,
    one_partition_far_behind,
    duplicates_across_partitions,
    late_duplicates,
    arrivals_that_tie,
    future_records,
    one_bad_producer_clock,
    poison_between_good_records,
    records_appended_again,
    copies_that_contradict_each_other,
)
SCENARIOS: dict[str, Case] = {
    made.__name__: Case(made.__name__, tuple(made()), own_cards=made is unicode_and_empty_keys) for made in _MADE
}
