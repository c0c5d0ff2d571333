"""What `headrace up` does: start a project's processes, watch them, restart them, and end them.

`stack` says which processes a project has, `supervisor` keeps them running, `status_report` reads their state back. The
state itself is in `processes.state_folder`. A supervisor knows nothing of events or features: its children do the work,
in process groups of their own.
"""

from __future__ import annotations
