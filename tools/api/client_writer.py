"""The client's models and calls, as Python, out of the description of the API."""

import keyword
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pullback_service.description import operations_of
from pullback_service.field_words import FIELD_WORDS

MADE = "Made by `make api` from the description of the API: change the service, not this file."
UPLOADED = "ReportDocument"  # sent as it is, never taken apart by the client
PREFIX = "#/components/schemas/"
LONG_POLL = {"claim_job": "asked.wait_s or 0.0", "read_log": "wait_s or 0.0"}

Schema = Mapping[str, Any]


def models(description: Schema) -> str:
    """`models.py`: a class for every schema that calls send or return."""
    schemas = description["components"]["schemas"]
    sent, answered = _used(description)
    names = [name for name in schemas if name in sent | answered]
    lines = [
        f'"""Models of requests and answers. {MADE}"""',
        "",
        "from datetime import datetime",
        "from typing import Any, Literal",
        "from uuid import UUID",
        "",
        "from pydantic import Field, JsonValue",
        "",
        "from pullback_service.client.answers import Answer, Statement",
        "",
    ]
    for name in _in_order(names, schemas):
        lines += _class(name, schemas[name], "Statement" if name in sent else "Answer")
    return _formatted("\n".join(lines))


def calls(description: Schema) -> str:
    """`calls.py`: a method for every operation."""
    lines = [
        f'"""The calls of the API. {MADE}"""',
        "",
        "from datetime import datetime",
        "from typing import Literal",
        "from urllib.parse import quote",
        "from uuid import UUID",
        "",
        "from pullback_service.client import models",
        "from pullback_service.client.answers import Content",
        "from pullback_service.client.connection import Body, Call, Sender",
        "",
    ]
    lines += ["", "class Client(Sender):", '    """Every operation of the API."""', ""]
    for method, path, operation in operations_of(dict(description)):
        if not operation.get("deprecated"):
            lines += _method(method, path, operation)
    return _formatted("\n".join(lines))


def class_name(schema: str) -> str:
    """`Page_JobSummary_` is `PageOfJobSummary`."""
    page = re.fullmatch(r"Page_(\w+)_", schema)
    return f"PageOf{page[1]}" if page else schema


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


def _in_order(names: list[str], schemas: Schema) -> list[str]:
    """Each after those it refers to."""
    placed: list[str] = []

    def place(name: str) -> None:
        if name in placed or name not in names:
            return
        for other in _references(schemas[name]):
            if other != name:
                place(other)
        placed.append(name)

    for name in names:
        place(name)
    return placed


def _class(name: str, schema: Schema, base: str) -> list[str]:
    about = " ".join(schema.get("description", "One page of a list.").split())
    lines = ["", f"class {class_name(name)}({base}):", *_docstring(about, 4), ""]
    required = set(schema.get("required", ()))
    for member, described in schema.get("properties", {}).items():
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
    of_path, keywords, query, headers = [], [], [], []
    for parameter in understood(operation):
        name = _python_name(parameter["name"])
        kind = type_of(parameter["schema"], "models.")
        if parameter["in"] == "path":
            of_path.append(f"{name}: {kind}")
            continue
        needed = parameter.get("required", False)
        optional = kind if "None" in kind.split(" | ") else f"{kind} | None"
        keywords.append((not needed, f"{name}: {kind}" if needed else f"{name}: {optional} = None"))
        if parameter["in"] == "query":
            query.append(f'"{parameter["name"]}": {name}')
        else:
            headers.append(f'"{parameter["name"]}": {f"str({name})" if kind == "UUID" else name}')
    body, argument = _body(operation)
    named = [text for _, text in sorted(keywords, key=lambda each: each[0])]
    arguments = ["self", *of_path, *([argument] if argument else []), *(["*", *named] if named else [])]
    kind, asked = _answer(operation)
    call = [f'"{method}"', _place(path, operation)]
    call += [f"query={{{', '.join(query)}}}"] if query else []
    call += [f"headers={{{', '.join(headers)}}}"] if headers else []
    call += [f"body={body}"] if body else []
    call += ["repeatable=True"] if operation["x-repeatable"] else []
    call += [f"waits_s={LONG_POLL[operation['operationId']]}"] if operation["operationId"] in LONG_POLL else []
    return [
        f"    def {operation['operationId']}({', '.join(arguments)}) -> {kind}:",
        *_docstring(operation["description"], 8),
        f"        return self.{asked}Call({', '.join(call)}))",
        "",
    ]


def _body(operation: Schema) -> tuple[str | None, str | None]:
    content = operation.get("requestBody", {}).get("content", {})
    if not content:
        return None, None
    schema = content.get("application/json", {}).get("schema", {})
    name = schema.get("$ref", "").removeprefix(PREFIX)
    if not name or name == UPLOADED:
        return "content", "content: Body"
    argument = "asked" if operation["operationId"] in LONG_POLL else "statement"
    return argument, f"{argument}: models.{class_name(name)}"


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


def _place(path: str, operation: Schema) -> str:
    quoted = path
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            name = _python_name(parameter["name"])
            # Names may have slashes in them, which are part of the address.
            plain = parameter["schema"].get("type") == "string" and "format" not in parameter["schema"]
            quoted = quoted.replace(f"{{{parameter['name']}}}", f"{{quote({name})}}" if plain else f"{{{name}}}")
    return f'f"{quoted}"' if "{" in quoted else f'"{quoted}"'


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
