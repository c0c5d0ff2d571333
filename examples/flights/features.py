"""Will a flight be late? What its aircraft, its airline, its airport and its route have been like lately.

One stream has two kinds of events, told apart by `kind`: a flight is `scheduled`, at its scheduled departure, and hours
later it has `landed`, with its delays. Both belong to the scheduled departure by event time; when each was known is in
the record itself. So a landing happened, for whoever counts by event time, long before anybody could know of it.
"""

import headrace as hr

flights = hr.stream(
    "flights",
    fields={
        "id": str,
        "kind": str,
        "tailnum": str,
        "carrier": str,
        "origin": str,
        "dest": str,
        "distance": float,
        "dep_delay": float | None,
        "arr_delay": float | None,
        "at": hr.Timestamp,
        "known_at": hr.Timestamp,
    },
    event_id="id",
    event_time="at",
    arrival="field:known_at",
    key="tailnum",
    allowed_lateness="36h",  # the longest way to a landing: a day of delay and half a day in the air
)
landed = flights.where("kind = 'landed'")
scheduled = flights.where("kind = 'scheduled'")

LATE = "arr_delay > 15"


def late_share(over: str):
    """The share of landings that were more than a quarter of an hour late."""
    return hr.ratio(hr.count(over=over, where=LATE), hr.count(over=over))


aircraft = hr.view(
    "aircraft",
    landed,
    by="tailnum",
    features={
        "aircraft_last_delay": hr.last("arr_delay", over="1d"),
        "aircraft_worst_1d": hr.max("arr_delay", over="1d"),
        "aircraft_landings_1d": hr.count(over="1d"),
    },
)
airline = hr.view(
    "airline",
    landed,
    by="carrier",
    features={"airline_late_6h": late_share("6h"), "airline_late_7d": late_share("7d")},
)
airport = hr.view(
    "airport",
    landed,
    by="origin",
    features={"airport_dep_delay_6h": hr.mean("dep_delay", over="6h"), "airport_late_6h": late_share("6h")},
)
route = hr.view(
    "route",
    landed,
    by=("origin", "dest"),
    features={"route_late_7d": late_share("7d"), "route_delay_7d": hr.mean("arr_delay", over="7d")},
)
queue = hr.view("queue", scheduled, by="origin", features={"departures_1h": hr.count(over="1h")})

planes = hr.dimension(
    "planes",
    "planes.parquet",
    by="tailnum",
    fields={"tailnum": str, "built": int | None, "seats": int | None, "since": hr.Timestamp},
    valid_from="since",
)
weather = hr.dimension(
    "weather",
    "weather.parquet",
    by="origin",
    fields={
        "origin": str,
        "wind_speed": float | None,
        "visib": float | None,
        "precip": float | None,
        "since": hr.Timestamp,
    },
    valid_from="since",
)


@hr.on_demand(request={"distance": float})
def miles(distance) -> float:
    """How far it is."""
    return distance


@hr.on_demand(request={"at": hr.Timestamp})
def hour(at) -> int:
    """The hour of the scheduled departure, in UTC: delays grow over the day."""
    return at // 3_600_000_000 % 24


delays = hr.feature_set("delays", [aircraft, airline, airport, route, queue, planes, weather, miles, hour])

late = hr.model("late", delays, stream=scheduled)

# What became of it is known when it has landed; a flight that never does is given up in the end and counts for nothing.
arrived_late = hr.label(
    "arrived_late",
    landed,
    of=late,
    on="replace(id, '-landed', '-scheduled')",
    value="arr_delay > 15",
    horizon="36h",
    window="1d",
    segments=["origin", "carrier"],
)
