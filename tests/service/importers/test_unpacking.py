"""Bodies that are compressed or packed: what is unpacked, and what is refused before it does harm."""

import contextlib
import gzip
import io
import tarfile
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_service.errors import TooLargeError, UnreadableBodyError
from pullback_service.importers import compression, unpacking
from pullback_service.zstandard import zstd

LIMIT = 100_000


def tar_of(**members):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
            else:
                member.type, member.linkname = content
                archive.addfile(member)
    return packed.getvalue()


@given(st.binary(max_size=2000))
def test_compression_is_told_by_content_and_undone(content):
    if compression.is_compressed(content):
        return
    for packed in (
        content,
        gzip.compress(content),
        zstd.compress(content),
        gzip.compress(gzip.compress(content)),
        gzip.compress(content[:10]) + gzip.compress(content[10:]),
    ):
        assert unpacking.decompress(packed, LIMIT) == content


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
def test_a_bomb_is_refused_before_it_is_unpacked(pack):
    bomb = pack(b"\0" * 50_000_000)
    assert len(bomb) < LIMIT
    with pytest.raises(TooLargeError, match="over the limit of 100000 bytes when decompressed"):
        unpacking.decompress(bomb, LIMIT)


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
def test_what_was_cut_off_or_mangled_is_refused(pack):
    whole = pack(bytes(range(256)) * 100)
    for broken in (whole[:-5], whole[: len(whole) // 2], whole[:6]):
        with pytest.raises(UnreadableBodyError, match="cut off|cannot be decompressed"):
            unpacking.decompress(broken, LIMIT)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_is_in_utf_8_however_a_shell_wrote_it(encoding):
    text = '{"results": "é 𝜕"}'
    assert unpacking.in_utf8(text.encode(encoding)) == text.encode()


@pytest.mark.parametrize("block", [1, 2, 3, 7])
def test_utf_16_is_decoded_a_block_at_a_time(block, monkeypatch):
    """Pairs of surrogates and characters of two bytes may lie across two blocks."""
    monkeypatch.setattr(unpacking, "BLOCK_BYTES", block)
    text = '{"results": "é 𝜕𝜕"}'
    assert unpacking.in_utf8(text.encode("utf-16")) == text.encode()
    with pytest.raises(UnreadableBodyError, match="UTF-16"):
        unpacking.in_utf8(text.encode("utf-16")[:-1])


def test_what_begins_like_utf_16_and_is_none_is_refused():
    with pytest.raises(UnreadableBodyError, match="UTF-16"):
        unpacking.in_utf8(b"\xff\xfe\x00")


def test_three_layers_are_too_many():
    with pytest.raises(UnreadableBodyError, match="MOST_LAYERS"):
        unpacking.decompress(gzip.compress(gzip.compress(gzip.compress(b"x"))), LIMIT)


def test_plain_files_are_found_by_their_names():
    found = unpacking.files_of(tar_of(**{"./a/b.json": b"1", "c": b""}))
    assert found == {"a/b.json": b"1", "c": b""}


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"a": (tarfile.SYMTYPE, "/etc/passwd")}, "not a regular file"),
        ({"a": (tarfile.LNKTYPE, "b")}, "not a regular file"),
        ({"a": (tarfile.CHRTYPE, "")}, "not a regular file"),
        ({"../a": b"1"}, "outside of the archive"),
        ({"/a": b"1"}, "outside of the archive"),
        ({"a/../../b": b"1"}, "outside of the archive"),
        ({"a\nb": b"1"}, "control characters"),
    ],
)
def test_links_devices_and_names_that_climb_are_refused(members, why):
    with pytest.raises(UnreadableBodyError, match=why):
        unpacking.files_of(tar_of(**members))


def test_too_many_files_are_refused_by_name(monkeypatch):
    monkeypatch.setattr(unpacking, "MOST_FILES", 3)
    with pytest.raises(TooLargeError, match="more than 3 files \\(MOST_FILES\\)"):
        unpacking.files_of(tar_of(a=b"", b=b"", c=b"", d=b""))


@given(st.binary(max_size=1500), st.integers(0, 1500))
def test_mangled_archives_are_refused_and_nothing_else(junk, at):
    whole = tar_of(a=b"x" * 600, b=b"y")
    mangled = whole[:at] + junk + whole[at + len(junk) :]
    with contextlib.suppress(UnreadableBodyError, TooLargeError):
        unpacking.files_of(mangled)


@given(st.binary(max_size=400))
def test_any_bytes_behind_a_magic_number_are_refused_and_nothing_else(junk):
    for magic in (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", gzip.compress(b"")[:10], zlib.compress(b"x")):
        with contextlib.suppress(UnreadableBodyError, TooLargeError):
            unpacking.decompress(magic + junk, LIMIT)


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
def test_many_members_are_read_each_for_itself(pack):
    content = [bytes([number % 251]) * (number % 7 * 1000) for number in range(300)]
    assert unpacking.decompress(b"".join(map(pack, content)), 10**6) == b"".join(content)


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
def test_of_members_without_end_none_is_fed_the_whole_rest(pack, monkeypatch):
    fed = []
    (form,) = [form for form in compression._FORMS if pack(b"").startswith(form.start)]

    class Counted:
        def __init__(self):
            self._stream = form.open()

        eof = property(lambda self: self._stream.eof)
        unused_data = property(lambda self: self._stream.unused_data)

        def decompress(self, data, most):
            fed.append(len(data))
            return self._stream.decompress(data, most)

    monkeypatch.setattr(compression, "_FORMS", [replace(form, open=Counted)])
    body = pack(b"") * 2 * compression.MOST_MEMBERS
    with pytest.raises(TooLargeError, match="more than 10000 members"):
        unpacking.decompress(body, LIMIT)
    assert sum(fed) <= compression._FIRST_PIECE * compression.MOST_MEMBERS


def test_zeros_may_follow_gzip_and_a_seek_table_zstd():
    assert unpacking.decompress(gzip.compress(b"a") + bytes(5000) + gzip.compress(b"b") + b"\0", LIMIT) == b"ab"
    table = b"\x5e\x2a\x4d\x18" + (9).to_bytes(4, "little") + bytes(9)
    assert unpacking.decompress(zstd.compress(b"a") + table, LIMIT) == b"a"
    for packed in (gzip.compress(b"a"), zstd.compress(b"a")):
        with pytest.raises(UnreadableBodyError, match="Data follows"):
            unpacking.decompress(packed + b"junk", LIMIT)


@pytest.mark.parametrize("piece", [b"{}", b"[]", b"1,", b'{"a":[', b"[[", b'"",'])
def test_more_values_than_are_read_are_refused_before_they_are_made(piece):
    body = piece * (4_000_000 // piece.count(b",") if b"," in piece else 1_000_001)
    with pytest.raises(TooLargeError, match=r"more than \d+ (values|arrays and objects) \(MOST_JSON_"):
        unpacking.refuse_too_many_values(body)
    unpacking.refuse_too_many_values(body[: len(body) // 3])


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd.compress])
def test_a_body_is_long_by_what_it_holds(pack):
    assert unpacking.is_longer(pack(bytes(LIMIT + 1)), LIMIT)
    assert not unpacking.is_longer(pack(bytes(LIMIT)), LIMIT)


def test_what_cannot_be_unpacked_is_not_long():
    assert not unpacking.is_longer(b"\x1f\x8b" + bytes(LIMIT // 2), LIMIT)
