"""Spark: sessions, sources, admission and tiles, and a folder for each application. Only here is pyspark imported."""
