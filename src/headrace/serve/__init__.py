"""Serving: feature values and scores over HTTP. No engine is loaded here.

    server, workers, worker, worker_pipe   the process that fills the store, and the workers that answer
    http_server, server_options, tls       how a worker listens, and for whom
    connections, middleware, origins, access, limits, request_queue   bounds, keys and roles of every request
    routes, route, handler_context         one row for each path; handlers are in `*_routes`
    feature_reads, past_reads, batch       one key, a past moment, many keys
    body, event_intake                     events in
    dimensions                             tables in memory, loaded again when they change
    served_samples                         a sample of what was served, for the skew audit
    monitor, status_view, status_page, metrics   status, page and Prometheus
    openapi                                the OpenAPI document of a plan
    scoring                                scores; each version of a model runs in a process of its own

Values are read by `read` from the store.
"""
