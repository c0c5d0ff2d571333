"""How many cases a property test tries: one number for each profile, and shares of it where a case is dear.

`make test` uses the profile `test`, `make prove` the profile `prove`. A test states its share and never a number, so
that the price of all of them is set here. The seed of the run stands here too: a test that draws by itself starts from
it, and the seed that pytest prints repeats the run.
"""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import HealthCheck, settings

CASES = {"test": 50, "prove": 500}
"""Cases of a property test whose share is 1."""


class RunSeed:
    """The seed of this run of pytest, which the conftest sets before any test is collected."""

    value = 0


def register_profiles() -> None:
    """Tell hypothesis the profiles and load the cheap one; `--hypothesis-profile` chooses the other."""
    for name, cases in CASES.items():
        # How long a case takes says nothing about its meaning, and the machine may be busy.
        settings.register_profile(name, max_examples=cases, deadline=None, print_blob=True)
    settings.load_profile("test")


def count_cases(share: float) -> int:
    """Cases that a test with this share tries under the profile in use, at least two."""
    return max(2, round(share * CASES[settings.get_current_profile_name()]))


def examples(share: float, *, quiet: Collection[HealthCheck] = ()) -> settings:
    """The settings of a property test with this share of the cases; `quiet` are health checks it does without."""
    return settings(max_examples=count_cases(share), suppress_health_check=quiet)


def is_proving() -> bool:
    """Whether this is a run of `make prove`."""
    return settings.get_current_profile_name() == "prove"


def run_seed() -> int:
    """The seed of this run."""
    return RunSeed.value
