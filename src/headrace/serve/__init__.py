"""Serving: feature values over HTTP, merged from the store's tiles when they are asked for.

`partials` reads the tiles' columns, `reading` merges them into values, `key` reads keys, `events` takes events in,
`monitor` knows how things stand, `app` is all of it over HTTP and `server` the process. No engine is loaded here.
"""
