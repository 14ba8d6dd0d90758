"""Detection of a device by the peers that could compute on it, in a process that ends before anything is measured.

Run as `python -P -m pullback_runners.peers.devices DEVICE` it writes why each of them cannot, as JSON. A process of its own,
since what an engine holds of a GPU it keeps for as long as it lives, and others are measured beside it.
"""

import json
import os
import subprocess
import sys

from pullback_runners.peers import PEERS, find_peer
from pullback_runners.workloads import CPU

_PROBE_TIMEOUT_S = 120.0
"""Two engines are imported and start their drivers; tens of seconds from a cold disk."""


def peers_for(device: str) -> list[str]:
    """The peers that have a form for a device, installed or not."""
    return [name for name in PEERS if device in find_peer(name).devices]


def why_no_device(device: str) -> str | None:
    """A sentence on why no peer sees a device of this kind; None if one does."""
    if device == CPU:
        return None
    reasons = _probe(device)
    if None in reasons.values():
        return None
    said = "; ".join(str(reason) for reason in dict.fromkeys(reasons.values()))
    # Compiled or not, it is the same engine that looks.
    engines = list(dict.fromkeys(find_peer(name).packages[0] for name in reasons))
    return (
        f"no {device.upper()} device is seen by {' or '.join(engines)}: {said}; measure where there is one, "
        f"with {' or '.join(engines)} built for it, or on the CPU"
    )


def _probe(device: str) -> dict[str, str | None]:
    names = peers_for(device)
    probe = [sys.executable, "-P", "-m", "pullback_runners.peers.devices", device]
    environment = {**os.environ, "JAX_PLATFORMS": device, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            probe, capture_output=True, text=True, check=False, timeout=_PROBE_TIMEOUT_S, env=environment
        )
    except subprocess.TimeoutExpired:
        return dict.fromkeys(names, f"no answer in {_PROBE_TIMEOUT_S:.0f} s")
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return dict.fromkeys(names, f"the probe failed ({last})")
    try:
        found = json.loads(done.stdout.splitlines()[-1])
        return {name: found[name] for name in names}
    except (ValueError, LookupError, TypeError):  # an engine that prints, or ends the process by itself
        return dict.fromkeys(names, "the probe gave no answer")


def main(device: str) -> int:
    """Say of each peer why it cannot compute on the device."""
    reasons = {name: _why_not(name, device) for name in peers_for(device)}
    print(json.dumps(reasons))  # noqa: T201 - the answer of this process
    return 0


def _why_not(name: str, device: str) -> str | None:
    peer = find_peer(name)
    try:
        return peer.available() or peer.why_not_on(device)
    except Exception as error:  # noqa: BLE001 - an engine that cannot even be imported hides no other one
        return f"{name}: {type(error).__name__}: {str(error).partition(chr(10))[0]}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
