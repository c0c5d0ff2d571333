"""The archive: every record into the lake, exactly once, with its verdict."""
