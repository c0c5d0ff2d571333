"""What an import of existing history needs of this machine: `scratch` lends it a place on the disk.

`ingest.files` reads the history, `spark.imports.history_import` puts its rows into the lake.
"""

from __future__ import annotations
