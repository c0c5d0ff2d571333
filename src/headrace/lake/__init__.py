"""History as Delta tables: bronze holds every record with its verdict, silver every event that counts, once.

No Spark here: tables are opened, committed to and kept in order through `deltalake`, files are written with pyarrow.
`spark.archive.archive` fills them; anything that reads Delta can read them.
"""
