"""Headrace: one definition of a feature, computed by Spark and served fresh."""
