"""The Python client of Headrace's HTTP service: features and scores of keys, typed; how it stands; a few events in.

    address    the URL, and where a view's key lies below it
    wire       kept-alive connections, each exchange with a deadline
    again      what may be asked again, when, and for how long
    answer     what comes back, as values or as errors
    score      what a model says, the same way
    typed      values in the types of their features
    several    many keys in one request
    line       an event as a line of JSON
    table      answers as a pandas DataFrame
    calls      `Client`: one thread or many
    coroutines `AsyncClient`: the same as coroutines

It needs a URL and no project. Events in numbers are `hr.Producer`'s business, which writes to the log itself.
"""

from headrace.client.answer import EventPosition, FeatureAnswer, Readiness, Refused
from headrace.client.async_client import AsyncClient
from headrace.client.client import Client
from headrace.client.retry import RetryClock
from headrace.client.score import Score, Scores

__all__ = [
    "AsyncClient",
    "Client",
    "EventPosition",
    "FeatureAnswer",
    "Readiness",
    "Refused",
    "RetryClock",
    "Score",
    "Scores",
]
