"""The Spark process: pipeline, archive, late lane and evaluation as components of one driver with one session."""
