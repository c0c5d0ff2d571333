"""Scoring: over HTTP, in the stream as events come, and over whole tables, with one model of a hundred trees.

The parts are in `bench.scoring`, in the order of their numbers: over HTTP (1), in the stream (2), in Spark (3).
"""

from __future__ import annotations

import sys

from bench.harness import run
from bench.scoring.batch import batch
from bench.scoring.instream import instream
from bench.scoring.over_http import http

if __name__ == "__main__":
    sys.exit(run("score", http, instream, batch))
