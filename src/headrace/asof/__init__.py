"""Values of many keys at many past moments, from single events: what training sets, past reads and audits are made of.

`timeline` has the events in order and says which of them were known at each moment, `measure` what an aggregate makes
of them, with range folds (`tree`) and ranks (`ranks`) instead of a walk through every window, and `values` puts
features together. Everything works on whole columns, for a few hundred thousand events and moments at a time; where
these come from is `spark.training.features`'s and `asof.lake`'s business. Results are exact, also where serving has a
sketch.
"""
