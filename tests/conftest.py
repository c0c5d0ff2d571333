"""One Spark session for the whole run: two slots, two shuffle partitions, no UI, bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from headrace.run.session import local_session

    session = local_session("headrace-tests")
    yield session
    session.stop()
