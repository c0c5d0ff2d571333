"""Imports: existing history into the lake."""
