"""NumPy programs for torch operators whose reference in torch is not a NumPy program.

Each takes torch's arguments, arrays in place of tensors. A counterpart whose value is not torch's is found out and not used.
Operators that have no row here and no reference in torch are listed by the run as having no NumPy function.
"""

from collections.abc import Callable
from typing import Any

from benchmarks.public_suites.torch_counterparts import (
    arithmetic,
    linear_algebra,
    networks,
    reductions,
    shapes,
    transforms,
)

COUNTERPARTS: dict[str, Callable[..., Any]] = {
    **shapes.SPLITS,
    **shapes.COUNTERPARTS,
    **arithmetic.COUNTERPARTS,
    **reductions.COUNTERPARTS,
    **linear_algebra.COUNTERPARTS,
    **networks.COUNTERPARTS,
    **transforms.COUNTERPARTS,
}

#: Operators of symmetric or Hermitian matrices, by the names of their tests. NumPy reads one triangle and its gradient is
#: there; torch's is spread over both. Along matrices that stay symmetric, which is what they are for, the two are equal.
SYMMETRIC = {
    "torch::cholesky",
    "linalg::linalg.cholesky",
    "linalg::linalg.eigvalsh",
    "linalg::linalg.pinv.hermitian",
}

#: Operators that have no NumPy program, with the reason where it is not the plain lack of a function.
NONE = {
    "bernoulli": "draws random numbers",
    "fft.hfft2": "scipy.fft's alone, which does not dispatch",
    "fft.hfftn": "scipy.fft's alone, which does not dispatch",
    "fft.ihfft2": "scipy.fft's alone, which does not dispatch",
    "fft.ihfftn": "scipy.fft's alone, which does not dispatch",
    "normal": "draws random numbers",
}
