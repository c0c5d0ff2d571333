"""The live pipeline: tile queries, their runs, and what they publish."""
