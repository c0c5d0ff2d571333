"""Mix A of the serving benchmark, twenty numeric features of a card, and a model that takes them with every payment."""

import headrace as hr

payments = hr.stream(
    "payments",
    fields={"id": str, "card": str, "amount": float, "country": str, "at": hr.Timestamp},
    event_id="id",
    event_time="at",
    allowed_lateness="2m",
    late="side_output",
)

WINDOWS = ("10m", "1h", "1d", "7d")
AGGREGATES = {"sum": hr.sum, "mean": hr.mean, "smallest": hr.min, "largest": hr.max}

features = {f"count_{over}": hr.count(over=over) for over in WINDOWS}
features |= {f"{name}_{over}": made("amount", over=over) for name, made in AGGREGATES.items() for over in WINDOWS}

cards = hr.view("cards", payments, by="card", features=features)
habits = hr.feature_set("habits", [cards])
fraud = hr.model("fraud", habits, stream=payments)
