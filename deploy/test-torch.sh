#!/bin/sh
# Tests of arrays on devices, over PyTorch for the CPU: `deploy/test-torch.sh [pytest arguments]`. PyTorch lies in an environment
# of its own, .venv-torch, which has everything else from .venv; PULLBACK_TORCH_PYTHON names another one's Python, and
# PULLBACK_TORCH what is installed. uv takes PyTorch's build for the CPU; pip takes what its index has, which is 5 GB where that is
# the build for CUDA.
set -eu
python=${PULLBACK_TORCH_PYTHON:-.venv-torch/bin/python}
wanted=${PULLBACK_TORCH:-$(.venv/bin/python -c 'import tomllib
extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]
print(next(one for one in extras["gpu"] if one.startswith("torch")))')}

if [ -z "${PULLBACK_TORCH_PYTHON:-}" ] && ! $python -c 'import torch' 2>/dev/null; then
    echo "pullback: making .venv-torch with PyTorch (some hundred megabytes)"
    .venv/bin/python -m venv --clear .venv-torch
    site=$($python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    .venv/bin/python -c 'import sysconfig
print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' >"$site/pullback-venv.pth"
    if command -v uv >/dev/null 2>&1; then
        uv pip install --quiet --python "$python" --torch-backend cpu "$wanted"
    else
        $python -m pip install --quiet --disable-pip-version-check --no-compile "$wanted"
    fi
fi
exec $python -m pytest tests/engine/cuda tests/runners/devices/test_tiers_on_tensors.py tests/system/test_gpu_check.py "$@"
