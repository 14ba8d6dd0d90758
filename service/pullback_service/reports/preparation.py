"""The part of storing a report that needs a processor and no database."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from pullback_service.process_memory import LARGE_BODY_BYTES
from pullback_service.reports.case_frames import packed_apart
from pullback_service.reports.codecs import packed
from pullback_service.reports.conversion import plain, read_upload
from pullback_service.reports.parsing import ParsedReport, read_report
from pullback_service.reports.upload_query import UploadParameters


@dataclass(frozen=True, slots=True)
class PreparedReport:
    """A report ready to be stored: everything that needs a processor and no database is done."""

    read: ParsedReport
    body: bytes
    body_bytes: int
    document: bytes | None


def prepare(body: bytes) -> PreparedReport:
    """Parse, validate, take apart and compress a report of ours. Long for large ones: run it in a thread."""
    return _prepared(body, read_report)


def prepare_upload(body: bytes, parameters: UploadParameters, *, limit: int, now: datetime) -> PreparedReport:
    """The same for an upload of any format, compressed or not."""
    return _prepared(plain(body, limit=limit), partial(read_upload, parameters=parameters, now=now))


def _prepared(body: bytes, reader: Callable[[bytes], ParsedReport]) -> PreparedReport:
    with _compressed_meanwhile(body) as compressed:
        read = reader(body)
        document = None if read.made is None else packed(read.made)
        return PreparedReport(read, compressed(), len(body), document)


@contextmanager
def _compressed_meanwhile(body: bytes) -> Iterator[Callable[[], bytes]]:
    """A large body compressed on another processor while it is read here: zstd lets go of Python's lock."""
    compress = partial(packed_apart, body)
    if len(body) < LARGE_BODY_BYTES:
        yield compress
        return
    with ThreadPoolExecutor(1) as aside:
        yield aside.submit(compress).result
