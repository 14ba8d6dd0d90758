"""asv's folders."""

import io
import json
import tarfile

import pytest

from pullback_service.errors import IncompleteRequestError, InvalidInputError

FIRST, SECOND = "daead20606f2a7877a2dc2bcd9ac59a3b343d006", "8958df5e49307f0b6d42614bdb90964be2496b5c"
ENV = "env=existing-py_usr_bin_python3"


def test_a_folder_gives_the_results_of_the_commit_that_is_asked_for(read):
    found = read("asv/results", commit=FIRST, machine=None)
    assert found.document.commit.sha == FIRST
    assert found.document.machine.name == "box"
    assert found.document.commit.authored_at.isoformat() == "2026-11-21T08:15:52+00:00"
    assert found.values() == pytest.approx(
        {
            f"bench.TimeSort.time_sorted[n=100,kind=list,{ENV}]": 1.103599788621068e-06,
            f"bench.TimeSort.time_sorted[n=100,kind=tuple,{ENV}]": 1.0714000381994993e-06,
            f"bench.TimeSort.time_sorted[n=1000,kind=list,{ENV}]": 4.731399531010538e-06,
            f"bench.timeraw_import[{ENV}]": 0.0056231434991786955,
        }
    )


def test_null_failed_and_nan_was_skipped(read):
    found = read("asv/results", commit=FIRST)
    assert found.failures == {f"bench.time_fails[{ENV}]": "failed"}
    assert found.report.notes == ("1 skipped combination of parameters left out",)


def test_units_are_those_of_the_benchmarks(read):
    points = read("asv/results", commit=FIRST).points
    assert points[f"bench.peakmem_list[{ENV}]", "external", "peak_memory"].series.unit == "B"
    assert points[f"bench.mem_list[{ENV}]", "external", "memory"].value == 8056
    assert points[f"bench.track_count[{ENV}]", "external", "value"].series.unit == "objects"


def test_a_folder_with_several_commits_needs_to_be_told_which(read):
    with pytest.raises(IncompleteRequestError, match=f"one of the 2 commits of this folder .*{SECOND}"):
        read("asv/results", commit=None)


def test_a_file_alone_has_no_unit_for_what_it_tracks(read, sample):
    with tarfile.open(fileobj=io.BytesIO(sample("asv/results"))) as archive:
        name = next(each for each in archive.getnames() if "8958df5e" in each)
        body = archive.extractfile(name).read()
    with pytest.raises(IncompleteRequestError, match="do not say the unit of `value`: add unit=ns, or unit=value:ns"):
        read(body, commit=None)
    found = read(body, commit=None, unit="value:objects")
    assert found.values("value") == {f"bench.track_count[{ENV}]": 42}
    assert f"bench.TimeSort.time_sorted[param1=100,param2=list,{ENV}]" in found.values()
    assert any("benchmarks.json, with units and names of parameters, is missing" in note for note in found.report.notes)


def test_results_of_other_code_are_left_out(read, sample):
    with tarfile.open(fileobj=io.BytesIO(sample("asv/results"))) as archive:
        files = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
    about = json.loads(files["results/benchmarks.json"])
    about["bench.track_count"]["version"] = "another"
    files["results/benchmarks.json"] = json.dumps(about).encode()
    found = read(_packed(files), commit=SECOND)
    assert found.values("value") == {}
    assert "1 result of other versions of a benchmark's code left out" in found.report.notes


def test_too_few_values_are_refused_with_file_and_path(read, sample):
    with tarfile.open(fileobj=io.BytesIO(sample("asv/results"))) as archive:
        files = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
    name = next(each for each in files if "8958df5e" in each)
    content = json.loads(files[name])
    content["results"]["bench.TimeSort.time_sorted"][0].pop()
    with pytest.raises(InvalidInputError, match="3 values for 4 combinations") as refused:
        read(_packed({**files, name: json.dumps(content).encode()}), commit=SECOND)
    assert refused.value.errors[0]["path"] == f'{name}: $.results["bench.TimeSort.time_sorted"]'


def _packed(files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()
