"""Conversion of uploads of any format to reports: the parameters of the address are combined with the file. Pure."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, cast

import orjson

from pullback_service.errors import FieldError, IncompleteRequestError, InvalidInputError, UnreadableBodyError
from pullback_service.importers import registry
from pullback_service.importers.contents import Source
from pullback_service.importers.json_paths import refuse
from pullback_service.importers.results import ImportedFile, UploadOptions
from pullback_service.importers.unpacking import SEND_THE_FILE, decompress, in_utf8, refuse_too_many_values
from pullback_service.reports.case_stream import InvalidReportError, gather
from pullback_service.reports.parsing import WRAPPER, ParsedReport, find_unread, parse_json, read_parsed, read_unread
from pullback_service.reports.report_from_results import ResultOrigin, assemble
from pullback_service.reports.schemas import FORMAT
from pullback_service.reports.upload_query import UploadParameters, refuse_contradictions

_LONGEST_UNIT = 32
_MACHINE_REMEDY = "machine=NAME, a name that stays the same from run to run, such as machine=ci"


def plain(body: bytes, *, limit: int) -> bytes:
    """The file that an upload brings: decompressed and in UTF-8, otherwise as it came."""
    content = in_utf8(decompress(body, limit))
    if not content or content.isspace():
        message = f"is empty: {SEND_THE_FILE}"
        raise UnreadableBodyError(f"The body {message}.", errors=[FieldError(path="$", message=message)])
    refuse_too_many_values(content)
    return content


def read_upload(content: bytes, parameters: UploadParameters, *, now: datetime) -> ParsedReport:
    """The report that a file is, or is made into."""
    unread = find_unread(content) if parameters.format in {None, FORMAT} else None
    if unread is not None:
        return _confirmed(read_unread(unread, content), parameters)
    source = Source.of(content)
    try:
        return _read_source(source, parameters, now=now)
    finally:
        source.let_go()


def _read_source(source: Source, parameters: UploadParameters, *, now: datetime) -> ParsedReport:
    if parameters.format == FORMAT or (parameters.format is None and _is_own(source)):
        return _confirmed(read_parsed(_parsed(source)), parameters)
    options = UploadOptions(parameters.commit, _by_metric(parameters.unit, "unit"), _directions(parameters.direction))
    importer, imported = registry.read(source, options, parameters.format)
    place = _place(parameters, imported, importer.title)
    hashed = hashlib.sha256(source.body)  # a copy of a long one, made at once, would keep other threads waiting
    hashed.update(b"\0" + _canonical(parameters, place))
    digest = hashed.digest()
    assembled = assemble(imported, place, tool_format=importer.name, digest=digest, now=now)
    try:
        gathered = gather(dict(assembled.document), "$", assembled.places)
    except InvalidReportError as error:
        raise _does_not_hold(error, assembled.places) from error
    return ParsedReport(
        gathered.head,
        "$",
        digest,
        gathered.parts,
        format=importer.name,
        notes=tuple(imported.notes),
        made=orjson.dumps(assembled.document),
    )


def _confirmed(read: ParsedReport, parameters: UploadParameters) -> ParsedReport:
    """One of our own reports, of which the query says nothing else."""
    refuse_contradictions(parameters, read.head)
    _refuse_needless(parameters)
    return read


def _parsed(source: Source) -> Any:
    """One of our own reports as it was parsed already, to be used up by reading it: as parsed again it takes twice the memory.

    Sources forgive what reports may not have in them: NaN and infinities.
    """
    body = source.body
    forgiven = b"NaN" in body or b"Infinity" in body or source.files is not None
    return parse_json(body) if forgiven else source.document.value


def _is_own(source: Source) -> bool:
    if source.files is not None or source.is_lines() or source.beginning.startswith((b"[", b"window")):
        return False
    content = source.document.value
    return not isinstance(content, dict) or "format" in content or isinstance(content.get(WRAPPER), dict)


def _refuse_needless(parameters: UploadParameters) -> None:
    for name in ("variant", "unit", "direction"):
        if getattr(parameters, name) is not None:
            refuse(f"query.{name}", f"is for files of other tools: a {FORMAT} says the {name} itself")


def _place(parameters: UploadParameters, imported: ImportedFile, title: str) -> ResultOrigin:
    commit, machine = imported.commit, imported.machine
    sha = _agreed("commit", parameters.commit, commit.sha)
    named = parameters.machine or _shown(machine.name)
    missing = {
        "project": None if parameters.project else "project=NAME",
        "commit": None if sha else "commit=SHA, the full hash that was measured",
        "machine": None if named else _MACHINE_REMEDY,
    }
    errors = [
        FieldError(path=f"query.{name}", message=f"is needed with files of {title}: add {remedy}")
        for name, remedy in missing.items()
        if remedy is not None
    ]
    if errors or parameters.project is None or sha is None or named is None:
        complaints = "; ".join(f"{error['path']} {error['message']}" for error in errors)
        raise IncompleteRequestError(f"{complaints}.", errors=errors)
    dirty = commit.dirty or parameters.dirty
    if dirty and not parameters.allow_dirty:
        path = "$" if commit.dirty else "query.dirty"
        refuse(
            path,
            "says that the tree had uncommitted changes: commit them and measure again, "
            "or add allow_dirty=true to keep the report outside of the history",
        )
    return ResultOrigin(
        project=parameters.project,
        sha=sha,
        branch=parameters.branch or _shown(commit.branch),
        machine=named,
        authored_at=parameters.authored_at or commit.authored_at,
        dirty=dirty,
        variant=parameters.variant,
    )


def _agreed(name: str, in_query: str | None, in_file: str | None) -> str | None:
    in_file = in_file.lower() if in_file is not None else None
    if in_file is not None and (len(in_file) not in {40, 64} or set(in_file) - set("0123456789abcdef")):
        in_file = None
    if in_query is not None and in_file is not None and in_query != in_file:
        refuse(
            f"query.{name}",
            f"is {in_query}, but the file says {in_file}: leave {name}= out, or send the file of that {name}",
        )
    return in_query or in_file


def _shown(text: str | None) -> str | None:
    """A name out of a file, where it can be one."""
    plain = " ".join(part for part in (text or "").split() if part.isprintable())
    return plain if 0 < len(plain) <= 180 and plain.isprintable() else None


def _by_metric(given: str | None, name: str) -> Mapping[str | None, str]:
    """`ns` for all metrics, `latency:ns,throughput:ops/s` for one each."""
    results: dict[str | None, str] = {}
    for part in (given or "").split(",") if given is not None else ():
        key, colon, value = part.rpartition(":")
        value = value.strip()
        if not value or (colon and not key.strip()) or len(value) > _LONGEST_UNIT:
            refuse(f"query.{name}", f"must be like {name}=ns or {name}=latency:ns,throughput:ops/s")
        results[key.strip() if colon else None] = value
    return results


def _directions(given: str | None) -> Mapping[str | None, Literal["smaller", "bigger"]]:
    result = _by_metric(given, "direction")
    for value in result.values():
        if value not in {"smaller", "bigger"}:
            refuse(
                "query.direction",
                "must be smaller or bigger, or one of them for each metric: latency:smaller,throughput:bigger",
            )
    return cast("Mapping[str | None, Literal['smaller', 'bigger']]", result)


def _canonical(parameters: UploadParameters, place: ResultOrigin) -> bytes:
    """Everything beside the file that changes what the report says."""
    return orjson.dumps(
        [
            place.project,
            place.sha,
            place.branch,
            place.machine,
            place.dirty,
            parameters.variant,
            parameters.unit,
            parameters.direction,
        ]
    )


def _does_not_hold(error: InvalidReportError, places: tuple[str, ...]) -> InvalidInputError:
    """A value that the report cannot take, by its place in the file it came from."""
    results = []
    for where, message in error.errors:
        path = (
            places[where[1]]
            if len(where) > 1 and where[0] == "cases" and isinstance(where[1], int)
            else ".".join(str(step) for step in where)
        )
        results.append(FieldError(path=path, message=message))
    return InvalidInputError(f"{results[0]['path']} is not valid: {results[0]['message'].rstrip('.')}.", errors=results)
