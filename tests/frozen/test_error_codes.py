"""The exit code and the HTTP status of each error code, as far as the source says them where it raises the error.

What each code means, and every class, are in docs/reference/errors.md, which `tests/test_docs.py` checks.
"""

from __future__ import annotations

import ast
from collections import defaultdict

from headrace.errors import CODES, HeadraceError
from headrace.serve.responses import STATUSES
from headrace.store.row_bytes import DamagedError
from headrace.tiles.expiry import ExpiredError
from tests.frozen.source import calls_with_text

OWN_CODE = (DamagedError, ExpiredError)
"""Classes that give their code themselves."""


def list_classes(base: type[HeadraceError] = HeadraceError) -> list[type[HeadraceError]]:
    return [base, *(inner for each in base.__subclasses__() for inner in list_classes(each))]


def test_each_code_has_the_exit_code_and_the_status_that_it_had(golden):
    classes = {each.__name__: each for each in list_classes() if each.__module__.startswith("headrace.")}
    kinds: dict[str, set[str]] = defaultdict(set)
    for own in OWN_CODE:
        kinds[own("It fails.").code].add(describe(own))
    for call in calls_with_text():
        match call:
            case ast.Call(ast.Name(name) | ast.Attribute(_, name), [ast.Constant(str() as code), *_]):
                if name in classes and code in CODES:
                    kinds[code].add(describe(classes[name]))
    lines = [f"{code}: {'; '.join(sorted(kinds[code])) or 'raised by a helper'}" for code in CODES]
    lines += ["", *(f"{code} is answered with HTTP {status}" for code, status in sorted(STATUSES.items()))]
    golden("frozen/error_codes", "\n".join(lines))


def describe(kind: type[HeadraceError]) -> str:
    return f"exit {kind.exit_code}, HTTP {kind.http_status}"
