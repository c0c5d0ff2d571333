"""Serving: feature values over HTTP, merged from the store's tiles when they are asked for.

    partials, reading            the tiles' columns, merged into values
    key, readable, on_demand     keys, what can be read by name, functions over request values
    dimensions, dimension_index  tables in memory, looked at in the background
    reads, batch                 one key and many, as JSON; sampled by `samples`, at moments of `steady`
    row, scoring, scoring_rows   what a model gets, and its scores over HTTP
    scoring_models, scoring_lineup, scoring_child, scoring_wire, model_process   versions, each in a process
    body, events                 events in
    middleware, origins, access, limits   who may ask and from where, how much at once
    routes, openapi              a row for each path, and what can be asked; handlers are in `*_routes`
    monitor, watch, looks, page, metrics   how things stand
    answers, terms, tls, connections   a process that answers, and on which terms it listens
    server, workers, worker, heard   the process that fills the store, and those that answer beside it

No engine is loaded here.
"""
