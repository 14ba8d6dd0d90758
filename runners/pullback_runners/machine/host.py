"""The host: the id of a computer, unique among equal computers.

It is drawn once and kept in a file, with what is known of the hardware beside it, so that a copy of the disk draws its own.
Nothing of what it is compared with leaves the computer: a report has the drawn id alone, and the file has digests of the
rest, each made with the id.

Where files are gone when a job ends, as in containers and on the runners of CI services, no id is drawn in the user's folder:
every job would be another computer. An agent keeps it in its own folder there.
"""

import fcntl
import hashlib
import json
import os
import secrets
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

Identity: TypeAlias = Mapping[str, Iterable[str]]
"""Ids of a computer that outlive a start of it, by their kind: `hardware`, and `system` for what a copy of the disk has too."""

VARIABLE = "PULLBACK_HOST"
"""Says the id instead, for computers that keep no files; empty says that there is none."""
_FILE = "host.json"
_PERMANENT = "0"  # https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-net, addr_assign_type


def host_id(beside: Path | None = None) -> str | None:
    """The id of this computer, drawn if it has none; `beside` is a folder of an agent that outlives its jobs."""
    stated = os.environ.get(VARIABLE)
    if stated is not None:
        return stated.strip() or None
    folders = [] if _is_passing() else [_data_folder()]
    identity = _identity()
    for folder in [*folders, *([] if beside is None else [beside])]:
        with suppress(OSError):
            return kept_id(folder / _FILE, identity)
    return None


def kept_id(file: Path, identity: Identity) -> str:
    """The id in a file, or a new one where there is none or the file was copied from another computer."""
    known = _read(file, identity)
    if known is not None:
        return known
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_name(f"{file.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of two processes that draw at once the second finds the id of the first
        return _read(file, identity) or _draw(file, identity)


def _draw(file: Path, identity: Identity) -> str:
    drawn = secrets.token_hex(8)
    content = {"id": drawn, **{kind: sorted(_digests(drawn, ids)) for kind, ids in identity.items()}}
    draft = file.with_name(f"{file.name}.{drawn}")
    draft.write_text(json.dumps(content) + "\n", encoding="utf-8")
    draft.replace(file)
    return drawn


def _read(file: Path, identity: Identity) -> str | None:
    """The id in a file if it was drawn on this computer: of each kind that both sides know they have one id in common.

    One is enough, for network cards are exchanged.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        known = str(content["id"])
        told = {kind: {*map(str, content[kind])} for kind in ("hardware", "system")}
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, ValueError):
        return None  # half of a file
    here = {kind: _digests(known, ids) for kind, ids in identity.items()}
    is_ours = all(told[kind] & ids or not (told[kind] and ids) for kind, ids in here.items())
    return known if is_ours else None


def _digests(drawn: str, ids: Iterable[str]) -> set[str]:
    return {hashlib.sha256(f"{drawn} {each}".encode()).hexdigest()[:32] for each in ids}


def _data_folder() -> Path:
    """The user's folder for data that is no configuration and no cache."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "pullback"


def _is_passing() -> bool:
    """True if this computer is a container, or was made for one job."""
    by_name = any(os.environ.get(name) for name in ("CI", "KUBERNETES_SERVICE_HOST"))
    return by_name or any(map(os.path.exists, ("/.dockerenv", "/run/.containerenv")))


def _identity() -> Identity:
    machine_id = [text for name in ("/etc/machine-id", "/var/lib/dbus/machine-id") if (text := _text(Path(name)))]
    product = _text(Path("/sys/class/dmi/id/product_uuid"))  # root alone may read it
    return {"hardware": [*([product] if product else []), *_network_cards()], "system": machine_id[:1]}


def _network_cards() -> Iterable[str]:
    """Addresses that network cards were made with: not those of containers, nor those drawn anew for each network."""
    folder = Path("/sys/class/net")
    if folder.is_dir():
        cards = [card for card in folder.iterdir() if (card / "device").exists()]
        return [
            address
            for card in cards
            if _text(card / "addr_assign_type") == _PERMANENT
            if (address := _text(card / "address"))
        ]
    node = uuid.getnode()
    return [] if node >> 40 & 1 else [f"{node:012x}"]  # this bit says that none was found and one was drawn


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
