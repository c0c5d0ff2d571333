"""Avro records: schemas, one meaning read in Python and as Spark SQL, and written."""
