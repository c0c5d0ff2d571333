"""What a run of the tests costs: seconds and CPU-seconds of each test and folder, and the limits that fail a run.

`cpu` measures processes, `fixtures` and `plugin` book what tests and shared fixtures use, `rules` compares that with
`tests/budgets.toml`, and `python -m tests.accounting` proposes budgets from a report.
"""
