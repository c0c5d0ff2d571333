"""Status: what every component of a project publishes about itself, in one topic, and how others read it."""
