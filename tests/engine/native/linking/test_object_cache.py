import dataclasses
import os
import subprocess
import sys
import threading
import time

import pytest

from pullback.backends.native.linking import forced_width, host_target, load, object_cache, toolchain
from pullback.backends.native.linking.object_cache import Object
from pullback.backends.native.linking.target import available_widths


def stored(cache):
    return sorted(cache.glob("*.object"))


def test_a_program_is_compiled_once_and_found_from_then_on(cache, adding, call, monkeypatch):
    assert not load(adding(3)).is_from_cache
    (path,) = stored(cache)
    assert path.stat().st_mode & 0o777 == 0o600
    assert cache.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(toolchain, "compile_object", lambda *_: pytest.fail("compiled again"))
    again = load(adding(3))
    assert again.is_from_cache
    assert call(again, "add", 4) == 7


def test_another_process_finds_it_and_parses_no_text(cache, adding):
    load(adding(3))
    program = (
        "from pullback.backends.native.linking import load, toolchain;"
        "toolchain.compile_object = toolchain.llvm.parse_assembly = None;"
        f"print(load({adding(3)!r}).is_from_cache)"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "True"


def test_everything_the_code_depends_on_is_in_the_name(adding):
    host = host_target()
    others = [
        ("recipe of another LLVM", host, "", adding(3)),
        (toolchain.RECIPE, dataclasses.replace(host, cpu="another"), "", adding(3)),
        (toolchain.RECIPE, dataclasses.replace(host, features="+another"), "", adding(3)),
        (toolchain.RECIPE, host, "another key", adding(3)),
        (toolchain.RECIPE, host, "", adding(4)),
    ]
    names = {object_cache.name_of(*facts) for facts in [(toolchain.RECIPE, host, "", adding(3)), *others]}
    assert len(names) == 1 + len(others)
    assert toolchain.llvm.llvm_version_info
    assert toolchain.llvmlite.__version__ in toolchain.RECIPE


@pytest.mark.skipif(len(available_widths()) < 2, reason="this processor has one width of vectors")
def test_widths_do_not_share_objects(cache, adding):
    load(adding(3))
    with forced_width(available_widths()[1]):
        assert not load(adding(3)).is_from_cache


def damaged_contents(whole):
    heading, facts, code = whole.split(b"\n", 2)
    return {
        "empty": b"",
        "cut in the heading": whole[:10],
        "cut in the code": whole[:-1],
        "longer": whole + b"\0",
        "one bit of code": whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:],
        "another hash": heading[:-1] + (b"0" if heading[-1:] != b"0" else b"1") + b"\n" + facts + b"\n" + code,
        "another format": whole.replace(b"object 2", b"object 1", 1),
        "random": os.urandom(1000),
    }


def test_a_damaged_object_is_never_executed_and_is_replaced(cache, adding, call):
    load(adding(3))
    (path,) = stored(cache)
    whole = path.read_bytes()
    for damage, content in damaged_contents(whole).items():
        path.write_bytes(content)
        again = load(adding(3))
        assert not again.is_from_cache, damage
        assert call(again, "add", 4) == 7
        assert path.read_bytes() == whole


def test_the_object_of_another_program_under_this_name_is_not_believed(cache, adding, call):
    load(adding(3))
    (first,) = stored(cache)
    load(adding(4))
    (second,) = [path for path in stored(cache) if path != first]
    first.write_bytes(second.read_bytes())
    again = load(adding(3))
    assert not again.is_from_cache
    assert call(again, "add", 4) == 7


def test_a_whole_object_that_cannot_be_linked_is_replaced(cache, adding, call):
    name = object_cache.name_of(toolchain.RECIPE, host_target(), "", adding(3))
    object_cache.keep(name, Object(b"no object code at all", imports=(), exports=("add",), text_hash=""))
    again = load(adding(3))
    assert not again.is_from_cache
    assert call(again, "add", 4) == 7
    assert load(adding(3)).is_from_cache


@pytest.mark.parametrize("facts", [b"[]", b"{}", b"no json", b'{"name": 1, "bytes": "x"}'])
def test_facts_of_another_kind_under_a_right_hash_are_a_miss(facts):
    import hashlib

    content = facts + b"\ncode"
    file = b"pullback object 2 " + hashlib.sha256(content).hexdigest().encode() + b"\n" + content
    assert object_cache._parse("name", file) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no such files")
def test_what_is_no_plain_file_is_passed_by(cache, adding, tmp_path):
    load(adding(3))
    (path,) = stored(cache)
    whole = path.read_bytes()
    path.unlink()
    os.mkfifo(path)  # reading it would wait for a writer
    assert not load(adding(3)).is_from_cache
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(whole)
    path.unlink()
    path.symlink_to(elsewhere)
    assert not load(adding(3)).is_from_cache
    path.unlink()
    path.mkdir()  # cannot be replaced either
    assert not load(adding(3)).is_from_cache
    assert not list(cache.glob("*.unfinished"))


@pytest.mark.skipif(os.name != "posix", reason="permissions of another kind")
def test_a_file_that_anybody_may_write_is_not_believed(cache, adding):
    load(adding(3))
    (path,) = stored(cache)
    path.chmod(0o666)
    assert not load(adding(3)).is_from_cache
    assert path.stat().st_mode & 0o777 == 0o600  # replaced


def test_a_file_of_another_user_is_not_believed():
    own = os.stat_result((0o100600, 0, 0, 1, os.geteuid(), 0, 0, 0, 0, 0))
    foreign = os.stat_result((0o100600, 0, 0, 1, os.geteuid() + 1, 0, 0, 0, 0, 0))
    assert object_cache._is_trusted(own)
    assert not object_cache._is_trusted(foreign)


def test_a_folder_that_cannot_be_written_is_no_error(cache, adding, call, monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(blocked))
    assert call(load(adding(3)), "add", 4) == 7


def test_a_full_disk_leaves_nothing_behind(cache, adding, call, monkeypatch):
    opened = os.fdopen

    def full(descriptor, mode):
        file = opened(descriptor, mode)
        if "w" in mode:
            monkeypatch.setattr(os, "fdopen", opened)
            file.close()
            raise OSError(28, "No space left on device")
        return file

    monkeypatch.setattr(os, "fdopen", full)
    assert call(load(adding(3)), "add", 4) == 7
    assert list(cache.iterdir()) == []


def test_the_cache_can_be_switched_off(cache, adding, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE", "0")
    assert not load(adding(3)).is_from_cache
    assert not load(adding(3)).is_from_cache
    assert not cache.exists()


def test_the_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("PULLBACK_CACHE_DIR", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert object_cache.cache_folder() == tmp_path / "pullback" / "native"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert object_cache.cache_folder() == tmp_path / ".cache" / "pullback" / "native"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert object_cache.cache_folder() == tmp_path / "Library" / "Caches" / "pullback" / "native"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert object_cache.cache_folder() == tmp_path / "pullback" / "Cache" / "native"


def put(cache, name, size, *, age_s):
    path = cache / name
    path.write_bytes(b"x" * size)
    moment = time.time() - age_s
    os.utime(path, (moment, moment))
    return path


def test_a_sweep_removes_what_was_used_longest_ago_until_the_rest_fits(cache):
    cache.mkdir(parents=True)
    paths = {age: put(cache, f"{age}.object", 100, age_s=age) for age in (1, 2, 3, 4, 5)}
    object_cache.sweep(cache, limit=350)
    assert [age for age, path in paths.items() if path.exists()] == [1, 2, 3]


def test_a_sweep_removes_files_whose_writer_is_gone_and_leaves_those_being_written(cache):
    cache.mkdir(parents=True)
    lost = put(cache, "a.1.0.unfinished", 10, age_s=10_000)
    written = put(cache, "b.1.0.unfinished", 10, age_s=1)
    foreign = put(cache, "README", 10, age_s=10_000)
    object_cache.sweep(cache, limit=0)
    assert (lost.exists(), written.exists(), foreign.exists()) == (False, True, True)


def test_use_renews_the_age_of_an_object(cache, adding):
    load(adding(3))
    (path,) = stored(cache)
    os.utime(path, (1, 1))
    load(adding(3))
    assert path.stat().st_mtime > time.time() - 60


def test_the_limit_holds_while_objects_are_kept(cache, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE_MIB", "0.01")
    for number in range(3 * object_cache.SWEEP_EVERY):
        object_cache.keep(f"{number:064x}", Object(b"x" * 1000, imports=(), exports=(), text_hash=""))
    kept_bytes = sum(path.stat().st_size for path in stored(cache))
    assert kept_bytes < 0.01 * 2**20 + (object_cache.SWEEP_EVERY + 1) * 1300


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("", 256 * 2**20),
        ("1.5", 3 * 2**19),
        ("-1", 0),
        ("x", 256 * 2**20),
        ("nan", 256 * 2**20),
        ("inf", sys.maxsize),
        ("1e300", sys.maxsize),
    ],
)
def test_the_limit_follows_the_environment(setting, expected, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE_MIB", setting)
    assert object_cache.limit_bytes() == expected


def test_readers_see_no_object_or_a_whole_one_while_many_write(cache):
    name = "0" * 64
    versions = [
        Object(bytes([number]) * 50_000, imports=(), exports=(str(number),), text_hash="") for number in range(4)
    ]
    stop, wrong = threading.Event(), []

    def write(version):
        while not stop.is_set():
            object_cache.keep(name, version)

    def read():
        found = 0
        while found < 50:
            compiled = object_cache.find(name)
            if compiled is not None:
                found += 1
                if compiled not in versions:
                    wrong.append(compiled)

    writers = [threading.Thread(target=write, args=(version,)) for version in versions]
    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in (*writers, *readers):
        thread.start()
    for thread in readers:
        thread.join()
    stop.set()
    for thread in writers:
        thread.join()
    assert wrong == []
    assert not list(cache.glob("*.unfinished"))
