"""Models: versions of them in folders, the one scorer, and who of them answers.

    add ──► manifest + model file ──► registry ──► lineup ──► scorer ──► a score, or an error of its own, for each row

A version never changes once it is there; what changes are its roles (champion, challenger, shadow), in one small file.
Nothing here knows views, HTTP or Spark: whoever scores hands in values by column, and the very same `Scorer` answers.
Libraries that hold models are imported when a model of theirs is loaded.
"""

from headrace.models.breaker import Breaker
from headrace.models.columns import ModelColumn, differences, fingerprint
from headrace.models.lineup import Lineup, Lineups, Seat
from headrace.models.manifest import Manifest, Output
from headrace.models.registry import ModelRegistry
from headrace.models.roles import RoleChange, Roles, choose_version
from headrace.models.scorer import Scorer

__all__ = [
    "Breaker",
    "Lineup",
    "Lineups",
    "Manifest",
    "ModelColumn",
    "ModelRegistry",
    "Output",
    "RoleChange",
    "Roles",
    "Scorer",
    "Seat",
    "choose_version",
    "differences",
    "fingerprint",
]
