"""Scores over HTTP: each version of a model in a process of its own."""
