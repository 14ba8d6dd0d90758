"""What every test shares: one BLAS thread, and no colour codes in captured output."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NO_COLOR", "1")


def pytest_addoption(parser):
    parser.addoption(
        "--renew-golden", action="store_true", help="write the golden files instead of comparing with them"
    )
