"""Fingerprints: equal definitions, equal digests, on every machine and in every process."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def fingerprint(form: Any) -> str:
    """Twelve hexadecimal digits of a JSON form, whatever the order of its keys.

    >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    True
    """
    text = json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
