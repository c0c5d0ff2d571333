"""The embedded log: a folder with one SQLite file for each topic."""
