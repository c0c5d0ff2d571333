"""Schema registries: files in the project, or a server that speaks the Confluent protocol."""
