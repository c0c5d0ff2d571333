"""Values of many keys at many past moments, from single events: what training sets, past reads and audits are made of.

`timeline` has the events in order and says which of them were known at each moment. Every aggregate computes its values
from columns of them (`aggregate.columns`), and `values` puts features together. Everything works on whole columns, for
a few hundred thousand events and moments at a time; where these come from is `spark.training.features`'s and
`asof.lake`'s business. Results are exact, also where serving has a sketch.
"""
