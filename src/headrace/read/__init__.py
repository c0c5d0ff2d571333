"""Features of a key: the tiles of a store, merged into values."""
