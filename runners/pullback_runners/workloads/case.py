"""A case: a workload at one size, dtype and device. The structured form is the truth, the name is derived from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Parameter = int | str

CPU, CUDA = "cpu", "cuda"
DEVICES = (CPU, CUDA)
"""Where a case can be computed."""


@dataclass(frozen=True)
class Case:
    """A workload with its size parameters in the workload's own order."""

    workload: str
    params: tuple[tuple[str, Parameter], ...]
    dtype: str
    device: str = CPU

    @property
    def name(self) -> str:
        """The derived name, for example `dense_bias_act[n=100,act=tanh,f4,cpu]`."""
        fields = [f"{name}={value}" for name, value in self.params]
        return f"{self.workload}[{','.join([*fields, self.dtype, self.device])}]"

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
