"""Whatever is sent: a report, or one of our errors; never another exception."""

import copy
import gzip
import io
import json
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pullback_service.errors import RequestError
from pullback_service.importers import registry
from pullback_service.reports.conversion import plain, read_upload
from pullback_service.reports.upload_query import UploadParameters

SAMPLES = Path(__file__).parents[2] / "data" / "importers"
NOW = datetime(2026, 11, 1, tzinfo=UTC)
LIMIT = 4 * 1024 * 1024

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=300)
    | st.sampled_from(["ns", "NaN", "", "\x00", "\ud800", "a" * 600, 1e308, -1e-320, 10**400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def attempt(body, **said):
    """Read an upload; only errors of ours may come out of it. A report that does is sound and was taken apart."""
    stated = {"project": "demo", "commit": "a" * 40, "machine": "ci", "unit": "ns", "direction": "smaller"}
    try:
        report = read_upload(plain(body, limit=LIMIT), UploadParameters(**{**stated, **said}), now=NOW)
    except RequestError as error:
        refusal = error.detail
    else:
        return report.parts
    assert refusal
    assert refusal.isprintable()
    return None


def documents():
    """A document of every format, and the commit to ask for."""
    for path in sorted(SAMPLES.glob("*/*.json")):
        yield f"{path.parent.name}/{path.name}", json.loads(path.read_text())
    text = (SAMPLES / "github-action-benchmark/data.js").read_text()
    yield "github-action-benchmark/data.js", json.loads(text.partition("=")[2])
    for path in sorted((SAMPLES / "asv/results/box").glob("*-*.json")):
        yield f"asv/{path.name}", json.loads(path.read_text())


DOCUMENTS = dict(documents())


def places(value, path=()):
    """Every place in a document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def changed(document, path, value):
    """A copy with another value at one place."""
    if not path:
        return value
    document = copy.deepcopy(document)
    inside = document
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return document


def dumps(value):
    return json.dumps(value).encode("utf-8", "surrogatepass")


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("name", DOCUMENTS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_file_with_anything_at_any_place(name, data):
    document = DOCUMENTS[name]
    spots = list(places(document))
    spot = data.draw(st.sampled_from(spots))
    attempt(
        dumps(changed(document, spot, data.draw(values))), commit=data.draw(st.sampled_from(["a" * 40, None, "2" * 40]))
    )


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("name", registry.NAMES)
@settings(max_examples=25, deadline=None)
@given(value=values)
def test_any_document_under_any_name(name, value):
    attempt(dumps(value), format=name)
    attempt(packed({"evals/gmm/summary.json": dumps(value), "summary.json": dumps(value)}), format=name)
    attempt(packed({"x/new/benchmark.json": dumps(value), "x/new/sample.json": dumps(value)}), format=name)
    attempt(
        packed({"box/1-env.json": dumps(value), "benchmarks.json": dumps(value), "a.jsonl": dumps(value)}), format=name
    )


@settings(max_examples=100, deadline=None)
@given(body=st.binary(max_size=300))
def test_any_bytes(body):
    attempt(body)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_log_with_anything_at_any_place(data):
    lines = [
        json.loads(line) for line in gzip.decompress((SAMPLES / "gradbench/llsq.jsonl.gz").read_bytes()).splitlines()
    ]
    lines = [
        {key: {k: v for k, v in part.items() if k != "input"} for key, part in line.items()} for line in lines[:10]
    ]
    spot = data.draw(st.sampled_from([path for path in places(lines) if path]))
    lines = changed(lines, spot, data.draw(values))
    order = data.draw(st.permutations(lines)) if data.draw(st.booleans()) else lines
    attempt(b"\n".join(dumps(line) for line in order))


@pytest.mark.parametrize("sample", ["asv/results", "criterion/target/criterion"])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_folder_with_anything_in_any_file(sample, data):
    folder = SAMPLES / sample
    files = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.json"))}
    name = data.draw(st.sampled_from(sorted(files)))
    document = json.loads(files[name])
    spot = data.draw(st.sampled_from(list(places(document))))
    files[name] = dumps(changed(document, spot, data.draw(values)))
    attempt(packed(files), commit=data.draw(st.sampled_from([None, "daead20606f2a7877a2dc2bcd9ac59a3b343d006"])))


@pytest.mark.parametrize(
    "opening", [b"[", b'{"a":', b'{"benchmarks":[', b'[{"Julia":1},[["BenchmarkGroup",{"data":{"a":']
)
def test_depth_is_bounded(opening):
    assert attempt(opening * 100_000) is None
    assert attempt(opening * 2_000 + b"NaN") is None


def packed(files):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return archive.getvalue()
