"""Eight features over four windows, a distinct count and a quantile among them; and two that others have as well."""

import headrace as hr

payments = hr.stream(
    "payments",
    fields={"id": str, "card": str, "amount": float, "merchant": str, "at": hr.Timestamp},
    event_id="id",
    event_time="at",
    allowed_lateness="2m",
)

cards = hr.view(
    "cards",
    payments,
    by="card",
    features={
        "count_10m": hr.count(over="10m"),
        "sum_10m": hr.sum("amount", over="10m"),
        "count_1h": hr.count(over="1h"),
        "mean_1h": hr.mean("amount", over="1h"),
        "max_1d": hr.max("amount", over="1d"),
        "merchants_1d": hr.count_distinct("merchant", over="1d"),
        "sum_30d": hr.sum("amount", over="30d"),
        "median_30d": hr.quantile("amount", q=0.5, over="30d"),
    },
)

# What a feature store that looks values up can say: the newest row as of a time.
newest = hr.view(
    "newest",
    payments,
    by="card",
    features={
        "amount": hr.last("amount", over=hr.lifetime()),
        "merchant": hr.last("merchant", over=hr.lifetime()),
    },
)
