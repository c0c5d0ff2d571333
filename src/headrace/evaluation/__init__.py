"""Evaluation: the metrics of a project's models, restated whenever more labels are known.

    predictions ┐
                ├─► spark.evaluation.outcomes: sums that changed ─► cells, a Delta table of all restatements ─► reports
    labels      ┘

`evaluation_pass` does one pass, `component` repeats passes beside the pipeline, `report` reads what they found.
`drift_watch` and `alerts` turn windows into incidents and records of the topic `alerts`.
"""
