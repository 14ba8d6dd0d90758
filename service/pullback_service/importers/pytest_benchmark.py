"""pytest-benchmark's JSON (https://pytest-benchmark.readthedocs.io; what 5.x writes).

All rounds are of one process: their median is its value. `ops` is only 1/mean, so it is not read. The parameters of a
test are in `params`; the bracket of the test's name, which repeats them, is dropped.
"""

from collections import Counter

from pullback_service.importers import imported_names
from pullback_service.importers.contents import Source
from pullback_service.importers.importer import Importer
from pullback_service.importers.json_paths import LocatedValue, text_at
from pullback_service.importers.results import (
    FailedResult,
    ImportedCommit,
    ImportedFile,
    ImportedMachine,
    Metric,
    Result,
    ResultCollector,
    UploadOptions,
)
from pullback_service.importers.times import iso_time
from pullback_service.importers.units import Unit

_SECONDS = Unit(1.0, "s")


def recognises(source: Source) -> bool:
    """Benchmarks with a machine."""
    if source.files is not None or source.is_lines() or not source.document.is_object():
        return False
    return source.document.get("machine_info") is not None and "benchmarks" in source.document.value


def read(source: Source, options: UploadOptions) -> ImportedFile:
    """One result for every test."""
    del options  # the file says everything
    top = source.document
    gathering = ResultCollector()
    benchmarks = list(top.need("benchmarks").each())
    plain = Counter(_key(each) for each in benchmarks)
    for benchmark in benchmarks:
        gathering.add(_result(benchmark, gathering, alone=plain[_key(benchmark)] == 1))
    version = text_at(top.get("version"))
    machine, commit = top.get("machine_info"), top.get("commit_info")
    date = text_at(top.get("datetime"))
    return ImportedFile(
        tool=f"pytest-benchmark {version}" if version else "pytest-benchmark",
        results=gathering.results,
        notes=gathering.notes(),
        commit=_commit(commit) if commit is not None and commit.is_object() else ImportedCommit(),
        machine=_machine(machine) if machine is not None and machine.is_object() else ImportedMachine(),
        started_at=iso_time(date) if date else None,
    )


def _key(benchmark: LocatedValue) -> tuple[str, str]:
    """The parameters that tell two tests apart once the bracket is dropped."""
    params = benchmark.get("params")
    return _base_name(benchmark), "" if params is None else repr(sorted(params.members_raw().items(), key=repr))


def _full_name(benchmark: LocatedValue) -> str:
    named = benchmark.get("fullname") or benchmark.need("name")
    return named.text()


def _base_name(benchmark: LocatedValue) -> str:
    text = _full_name(benchmark)
    has_params = benchmark.get("params") is not None
    return text.partition("[")[0] if has_params and text.endswith("]") else text


def _result(benchmark: LocatedValue, gathering: ResultCollector, *, alone: bool) -> Result:
    params = benchmark.get("params")
    # Objects that pytest cannot tell apart by value have equal parameters; then the bracket is all there is.
    workload = imported_names.name(
        _base_name(benchmark) if alone else _full_name(benchmark), f"{benchmark.path}.fullname"
    )
    given = imported_names.parameters(params.members_raw(), params.path) if params is not None else {}
    metric = _time(benchmark.need("stats"), gathering)
    if metric is None:
        failed = FailedResult("no-value", "The statistics of this test have no usable time.")
        return Result(benchmark.path, workload, given, failed=failed)
    return Result(benchmark.path, workload, given, {"time": metric})


def _time(stats: LocatedValue, gathering: ResultCollector) -> Metric | None:
    data = stats.get("data")
    if data is not None and data.count():
        return gathering.one_process(stats, data.numbers(), _SECONDS, "smaller", of="rounds")
    return gathering.single(
        stats.need("median").number(), _SECONDS, "smaller", method="median of rounds, as given in the file"
    )


def _commit(commit: LocatedValue) -> ImportedCommit:
    sha, branch, time = (text_at(commit.get(key)) for key in ("id", "branch", "time"))
    dirty = commit.get("dirty")
    return ImportedCommit(
        sha=sha if sha and len(sha) in {40, 64} else None,  # "unversioned" outside of a repository
        branch=branch if branch and not branch.startswith("(") else None,  # "(detached head)", "(unknown)"
        authored_at=iso_time(time) if time else None,
        dirty=dirty is not None and dirty.value is True,
    )


def _machine(machine: LocatedValue) -> ImportedMachine:
    cpu = machine.get("cpu")
    facts = {
        "cpu": text_at(cpu.get("brand_raw")) if cpu is not None and cpu.is_object() else None,
        "python": text_at(machine.get("python_version")),
        "system": text_at(machine.get("system")),
        "kernel": text_at(machine.get("release")),
        "arch": text_at(machine.get("machine")),
    }
    return ImportedMachine(
        text_at(machine.get("node")), {key: imported_names.parameter(value) for key, value in facts.items() if value}
    )


IMPORTER = Importer("pytest-benchmark", "pytest-benchmark", recognises, read)
