"""Mix B: sixteen numeric features, two distinct counts and two quantiles, from ten minutes to thirty days."""

import headrace as hr

payments = hr.stream(
    "payments",
    fields={"id": str, "card": str, "amount": float, "merchant": str, "at": hr.Timestamp},
    event_id="id",
    event_time="at",
    allowed_lateness="2m",
    late="side_output",
)

WINDOWS = ("10m", "1h", "1d", "30d")
AGGREGATES = {"sum": hr.sum, "smallest": hr.min, "largest": hr.max}

features = {f"count_{over}": hr.count(over=over) for over in WINDOWS}
features |= {f"{name}_{over}": made("amount", over=over) for name, made in AGGREGATES.items() for over in WINDOWS}
features |= {f"merchants_{over}": hr.count_distinct("merchant", over=over) for over in ("1d", "30d")}
features |= {f"median_{over}": hr.quantile("amount", q=0.5, over=over) for over in ("1d", "30d")}

cards = hr.view("cards", payments, by="card", features=features)
