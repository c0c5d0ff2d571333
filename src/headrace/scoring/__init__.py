"""Scoring in the stream: events in, predictions out, each with the features that its model saw.

    admission        the verdict of each record, with a memory of event ids
    tail             events that are in the log and may not be in the tiles yet
    features         tiles and tail together: what is known of an event's keys at its arrival
    prediction       the record that is written for a score
    stream_scoring   one model over its stream: predictions are written before positions
    model_processes  a process for each model, where a project has several
    process          the process that scores until it is stopped

Tiles come from the store that serving fills, models from `models`. No engine runs here, and Spark's latency is not in a
score: an event that Spark has not written yet is folded in from the log, once.
"""
