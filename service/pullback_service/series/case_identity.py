"""The identity of a case and the label people see. Pure.

Pages are found by labels, so different cases have different ones (docs/decisions/0069): a label could be read back, but for
the order of parameters.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

_PLAIN: Final = re.compile(r"""[^,=\[\]{}"]+""")
_OF_ANOTHER_TYPE: Final = re.compile(r"true|false|null|-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class CasePart:
    """A case of the report, known by its identity."""

    identity: bytes
    label: str
    workload: str
    params: Mapping[str, Any]
    dtype: str | None
    device: str | None


class SeriesPart(NamedTuple):
    """A series of the report, less the machine; equal parts are one series."""

    case: bytes
    variant: str
    variant_kind: str
    metric: str
    unit: str
    direction: str
    exact: bool

    @property
    def key(self) -> tuple[bytes, str, str]:
        """The key that tells two series of one machine apart."""
        return self.case, self.variant, self.metric


def identity(workload: str, params: Mapping[str, Any], dtype: str | None, device: str | None) -> bytes:
    """A digest that is equal for equal cases: the order of parameters and 1 against 1.0 make no difference."""
    canonical = [workload, _canonical(params), dtype, device]
    return hashlib.sha256(orjson.dumps(canonical, option=orjson.OPT_SORT_KEYS)).digest()


def label(workload: str, params: Mapping[str, Any], dtype: str | None, device: str | None) -> str:
    """`dense_bias_act[n=100,act=tanh,f4,cpu]`, parameters in the order given; equal for no two different cases.

    Text is in quotes where it would read as a number or as a part of the label. Where only one of dtype and device is
    given, the place of the other stays empty, unless it is the last one behind parameters: `w[n=1,f4]`, `w[n=1,,cpu]`,
    `w[f4,]`. A workload without any of them whose own name reads like a label has empty brackets behind it.
    """
    parts = [f"{_text(name)}={_shown(value)}" for name, value in params.items()]
    if device is not None or (dtype is not None and not parts):
        parts += ["" if part is None else _text(part) for part in (dtype, device)]
    elif dtype is not None:
        parts.append(_text(dtype))
    reads_like_a_label = workload.endswith("]") and ("=" in workload or "," in workload)
    return f"{workload}[{','.join(parts)}]" if parts or reads_like_a_label else workload


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _shown(value: Any) -> str:
    if isinstance(value, str) and _OF_ANOTHER_TYPE.fullmatch(value) is None:
        return _text(value)
    return orjson.dumps(_canonical(value)).decode()


def _text(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else orjson.dumps(text).decode()
