"""The OpenAPI document of a project with a view, a feature set with request values, and a model."""

from __future__ import annotations

import json

from headrace.config.serve_settings import DEFAULTS
from headrace.serve.openapi import document
from headrace.serve.routes import ROUTES
from headrace.version import VERSION
from tests.frozen.shop import plan


def test_the_document_says_what_it_said(golden):
    made = document(ROUTES, plan, DEFAULTS, keyed=True)
    assert made["info"]["version"] == VERSION
    made["info"]["version"] = "VERSION"
    golden("frozen/openapi", json.dumps(made, indent=1, sort_keys=True, ensure_ascii=False))
