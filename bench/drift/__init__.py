"""The drift bench: streams of hourly windows whose changes are known, and who finds them, how soon, how wrongly."""
