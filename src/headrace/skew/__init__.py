"""The skew audit: is what was served what the definition says, and if not, why?

    sample       what a caller was given, from the topics of served reads and of predictions
    tile_state   the events that the tiles of a key may lack at a moment
    cause        why a value differs: freshness, late lane, version, or a defect
    defect       the kind of a defect, with the events that show it
    compare      many samples against the lake
    counts       what was found, feature by feature

A value is compared with what was known at its moment (`as_known`), which the code of training sets computes again from
the lake. Every difference has one cause, and the counts add up.
"""
