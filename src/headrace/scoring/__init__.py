"""Scoring in the stream: events in, predictions out, each with the features that its model saw.

    admit        verdicts as records come, one by one, with a memory of event ids
    tail         events that are in the log and may not be in the tiles yet
    features     tiles and tail together: what is known of an event's keys at its arrival
    prediction   what is written of a score
    scoring      one stream's models: some records at a time, predictions before positions
    process      all of a project's, until told to stop

Tiles come from the store that serving fills, models from `score`; nothing here starts an engine. Spark's latency is not
in a score: what it has not written yet is folded in from the log, each event once.
"""
