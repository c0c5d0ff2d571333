"""Training sets over a synthetic history, and what others make of the same files."""
