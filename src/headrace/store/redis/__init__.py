"""The Redis store, which several serving processes share. Only here is its client imported."""
