"""The Python client of Headrace's HTTP service: features, scores and status, and a few events in.

    client, async_client   `Client`, for one thread or many, and `AsyncClient`
    address                the URL of a service, and the path of a view's key below it
    connection, retry      kept-alive connections with deadlines, and what may be tried again
    answer, score          what the service says, as values or as errors
    batch                  many keys in one request
    typed_values           values in the types of their features
    dataframe              answers as a pandas DataFrame
    event_json             an event as one line of JSON

A client needs a URL and no project. For many events use `hr.Producer`, which writes to the log itself.
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
