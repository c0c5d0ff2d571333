"""Kafka as a log. Only here is its client imported."""
