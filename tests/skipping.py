"""Which tests may be skipped where CI runs: any other skip is a failure there.

CI installs what the tests need, so that a test that is skipped for want of it checks nothing and nobody sees it. Here
stand the reasons that no CI machine can remove: another platform, another user, or software of hundreds of megabytes.
"""

import re

import pytest

ALLOWED = (
    # Peers and devices: optional, large, and measured elsewhere.
    r"NO TESTS OF DEVICE ARRAYS: PyTorch is not installed",
    r"NO KERNELS ARE ASSEMBLED: ptxas of CUDA is not installed",
    r"NO MACHINE CODE IS READ: nvdisasm of CUDA is not installed",
    r"(autograd|jax|mygrad|numba|torch)\S*: .+",
    r"PyTorch itself is loaded in this process",
    r"there is a device",
    # Who runs the tests, and from where.
    r"an ordinary user cannot reach .+",
    r"only root .+",
    r"NO JOB IS TRIED (IN A SANDBOX|IN A CONTROL GROUP|WITH LIMITS OF THE KERNEL): .+",
    r"NO SIDES ARE TRIED: .+",
    # The platform.
    r"(pages are closed by mprotect|has no such threads|has no such files|permissions of another kind)",
    r"(there are no such threads here|reads /proc|prctl is Linux's|no device that is always full|no CPU can be chosen here)",
    r"(long doubles have no more digits than doubles here|SciPy has another BLAS|this processor has one width of vectors)",
    r"(a parent's death is announced by Linux only|threads can be counted on Linux only|ld\.so of Linux, 64 bits)",
    r"(shared memory has names on Linux alone|the kernel does not say how long a process waited)",
    r"malloc is counted on Linux with glibc only, on x86-64 and AArch64",
    r"(caddy|curl|nginx|readelf|clang-19( [\d.]+)?) is not installed",
    # Clones of others' projects and an hour to measure them.
    r"PULLBACK_REAL_PROJECTS names no folder with clones of real projects",
    # A case that a parametrized test does not have.
    r"nothing is written by hand",
)
_ALLOWED = re.compile("|".join(f"(?:{reason})" for reason in ALLOWED))


def _refused(report):
    """The sentence that makes a failure of a skip, or None for what is no skip or an allowed one."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return None
    reason = str(report.longrepr[2]).removeprefix("Skipped: ")
    if _ALLOWED.fullmatch(reason):
        return None
    return f"Skipped where CI runs, which is a failure: {reason}. Allowed reasons are listed in tests/skipping.py."


class NoOtherSkips:
    """A plugin of pytest that makes failures of skips for other reasons."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item):
        """Of a test."""
        return _judged((yield))

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector):
        """Of a whole file."""
        return _judged((yield))


def _judged(report):
    if (refused := _refused(report)) is not None:
        report.outcome, report.longrepr = "failed", refused
    return report
