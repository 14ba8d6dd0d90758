"""How facts read, those that are known and those that nobody expected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_dashboards.wording.facts import in_groups, leaves, raw, read

THIN = "\N{NARROW NO-BREAK SPACE}"


def read_all(document):
    return [read(path, value) for path, value in leaves(document)]


@pytest.mark.parametrize(
    ("name", "value", "label", "shown"),
    [
        ("free_disk_bytes", 69723832320, "free disk", f"64.9{THIN}GiB"),
        ("memory_gib", 31, "memory", f"31{THIN}GiB"),
        ("clock_mhz", 3400, "clock", f"3.40{THIN}GHz"),
        ("baseHz", 900_000_000, "base", f"900{THIN}MHz"),
        ("l1_bytes", 32768, "L1", f"32{THIN}KiB"),
        ("uptime_s", 864_000, "uptime", "10 d"),
        ("latency_us", 12, "latency", f"12.0{THIN}µs"),
        ("steal", 0.0004, "CPU steal", "0.0400 %"),
        ("smt", True, "SMT", "yes"),
        ("turbo_boost", False, "turbo boost", "no"),
        ("affinity", [0, 1, 2, 3, 8, 10, 11], "CPU affinity", "0–3, 8, 10, 11"),
        ("numpy", "2.3.4", "NumPy", "2.3.4"),
        ("cudaVersion", "12.4", "CUDA version", "12.4"),
        ("serial", 1234567, "serial", f"1{THIN}234{THIN}567"),
        ("pinned_cpu", 12345, "pinned to CPU", "12345"),
        ("batch_size", 64, "batch size", "64"),
        ("disk_bytes", "about 4 GB", "disk bytes", "about 4 GB"),  # no number: its unit stays in the name
        ("bytes", 5, "bytes", "5"),  # nothing would be left of the name
        ("big", 10**400, "big", str(10**400)),
        ("q<script>_mhz", 5, "q<script>_mhz", "5"),
        ("fréquence de base_", 1.5, "fréquence de base_", "1.5"),
    ],
)
def test_names_are_words_and_values_have_their_units(name, value, label, shown):
    found = read((name,), value)
    assert (found.label, found.shown, found.told) == (label, shown, raw(value))
    assert found.exact in {"", f"{name}: {raw(value)}"}
    assert bool(found.exact) == ((label, shown) != (name, raw(value)))


def test_documents_in_documents_are_groups_and_lists_of_them_sentences():
    told = {
        "caches": {"l2_kib": 512},
        "zeta": 1,
        "numpy": "2",
        "cores": 8,
        "cpu": "EPYC",
        "nodes": [{"cpus": [0, 1, 2], "memory_gib": 16}, {"cpus": [3]}, "and more"],
    }
    groups = {name: [(fact.label, fact.shown) for fact in facts] for name, facts in in_groups(read_all(told))}
    assert groups == {
        "hardware": [("CPU", "EPYC"), ("cores", "8")],
        "software": [("NumPy", "2")],
        "caches": [("L2", f"512{THIN}KiB")],
        "other": [
            ("nodes", f"logical CPUs 0–2, memory 16{THIN}GiB; logical CPUs 3; and more"),
            ("zeta", "1"),
        ],
    }
    assert [*groups] == ["hardware", "software", "caches", "other"]
    (alone,) = read_all({"cpu_caches": {"l2_kib": 512}})
    assert alone.whole_label == "CPU caches L2"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text() | st.from_regex(r"[a-z]+(_[a-z]+)*", fullmatch=True), values))
def test_whatever_is_told_can_be_read_and_nothing_is_lost(document):
    facts = read_all(document)
    assert sorted((fact for _, group in in_groups(facts) for fact in group), key=id) == sorted(facts, key=id)
    for (path, value), fact in zip(leaves(document), facts, strict=True):
        assert fact.label or not path[-1]
        assert bool(fact.shown) or not raw(value) or isinstance(value, list)
        assert (fact.name, fact.told) == (".".join(path), raw(value))
