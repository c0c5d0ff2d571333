"""Tiles: their rows in the changelog, their identity, their levels, and how long they are kept."""
