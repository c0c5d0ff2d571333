"""The meaning of the language in plain Python, without an engine. Every engine is held to it."""
