"""Models: versions of them in folders, the one scorer, and who of them answers.

    add ──► manifest + model file ──► registry ──► lineup ──► scorer ──► a score, or an error of its own, for each row

A version never changes once it is there; what changes are its roles (champion, challenger, shadow), in one small file.
Nothing here knows views, HTTP or Spark: whoever scores hands in values by column, and the very same `Scorer` answers.
Libraries that hold models are imported when a model of theirs is loaded.
"""

from headrace.models.breaker import Breaker
from headrace.models.columns import Column, differences, fingerprint
from headrace.models.lineup import Lineup, Lineups, Seat
from headrace.models.manifest import Manifest, Output
from headrace.models.registry import Registry
from headrace.models.roles import Change, Roles, chosen
from headrace.models.scorer import Scorer

__all__ = [
    "Breaker",
    "Change",
    "Column",
    "Lineup",
    "Lineups",
    "Manifest",
    "Output",
    "Registry",
    "Roles",
    "Scorer",
    "Seat",
    "chosen",
    "differences",
    "fingerprint",
]
