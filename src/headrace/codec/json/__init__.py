"""JSON records: one strict meaning, read in Python and as Spark SQL, and written."""
