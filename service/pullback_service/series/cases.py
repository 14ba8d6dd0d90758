"""The identity of a case and the label people see. Pure."""

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson


def identity(workload: str, params: Mapping[str, Any], dtype: str | None, device: str | None) -> bytes:
    """A digest that is equal for equal cases: the order of parameters and 1 against 1.0 make no difference."""
    canonical = [workload, _canonical(params), dtype, device]
    return hashlib.sha256(orjson.dumps(canonical, option=orjson.OPT_SORT_KEYS)).digest()


def label(workload: str, params: Mapping[str, Any], dtype: str | None, device: str | None) -> str:
    """`dense_bias_act[n=100,act=tanh,f4,cpu]`, parameters in the order given."""
    parts = [f"{name}={_shown(value)}" for name, value in params.items()]
    parts += [part for part in (dtype, device) if part is not None]
    return f"{workload}[{','.join(parts)}]" if parts else workload


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(_canonical(value)).decode()
