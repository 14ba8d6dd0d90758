"""The client's models and calls, as Python, out of the description of the API."""

import keyword
import re
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from pullback_service.field_descriptions import FIELD_WORDS
from pullback_service.openapi import operations_of

MADE = "Made by `make api` from the description of the API: change the service, not this file."
UPLOADED = "ReportDocument"  # sent as it is, never taken apart by the client
PREFIX = "#/components/schemas/"
LONGEST_LITERAL = 100  # characters: a longer one that several models have gets a name
LONG_POLL = {"claim_job": "request.wait_s or 0.0", "read_log": "wait_s or 0.0"}

Schema = Mapping[str, Any]
_PAGE = re.compile(r"Page_(\w+)_")


def models(description: Schema) -> str:
    """`models.py`: a class for every schema that calls send or return."""
    text = _classes(description)
    named = _literals(text)
    lines = [
        f'"""Models of requests and answers. {MADE}"""',
        "",
        "from datetime import datetime",
        "from typing import Any, Literal",
        "from uuid import UUID",
        "",
        "from pydantic import Field, JsonValue",
        "",
        "from pullback_service.client.answers import Answer, PageOf, Statement",
        "",
        *(f"{name} = {literal}" for literal, name in named.items()),
        "",
    ]
    return _formatted("\n".join(lines) + _with_names(text, named))


def calls(description: Schema) -> str:
    """`calls.py`: a method for every operation."""
    lines = [
        f'"""The calls of the API. {MADE}"""',
        "",
        "from datetime import datetime",
        "from typing import Literal",
        "from uuid import UUID",
        "",
        "from pullback_service.client import models",
        "from pullback_service.client.answers import Content",
        "from pullback_service.client.connection import Body, Sender",
        "",
    ]
    lines += ["", "class Client(Sender):", '    """Every operation of the API."""', ""]
    for method, path, operation in operations_of(dict(description)):
        if not operation.get("deprecated"):
            lines += _method(method, path, operation)
    named = {literal: f"models.{name}" for literal, name in _literals(_classes(description)).items()}
    return _formatted(_with_names("\n".join(lines), named))


def class_name(schema: str) -> str:
    """`Page_JobSummary_` is `PageOfJobSummary`."""
    page = _PAGE.fullmatch(schema)
    return f"PageOf{page[1]}" if page else schema


def _classes(description: Schema) -> str:
    """The classes, each after those it refers to."""
    schemas = description["components"]["schemas"]
    sent, answered = _used(description)
    extended = _extended()
    lines: list[str] = []
    for name in _in_order([name for name in schemas if name in sent | answered], schemas, extended):
        if page := _PAGE.fullmatch(name):
            lines += ["", f"{class_name(name)} = PageOf[{page[1]}]", ""]
            continue
        base = extended.get(name)
        if base not in (sent if name in sent else answered):
            base = None
        lines += _class(name, schemas, "Statement" if name in sent else "Answer", base)
    return "\n".join(lines)


def _extended() -> dict[str, str]:
    """Models of the service that extend another one, by their names."""
    models = [BaseModel]
    for model in models:
        models += model.__subclasses__()
    ours = [
        model
        for model in models
        if model.__module__.startswith("pullback_service.") and ".client." not in model.__module__
    ]
    return {model.__name__: base.__name__ for model in ours for base in model.__bases__ if base in ours}


def _literals(text: str) -> dict[str, str]:
    """The long literals that are there more than once, each with its name."""
    found = re.findall(r"^    (\w+): .*?(Literal\[[^\]]*\])", text, re.MULTILINE)
    times = Counter(literal for _, literal in found if len(literal) > LONGEST_LITERAL)
    return {literal: member.rstrip("s").title() for member, literal in found if times[literal] > 1}


def _with_names(text: str, named: Mapping[str, str]) -> str:
    for literal, name in named.items():
        text = text.replace(literal, name)
    return text


def _used(description: Schema) -> tuple[set[str], set[str]]:
    """Names of schemas that are sent, and of those that are only returned."""
    schemas = description["components"]["schemas"]
    sent: set[str] = set()
    answered: set[str] = set()
    for _, _, operation in operations_of(dict(description)):
        for media in operation.get("requestBody", {}).get("content", {}).values():
            _reach(media.get("schema", {}), schemas, sent)
        for status, answer in operation["responses"].items():
            if status.startswith("2"):
                for media in answer.get("content", {}).values():
                    _reach(media.get("schema", {}), schemas, answered)
    return sent, answered - sent


def _reach(schema: Any, schemas: Schema, found: set[str]) -> None:
    for name in _references(schema):
        if name not in found and name not in {UPLOADED, "JsonValue"}:
            found.add(name)
            _reach(schemas[name], schemas, found)


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if "$ref" in schema:
            yield schema["$ref"].removeprefix(PREFIX)
        for item in schema.values():
            yield from _references(item)
    elif isinstance(schema, list):
        for item in schema:
            yield from _references(item)


def _in_order(names: list[str], schemas: Schema, extended: Mapping[str, str]) -> list[str]:
    """Each after those it refers to, and the one that it extends."""
    placed: list[str] = []

    def place(name: str) -> None:
        if name in placed or name not in names:
            return
        for other in (*_references(schemas[name]), extended.get(name, name)):
            if other != name:
                place(other)
        placed.append(name)

    for name in names:
        place(name)
    return placed


def _class(name: str, schemas: Schema, base: str, extended: str | None) -> list[str]:
    """A class with the fields that the one that it extends does not have, or has otherwise."""
    schema = schemas[name]
    inherited = schemas[extended]["properties"] if extended else {}
    lines = ["", f"class {name}({extended or base}):", *_docstring(" ".join(schema["description"].split()), 4), ""]
    required = set(schema.get("required", ()))
    for member, described in schema.get("properties", {}).items():
        if inherited.get(member) == described:
            continue
        kind = type_of(described)
        optional = member not in required
        if optional and "None" not in kind.split(" | "):
            kind = f"{kind} | None" if base == "Statement" or "default" not in described else kind
        default = ""
        if optional:
            value = described.get("default") if base == "Answer" else None
            default = f" = Field(default_factory={type(value).__name__})" if value in ([], {}) else f" = {value!r}"
        attribute = f"{member}_" if keyword.iskeyword(member) else member
        if attribute != member:
            default = f' = Field({"None, " if optional else ""}alias="{member}")'
        lines.append(f"    {attribute}: {kind}{default}")
        note = described.get("description")
        if note and note != FIELD_WORDS.get(member):
            lines += _docstring(" ".join(note.split()), 4)
    return [*lines, ""]


def type_of(schema: Schema, models: str = "") -> str:
    """A schema as a type of Python."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(PREFIX)
        return "JsonValue" if name == "JsonValue" else models + class_name(name)
    if "anyOf" in schema:
        kinds = list(dict.fromkeys(type_of(each, models) for each in schema["anyOf"]))
        return " | ".join(sorted(kinds, key=lambda kind: kind == "None"))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return f"Literal[{', '.join(repr(value) for value in values)}]"
    kind = schema.get("type")
    if kind in {"array", "object"}:
        inner = schema.get("items" if kind == "array" else "additionalProperties")
        item = type_of(inner, models) if isinstance(inner, Mapping) and inner else "Any"
        return f"list[{item}]" if kind == "array" else f"dict[str, {item}]"
    formats = {"date-time": "datetime", "uuid": "UUID", "binary": "bytes"}
    plain = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
    return formats.get(schema.get("format", ""), plain.get(str(kind), "Any"))


def understood(operation: Schema) -> Iterator[Schema]:
    """Parameters of a call: without those that ask for another answer than the model it returns, a file or a 304."""
    is_file = "text/csv" in operation["responses"].get("200", {}).get("content", {})
    others = {"if-none-match", *(("format", "accept") if is_file else ())}
    for parameter in operation.get("parameters", ()):
        if parameter["name"] not in others:
            yield parameter


def _method(method: str, path: str, operation: Schema) -> list[str]:
    """A method; `connection.call_of` tells by their names what its arguments are of the call."""
    of_path, keywords = [], []
    for parameter in understood(operation):
        name = _python_name(parameter["name"])
        path = path.replace(f"{{{parameter['name']}}}", f"{{{name}}}")
        kind = type_of(parameter["schema"], "models.")
        if parameter["in"] == "path":
            of_path.append(f"{name}: {kind}")
            continue
        needed = parameter.get("required", False)
        optional = kind if "None" in kind.split(" | ") else f"{kind} | None"
        keywords.append((not needed, f"{name}: {kind}" if needed else f"{name}: {optional} = None"))
    named = [text for _, text in sorted(keywords, key=lambda each: each[0])]
    arguments = ["self", *of_path, *_body(operation), *(["*", *named] if named else [])]
    kind, asked = _answer(operation)
    call = [f'"{method}"', f'"{path}"', "locals()"]
    call += [f"repeatable={operation['x-repeatable']}"] if operation["x-repeatable"] != (method == "GET") else []
    call += [f"waits_s={LONG_POLL[operation['operationId']]}"] if operation["operationId"] in LONG_POLL else []
    return [
        f"    def {operation['operationId']}({', '.join(arguments)}) -> {kind}:",
        *_docstring(operation["description"], 8),
        f"        return self.{asked}{', '.join(call)})",
        "",
    ]


def _body(operation: Schema) -> list[str]:
    content = operation.get("requestBody", {}).get("content", {})
    if not content:
        return []
    name = content.get("application/json", {}).get("schema", {}).get("$ref", "").removeprefix(PREFIX)
    if not name or name == UPLOADED:
        return ["content: Body"]
    return [f"{'request' if operation['operationId'] in LONG_POLL else 'statement'}: models.{class_name(name)}"]


def _answer(operation: Schema) -> tuple[str, str]:
    answers = {status: answer for status, answer in operation["responses"].items() if status.startswith("2")}
    schemas = [
        answer["content"]["application/json"].get("schema", {})
        for answer in answers.values()
        if "application/json" in answer.get("content", {})
    ]
    names = {schema["$ref"].removeprefix(PREFIX) for schema in schemas if "$ref" in schema}
    if len(names) != 1:
        return "Content", "_fetch("
    model = f"models.{class_name(names.pop())}"
    if "204" in answers:
        return f"{model} | None", f"_ask_or_none({model}, "
    return model, f"_ask({model}, "


def _python_name(name: str) -> str:
    known = {"Idempotency-Key": "idempotency_key", "Pullback-Lease": "lease"}
    found = known.get(name, name.lower().replace("-", "_"))
    return f"{found}_" if keyword.iskeyword(found) else found


def _docstring(text: str, indent: int) -> list[str]:
    pad = " " * indent
    text = text.strip()
    if "\n" not in text and len(text) + indent + 6 <= 120:
        return [f'{pad}"""{text}"""']
    first, _, rest = text.partition("\n\n")
    paragraphs = [first, *(rest.split("\n\n") if rest else [])]
    lines = []
    for number, paragraph in enumerate(paragraphs):
        joined = " ".join(paragraph.split())
        if number == 0:
            sentence, stop, more = joined.partition(". ")
            lines += [f'{pad}"""{sentence}{stop.strip()}', ""]
            joined = more
        if joined:
            lines += [*textwrap.wrap(joined, 120, initial_indent=pad, subsequent_indent=pad), ""]
    return [*lines[:-1], f'{pad}"""']


def _formatted(text: str) -> str:
    """As the formatter has it, without imports that nothing needs."""
    ruff = Path(sys.executable).with_name("ruff")
    name = ["--stdin-filename", "service/pullback_service/client/made.py"]
    for command in (["check", "--select", "F401,I001", "--fix-only", "--quiet", *name, "-"], ["format", *name, "-"]):
        text = subprocess.run([ruff, *command], input=text, capture_output=True, text=True, check=True).stdout  # noqa: S603 - our own tool
    return text
