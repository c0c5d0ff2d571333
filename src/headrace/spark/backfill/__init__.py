"""Backfills: a new run of tiles from the lake."""
