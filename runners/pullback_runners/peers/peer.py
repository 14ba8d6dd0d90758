"""The interface of adapters, and the code shared by those whose engine differentiates by itself."""

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

from pullback_runners.errors import VariantError
from pullback_runners.workloads import CPU, Case, Inputs, ValueAndGradients, Workload


@dataclass(frozen=True)
class PreparedCase:
    """A case bound to its arguments and to a peer; one call is one value with all gradients, and waits for them."""

    call: Callable[[], Any]
    differentiated: Callable[[Any], ValueAndGradients]
    """The result of a call as NumPy arrays, in the form that the oracle uses."""


@dataclass(frozen=True)
class QueuedCall:
    """A call on a device, which waits for its result, in its two halves and with the means to time it there."""

    queue: Callable[[], Any]
    """Asks for a result and returns, mostly before it is there."""
    wait: Callable[[Any], Any]
    """Returns a result once it is there."""
    overwrite: Callable[[], object]
    """Writes twice as much as the device's cache holds, to the end, so that nothing of an earlier call is left in it."""
    event: Callable[[], Any] | None = None
    """A new event of the device's own clock; None where the engine gives none."""

    def __call__(self) -> Any:
        """Ask for a result and wait for it."""
        return self.wait(self.queue())


class Peer(ABC):
    """Another engine, or another way of computing the same value and gradients."""

    name: str
    packages: ClassVar[tuple[str, ...]]
    """Distributions that must be installed, each importable under its own name; the first one is the peer."""
    environment: ClassVar[Mapping[str, str]] = {}
    """Variables that keep it on one thread; they count only if they are set before the process starts."""

    devices: ClassVar[tuple[str, ...]] = (CPU,)
    """Devices that it can compute on, given what it needs there."""

    def available(self) -> str | None:
        """The reason why the peer cannot be used here, or None."""
        missing = [package for package in self.packages if importlib.util.find_spec(package) is None]
        return f"{' and '.join(missing)} not installed" if missing else None

    def why_not_on(self, device: str) -> str | None:
        """The reason why the installed peer cannot compute on a device here, as its engine reports it; or None."""
        return None if device in self.devices else f"{self.name} computes on {' and '.join(self.devices)} only"

    def version(self) -> str:
        """Version of the peer's package."""
        import importlib.metadata  # noqa: PLC0415 - 3 MB in a timed process, where nobody asks for versions

        return importlib.metadata.version(self.packages[0])

    @abstractmethod
    def offers(self, workload: Workload) -> bool:
        """True if the workload has been written for this peer."""

    @abstractmethod
    def prepare(self, workload: Workload, case: Case, inputs: Inputs) -> PreparedCase:
        """Bind value and gradients of a case; a call returns when its result is there."""

    def prepare_pullback(self, workload: Workload, case: Case, inputs: Inputs) -> PreparedCase:
        """Run the function once and bind its pullback alone: Python number in, Python numbers out."""
        del inputs
        raise VariantError("unavailable", f"peer {self.name} has no pullback apart for {workload.name} ({case.name})")


@dataclass(frozen=True)
class Form:
    """A workload in a peer's own words."""

    loss: Callable[..., Any]
    """The function that is differentiated, of `arguments` by position."""
    arguments: Mapping[str, Any]
    """NumPy arrays or the peer's own, in the layout that suits the peer best."""
    wrt: tuple[str, ...]
    """Names of the arguments that are differentiated."""
    gradients: Callable[[dict[str, Any]], dict[str, Any]] = dict
    """Convert gradients by `wrt`, as NumPy arrays, to those of the workload."""
    derivative: Callable[..., tuple[Any, Any]] | None = None
    """The value and the workload's derivatives in their order, where those are no gradients of the loss."""

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of the arguments that are differentiated."""
        names = list(self.arguments)
        return tuple(names.index(name) for name in self.wrt)


WriteForm = Callable[..., Form | Callable[..., Any]]
"""`write(engine, **params)`: a form, or the loss alone where it takes the workload's own arguments."""


class FormsPeer(Peer):
    """A peer that differentiates: workloads are written for it as losses, `@peer.form("lstm")`."""

    def __init__(self) -> None:
        self._forms: dict[str, tuple[WriteForm, bool]] = {}

    def form(self, *workloads: str, with_inputs: bool = False) -> Callable[[WriteForm], WriteForm]:
        """Declare how workloads are written for this peer: by the sizes of a case, or by its inputs too."""

        def declare(write: WriteForm) -> WriteForm:
            self._forms.update(dict.fromkeys(workloads, (write, with_inputs)))
            return write

        return declare

    def share_forms(self, other: "FormsPeer") -> None:
        """Have the same forms as `other`, those that are declared later too."""
        self._forms = other._forms  # noqa: SLF001 - one of our own

    def offers(self, workload: Workload) -> bool:
        """True if there is a form for this peer."""
        return workload.name in self._forms

    def prepare(self, workload: Workload, case: Case, inputs: Inputs) -> PreparedCase:
        """Differentiate the form by the peer's own means."""
        form = self._form_of(workload, case, inputs)
        call, arrays = self.bind(form, case.device)
        names = form.wrt if form.derivative is None else workload.derivatives

        def differentiated(result: Any) -> ValueAndGradients:
            value, *gradients = arrays(result)
            return value, form.gradients(dict(zip(names, gradients, strict=True)))

        return PreparedCase(call, differentiated)

    def prepare_pullback(self, workload: Workload, case: Case, inputs: Inputs) -> PreparedCase:
        """Run the form once, keep its pullback."""
        if case.device != CPU:
            raise VariantError(
                "unavailable", f"peer {self.name}: a pullback apart is taken on {CPU} only ({case.name})"
            )
        form = self._form_of(workload, case, inputs)
        value, call = self.bind_pullback(form)

        def differentiated(result: Any) -> ValueAndGradients:
            return value, form.gradients(dict(zip(form.wrt, [result], strict=True)))

        return PreparedCase(call, differentiated)

    @abstractmethod
    def engine(self) -> Any:
        """Import the peer."""

    def placing(self, device: str) -> AbstractContextManager[Any]:
        """While it lasts, the peer's own arrays are made on the device unless they say where."""
        del device
        return nullcontext()

    @abstractmethod
    def bind(self, form: Form, device: str) -> tuple[Callable[[], Any], Callable[[Any], list[Any]]]:
        """The call on a device, and what turns its result into NumPy arrays: the value, then the gradients.

        Arguments are there before the call, its result stays there; a call returns when its result is there.
        """

    @abstractmethod
    def bind_pullback(self, form: Form) -> tuple[Any, Callable[[], Any]]:
        """The value, and the call of the pullback with 1.0 that gives the one gradient as a Python number."""

    def _form_of(self, workload: Workload, case: Case, inputs: Inputs) -> Form:
        if not self.offers(workload):
            written = ", ".join(sorted(self._forms)) or "none"
            raise VariantError(
                "unavailable", f"{workload.name} is not written for peer {self.name}, which has {written}"
            )
        reason = self.available()
        if reason is not None:
            raise VariantError("unavailable", f"peer {self.name}: {reason}; install the extra `peers`")
        reason = self.why_not_on(case.device)
        if reason is not None:
            raise VariantError("unavailable", reason)
        write, with_inputs = self._forms[workload.name]
        with self.placing(case.device):
            written_form = write(self.engine(), *([inputs] if with_inputs else []), **dict(case.params))
        return written_form if isinstance(written_form, Form) else Form(written_form, inputs, workload.wrt)
