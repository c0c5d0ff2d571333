"""What `headrace up` does: start a project's processes, watch them, restart them, and end them.

`stack` says which processes a project has, `supervise` keeps them running, `place` says where that is recorded, and
`report` reads it back. A supervisor knows nothing of events or features: its children do the work, in processes and
process groups of their own.
"""

from __future__ import annotations
