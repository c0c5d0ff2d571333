"""Serving: reads over HTTP, the same from Feast, how soon an event is servable, and what a store of many keys costs.

The parts are in `bench.serving`, in the order of their numbers: reads (1), against Feast (2), event to servable (3),
many keys (4), uvicorn against granian (5).
"""

from __future__ import annotations

import sys

from bench.harness import run
from bench.serving.against_feast import against_feast
from bench.serving.keys import keys
from bench.serving.reads import reads
from bench.serving.servable import servable
from bench.serving.servers import servers

if __name__ == "__main__":
    sys.exit(run("serve", reads, against_feast, servable, keys, servers))
