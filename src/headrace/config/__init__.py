"""Settings of a project: the table of all settings, how each value is read, headrace.toml and the environment."""
