"""Was it right? The figures of a project's models, restated whenever more is known.

    predictions ┐
                ├─► run.outcomes: sums that changed ─► cells, a Delta table in which every restatement stays ─► reports
    labels      ┘

`passes` takes one look, `process` takes them again and again beside the pipeline, `report` reads what was found.
"""
