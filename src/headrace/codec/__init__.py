"""Records as bytes: JSON, Avro, the Confluent framing, and schema registries."""
