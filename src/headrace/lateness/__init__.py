"""How late events arrive, and which allowed lateness to choose."""
