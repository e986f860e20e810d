"""Requests of all kinds, allowed or not: none makes the service fail."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from callers import Caller
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tailproof.live.config import Config, load
from tailproof.service.app import create_app

SHOP = """
service.durable = false
service.hosts = ["testserver"]
[experiments.shop]
recipe = "auto_filtered(ucb1(bonus=0.7), repeats=3)"
silence = "lost"
arms = ["red", "blue"]
[experiments.times]
recipe = "lin_student_ucb"
silence = "lost"
"""
CHECKS = [content_type_conformance, response_schema_conformance, status_code_conformance]
TOKEN = "correct-horse-battery-staple"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    file = tmp_path / "shop.toml"
    file.write_text(SHOP)
    return load(file)


def fuzz(app: FastAPI, examples: int, token: str | None) -> None:
    """Send what the OpenAPI page allows and what it does not: every answer is one it names."""
    known = {} if token is None else {"Authorization": f"Bearer {token}"}
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers=known)
    plain = settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        for mode in modes if operation.body else modes[:1]:

            @plain
            @given(case=operation.as_strategy(generation_mode=mode))
            def is_answered(case: Any) -> None:
                case.path_parameters = {
                    key: value if key != "name" or len(str(value)) % 2 else "shop"
                    for key, value in (case.path_parameters or {}).items()
                }
                if token is not None and case.operation.path != "/health":
                    assert called(case, {"Authorization": "Bearer x"}).status_code == 401
                answer = called(case, known)
                assert answer.status_code < 500
                case.validate_response(answer, checks=CHECKS)

            is_answered()


def called(case: Any, known: Mapping[str, str]) -> Any:
    case.headers = {**(case.headers or {}), **known}
    return case.call()


@pytest.mark.parametrize("token", [None, TOKEN])
def test_no_request_makes_the_service_fail(config: Config, token: str | None) -> None:
    app = create_app(config, token)
    with Caller(app):
        fuzz(app, 4, token)


@pytest.mark.slow
@pytest.mark.parametrize("token", [None, TOKEN])
def test_no_request_of_very_many_makes_the_service_fail(config: Config, token: str | None) -> None:
    app = create_app(config, token)
    with Caller(app):
        fuzz(app, 500, token)
