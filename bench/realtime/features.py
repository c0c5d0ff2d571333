"""Five features of payments by card, each of which Flink SQL has as well: the view of the comparison."""

import headrace as hr

payments = hr.stream(
    "payments",
    fields={"id": str, "card": str, "amount": float, "country": str, "at": hr.Timestamp},
    event_id="id",
    event_time="at",
    allowed_lateness="2m",
    late="side_output",
)

card_activity = hr.view(
    "card_activity",
    payments.where("amount > 0"),
    by="card",
    owner="bench",
    description="What a card has been doing lately.",
    max_staleness="30s",
    features={
        "payments_10m": hr.count(over="10m"),
        "spend_10m": hr.sum("amount", over="10m"),
        "largest_10m": hr.max("amount", over="10m"),
        "smallest_10m": hr.min("amount", over="10m"),
        "country_10m": hr.last("country", over="10m"),
    },
)
