"""The late lane: tiles of late events, from the lake into the changelog."""
