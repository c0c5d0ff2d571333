"""The skew audit: whether what was served is what the definition says, and if not, why.

    sample      what somebody was given, from the topics of served reads and of predictions
    state       which events the tiles of a key may lack at a moment, and what its features are without them
    cause       why a value differs: freshness, late lane, version, or a defect
    defect      what kind of a defect it looks like, with the events that tell
    compare     many samples against the lake
    counts      what was found, feature by feature

A value is compared with what was known at its moment (`as_known`), computed anew from the lake by the code that makes
training sets. Every difference has one cause, and the counts add up.
"""
