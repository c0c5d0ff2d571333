"""Predictions beside their labels in Spark, and the distributions of what models were given."""
