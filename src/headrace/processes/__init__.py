"""Services on this machine, for development and tests: how one is started, found again and stopped, and a Redis.

`service` is what they have in common, `ports` where they may listen, `redis` the Redis of a project. The broker is in
`processes.broker`, which needs jars and a client. Which of them a project uses is decided by its settings
(`supervisor.services`).
"""
