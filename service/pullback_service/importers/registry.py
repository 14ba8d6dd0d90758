"""The supported formats, and their detection: by content, or by the name that the uploader gives."""

from collections.abc import Sequence

from pullback_service.errors import FieldError, InvalidInputError, UnreadableBodyError
from pullback_service.importers import (
    asv,
    bencher,
    benchmarktools,
    conbench,
    criterion,
    github_action_benchmark,
    google_benchmark,
    gradbench,
    gradbench_nightly,
    hyperfine,
    pyperf,
    pytest_benchmark,
)
from pullback_service.importers.contents import Source
from pullback_service.importers.importer import Importer
from pullback_service.importers.json_paths import refuse
from pullback_service.importers.results import ImportedFile, UploadOptions

# The stricter ones first: Bencher's format is any object of objects of values.
IMPORTERS: Sequence[Importer] = (
    pyperf.IMPORTER,
    pytest_benchmark.IMPORTER,
    google_benchmark.IMPORTER,
    hyperfine.IMPORTER,
    gradbench_nightly.IMPORTER,
    gradbench.IMPORTER,
    criterion.IMPORTER,
    asv.IMPORTER,
    benchmarktools.IMPORTER,
    conbench.IMPORTER,
    github_action_benchmark.IMPORTER,
    bencher.IMPORTER,
)
NAMES = tuple(importer.name for importer in IMPORTERS)


def choose(source: Source, named: str | None = None) -> Importer:
    """The importer for a file."""
    if named is not None:
        for importer in IMPORTERS:
            if importer.name == named:
                return importer
        refuse("query.format", f"must be one of pullback-report, {', '.join(NAMES)}")
    for importer in IMPORTERS:
        if importer.recognises(source):
            return importer
    what = "archive holds no folder" if source.files is not None else "body is no file"
    message = f"The {what} of a format that is known here ({', '.join(NAMES)}): name it with format=, or send another."
    raise UnreadableBodyError(message, errors=[FieldError(path="$", message=message)])


def read(source: Source, options: UploadOptions, named: str | None = None) -> tuple[Importer, ImportedFile]:
    """Read a file with the importer it needs. Whatever is wrong with the file is an error of ours."""
    importer = choose(source, named)
    try:
        return importer, importer.read(source, options)
    except InvalidInputError as error:
        likely = next((each for each in IMPORTERS if each.recognises(source)), None) if named is not None else None
        if likely is None or likely is importer:
            raise
        raise InvalidInputError(
            f"{error.detail.removesuffix('.')}: this looks like a file of {likely.title}, "
            f"so leave format={importer.name} out, or send the file it is for.",
            errors=error.errors,
        ) from error
    except RecursionError as error:
        raise UnreadableBodyError("The body is nested too deeply.") from error
