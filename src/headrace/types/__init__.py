"""The types a field can have, and which changes of a schema fit readers and data."""
