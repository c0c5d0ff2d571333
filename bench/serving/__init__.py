"""Serving under load: a client that keeps to its schedule, stores of any size, and the same reads from Feast."""
