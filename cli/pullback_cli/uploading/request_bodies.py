"""Files and folders as bodies of uploads: compressed, and GradBench's long logs without the parts that are never read."""

import gzip
import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from pullback_cli.usage_errors import RefusalError

# Inputs and outputs of a GradBench run can be gigabytes of numbers; its own `log trim` drops them too.
TRIMMED_ABOVE_BYTES = 32 * 1024 * 1024
_FAST = 3


def body_of(path: Path) -> bytes:
    """A file as it is, compressed; a folder as .tar.gz."""
    try:
        if path.is_dir():
            files = [file for file in sorted(path.rglob("*")) if file.is_file()]
            if not files:
                raise RefusalError(f"the folder {path} has no files; name a file or folder of a tool")
            return packed_folder(path, files)
        if path.suffix == ".jsonl" and path.stat().st_size > TRIMMED_ABOVE_BYTES:
            return _trimmed(path)
        content = path.read_bytes()
    except OSError as error:
        raise RefusalError(f"{path} cannot be read ({error.strerror}); name a file or folder of a tool") from error
    return content if path.suffix in {".gz", ".zst"} else gzip.compress(content, _FAST, mtime=0)


def packed_folder(folder: Path, files: Iterable[Path]) -> bytes:
    """Some files of a folder, by their names inside it; the same files are the same bytes."""
    return packed({str(file.relative_to(folder)): file.read_bytes() for file in files if not file.is_symlink()})


def packed(files: Mapping[str, bytes]) -> bytes:
    """Files as .tar.gz, without times, owners or anything else that is not in them."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return gzip.compress(archive.getvalue(), _FAST, mtime=0)


def _trimmed(log: Path) -> bytes:
    """A GradBench log line by line, without inputs of described messages and outputs."""
    compressed = io.BytesIO()
    with log.open("rb") as lines, gzip.GzipFile(fileobj=compressed, mode="wb", compresslevel=_FAST, mtime=0) as target:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                content = json.loads(line)
            except ValueError as error:
                raise RefusalError(
                    f"{log}: line {number} is not JSON ({error}); send the log as it was written"
                ) from error
            if isinstance(content, dict):
                _drop_numbers(content)
            target.write(json.dumps(content).encode() + b"\n")
    return compressed.getvalue()


def _drop_numbers(line: dict[str, object]) -> None:
    message, response = line.get("message"), line.get("response")
    if isinstance(message, dict) and message.get("description") is not None:
        message.pop("input", None)
    if isinstance(response, dict) and "output" in response:
        response["output"] = None
