"""Dead letters: what `headrace dead-letters` does.

`selection` says which letters are meant, `replay_record` builds the record that would be appended and its verdict,
`replay` appends each exactly once, and `lock` lets one process at a time do so. `spark.dead_letter` says how the topic
of dead letters keeps a letter.
"""

from __future__ import annotations
