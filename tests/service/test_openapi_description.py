"""The description of the API is whole: every operation with its examples, its problems, its method and its page."""

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from pullback_service.application import create_service
from pullback_service.client import Client
from pullback_service.openapi import REPEATABLE, operations_of
from pullback_service.settings import Settings

ROOT = Path(__file__).parents[2]
EXAMPLES = json.loads((ROOT / "service/pullback_service/examples.json").read_text())
# A file of another tool has no schema here, and the line before holds what a file of ours has.
RAW = {"upload_report"}


@pytest.fixture(scope="module")
def description():
    return create_service(Settings(database_url="postgresql://nowhere/nothing")).openapi()


@pytest.fixture(scope="module")
def operations(description):
    return {
        operation["operationId"]: (method, path, operation)
        for method, path, operation in operations_of(description)
        if not operation.get("deprecated")
    }


@pytest.fixture(scope="module")
def holds(description):
    """Check a value against a schema of the description."""

    def check(value, schema):
        jsonschema.Draft202012Validator({**schema, "components": description["components"]}).validate(value)

    return check


def _methods(client):
    inherited = {"close", "use_token", "deliver"}
    return {name for name in dir(client) if not name.startswith("_")} - inherited


def test_every_operation_is_a_method_of_the_client_and_the_other_way_round(operations):
    assert _methods(Client) == set(operations)


def test_what_is_made_from_the_description_is_up_to_date():
    command = [sys.executable, "-m", "tools.api", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_operation_has_an_example_and_every_example_an_operation(operations):
    assert EXAMPLES.keys() == operations.keys()  # steps of tools/api/examples.py; `make api` records them


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_hold_by_the_schemas_beside_them(name, description, operations, holds):
    _, _, operation = operations[name]
    example = EXAMPLES[name]
    for parameter in operation.get("parameters", ()):
        place = f"{parameter['in']}.{parameter['name']}"
        if parameter.get("required"):
            assert place in example["parameters"]
        if place in example["parameters"]:
            holds(example["parameters"][place], parameter["schema"])
    if example["body"] is not None and name not in RAW and example["body"]["media_type"] == "application/json":
        holds(example["body"]["content"], operation["requestBody"]["content"]["application/json"]["schema"])
    answer = operation["responses"][str(example["status"])]
    if example["answer"] is not None and example["answer"]["media_type"] == "application/json":
        schema = answer["content"]["application/json"].get("schema", {})
        holds(example["answer"]["content"], schema)
        members = (
            description["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], {}).get("required", ())
        )
        assert set(members) <= example["answer"]["content"].keys()


def test_examples_hold_no_secret_of_the_recording():
    text = json.dumps(EXAMPLES)
    found = set(re.findall(r"plb_(?:enroll_|hook_)?[\w-]{20,}", text))
    assert found <= {f"{mark}{'x' * 32}" for mark in ("plb_", "plb_enroll_", "plb_hook_")}
    assert "the-bootstrap-token" not in text


def test_what_may_be_repeated_exists_and_is_marked(operations):
    assert set(operations) >= REPEATABLE
    for name, (method, _, operation) in operations.items():
        assert operation["x-repeatable"] == (method == "GET" or name in REPEATABLE)


def test_the_problems_of_being_nobody_too_often_or_too_early_are_described_everywhere(operations):
    for name, (_, _, operation) in operations.items():
        assert {"401", "403", "429", "503", "default"} <= operation["responses"].keys(), name


def test_bounds_are_words_of_json_schema_and_whole_for_whole_numbers(description):
    def parts(node):
        yield node
        for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            yield from parts(child)

    numbers = [part for part in parts(description) if isinstance(part, dict) and part.get("type") == "integer"]
    assert len(numbers) > 100
    for number in numbers:
        assert not {"ge", "gt", "le", "lt"} & number.keys()
        assert all(isinstance(number.get(bound, 0), int) for bound in ("minimum", "maximum"))
    assert description["components"]["schemas"]["ChartChange"]["properties"]["place"]["anyOf"][0]["maximum"] == 40
