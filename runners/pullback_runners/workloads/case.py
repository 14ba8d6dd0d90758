"""A case: a workload at one size, dtype and device. The structured form is the truth, the name is derived from it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

Parameter = int | str

CPU, CUDA = "cpu", "cuda"
DEVICES = (CPU, CUDA)
"""Devices that a case can be computed on."""

_PLAIN: Final = re.compile(r"""[^,=\[\]{}"]+""")
_OF_ANOTHER_TYPE: Final = re.compile(r"true|false|null|-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class Case:
    """A workload with its size parameters in the workload's own order."""

    workload: str
    params: tuple[tuple[str, Parameter], ...]
    dtype: str
    device: str = CPU

    @property
    def name(self) -> str:
        """The derived name, for example `dense_bias_act[n=100,act=tanh,f4,cpu]`; the service's label (docs/decisions/0069)."""
        fields = [f"{_text(name)}={_shown(value)}" for name, value in self.params]
        return f"{self.workload}[{','.join([*fields, _text(self.dtype), _text(self.device)])}]"

    def document(self) -> dict[str, Any]:
        """The case as a report and a worker's orders write it."""
        return {"workload": self.workload, "params": dict(self.params), "dtype": self.dtype, "device": self.device}

    @staticmethod
    def of_document(document: Mapping[str, Any]) -> "Case":
        """The case that `document` describes."""
        return Case(
            workload=document["workload"],
            params=tuple(document["params"].items()),
            dtype=document["dtype"],
            device=document["device"],
        )


def _shown(value: Parameter) -> str:
    """A number as it is, and text in quotes where it would read as one or as a part of the name."""
    if isinstance(value, str) and _OF_ANOTHER_TYPE.fullmatch(value) is None:
        return _text(value)
    return json.dumps(value, ensure_ascii=False)


def _text(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
