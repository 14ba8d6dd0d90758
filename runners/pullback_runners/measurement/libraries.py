"""Versions of the libraries that compute on a GPU: with the driver's, the environment of what is measured there.

Asked in the process of a worker, whose interpreter may be a project's own.
"""

import importlib.metadata
import re

_LIBRARIES = {
    "nvidia-cuda-runtime": "CUDA",
    "nvidia-cublas": "cuBLAS",
    "nvidia-cudnn": "cuDNN",
    "torch": "torch",
    "jax": "jax",
}
"""Libraries by distribution, without the CUDA version at the end of its name."""


def device_libraries() -> dict[str, str]:
    """Versions of those that are installed for this interpreter."""
    results: dict[str, set[str]] = {}
    for each in importlib.metadata.distributions():
        plain = re.sub(r"[-_.]+", "-", each.name).lower()
        if (library := _LIBRARIES.get(re.sub(r"-cu\d+$", "", plain))) is not None:
            results.setdefault(library, set()).add(each.version)
    return {library: " and ".join(sorted(results[library])) for library in _LIBRARIES.values() if library in results}
