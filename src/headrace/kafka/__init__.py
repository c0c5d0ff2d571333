"""What Kafka needs beside a Python client: pinned jars, a local broker, and the Java names of a client's options.

Nothing here speaks the Kafka protocol to read or write records: that is `log.kafka`. Spark's connector takes the jars
(`run.session`) and the options (`run.records`); `headrace kafka` starts the broker.
"""
