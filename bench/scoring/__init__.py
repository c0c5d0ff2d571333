"""Scoring under load: one model over twenty features, asked over HTTP, fed by a stream, and given whole tables."""
