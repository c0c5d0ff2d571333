"""All routes of the HTTP interface, one row for each path.

The router, the roles, metrics, the text of a 404 and the OpenAPI document read this table. A new route is a row and its
handler.
"""

from __future__ import annotations

from headrace import http_paths as paths
from headrace.serve import event_routes, feature_routes, openapi, openapi_models, status_routes
from headrace.serve.access import WRITE
from headrace.serve.route import Route
from headrace.serve.scoring import route as score_route

READ_KEY = Route(
    paths.FEATURES,
    feature_routes.read_key,
    "read_%(view)s",
    "All features of %(view)s for one key, now or at a past moment.",
    label="/v1/features/{name}",
    tag="features",
    operations=openapi.operations_of_views,
)
READ_KEYS = Route(
    paths.FEATURES_OF_KEYS,
    feature_routes.read_keys,
    "read_many",
    "Features of many keys, of views or a feature set, with request values.",
    method="POST",
    tag="features",
    operations=openapi.operations_of_batches,
)
SCORE = Route(
    paths.SCORE,
    score_route.score,
    "score_%(model)s",
    "What model %(model)s says of one key or of at most %(keys)s, by the views it reads.",
    method="POST",
    tag="models",
    operations=openapi_models.operations_of_models,
)
APPEND = Route(
    paths.EVENTS,
    event_routes.append_events,
    "send_%(stream)s",
    "Append events to %(stream)s: all of a request or none.",
    method="POST",
    role=WRITE,
    tag="events",
    operations=openapi.operations_of_streams,
)
READY = {200: "They can.", 503: "Not yet, or not any more."}
METRICS = {200: "As Prometheus reads it."}
ROUTES = (
    READ_KEY,
    READ_KEYS,
    SCORE,
    APPEND,
    Route(paths.OPENAPI, status_routes.show_openapi, "openapi", "What can be asked.", is_documented=False),
    Route(paths.HEALTH, status_routes.show_health, "health", "The process lives.", role=None),
    Route(paths.READY, status_routes.show_ready, "ready", "Whether values can be served.", role=None, answers=READY),
    Route(paths.STATUS, status_routes.show_status, "status", "How things stand."),
    Route(paths.METRICS, status_routes.show_metrics, "metrics", "Numbers for Prometheus.", answers=METRICS, type=str),
    Route(paths.PAGE, status_routes.show_page, "page", "The page.", is_documented=False),
)
