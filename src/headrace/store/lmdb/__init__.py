"""The LMDB store: memory-mapped files, written by one process and read by many."""
