#!/bin/sh
# Makes .venv from requirements.lock: `deploy/setup.sh [python3]`. Uses uv when it is there, else venv and pip.
set -eu
python=${1:-python3}

"$python" - <<'CHECK' || exit 2
import sys
if sys.version_info < (3, 11):
    sys.exit(f"pullback: Python 3.11 or newer is needed, {sys.executable} is {sys.version.split()[0]}; "
             "set PYTHON=python3.12 (or another) on the make command line")
CHECK

if command -v uv >/dev/null 2>&1; then
    echo "pullback: making .venv with uv"
    uv venv --quiet --clear --python "$python" .venv
    uv pip install --quiet --python .venv/bin/python --require-hashes -r requirements.lock
    uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation -e .
else
    echo "pullback: making .venv with venv and pip (half a minute)"
    "$python" -m venv --clear .venv
    pip() {  # without bytecode: pip would write it on one processor
        .venv/bin/python -m pip --quiet --disable-pip-version-check install --no-compile --no-deps "$@"
    }
    # pip uses one processor, so two of them install half of the packages each: the lock names all of them.
    .venv/bin/python - <<'HALVES'
import re
from pathlib import Path

packages = re.findall(r"^[a-z].*?(?=^[a-z]|\Z)", Path("requirements.lock").read_text(), re.DOTALL | re.MULTILINE)
for half in range(2):
    Path(f".venv/half-{half}.lock").write_text("".join(packages[half::2]))
HALVES
    pip --require-hashes -r .venv/half-0.lock &
    half=$!
    pip --require-hashes -r .venv/half-1.lock
    wait "$half"
    # Packages ship some files that are no Python of this release, and a third of all that is there is never imported.
    .venv/bin/python -m compileall -qq -j 0 -x '/(tests?|plotly|pip|setuptools)/' .venv/lib &
    compiled=$!
    pip --no-build-isolation -e .
    wait "$compiled" || true
fi
