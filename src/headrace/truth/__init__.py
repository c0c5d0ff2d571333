"""What is true of a prediction, and what follows for the model: meaning and figures, in plain Python.

`outcome` says what is known of one prediction, `sums` what is kept of many, `figures` how good they were and `estimate`
how good they will prove. Spark does the same over the lake (`run.outcomes`); `evaluate` keeps what it finds.
"""
