"""Events in: from files and pipes, from programs, from history, and dead letters again."""
