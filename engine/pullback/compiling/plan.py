"""Compiled functions: record once per signature, plan, and run the plan from then on.

Where the function looks at values (`if`, `while`, `range`), what it saw is guarded: a call that would see something else
is recorded again and gets a program of its own. What cannot be compiled (an environment that cannot be watched, functions
without a rule) runs on the tape, and the summary has the reason.
"""

import os
import sys
import threading
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any, Self, overload
from weakref import WeakKeyDictionary

import numpy as np

from pullback import tiers, trees
from pullback.backends.interpreter import GuardFailure
from pullback.backends.native.entry import (
    Frame,
    NativeProgram,
    NotNativeError,
    bind,
    bound_frames,
    forget_latest,
    is_native,
    latest_frame,
    native_subclass,
    why_unknown,
)
from pullback.backends.poison import is_poisoning
from pullback.compiling import explanation
from pullback.compiling.environment import Environment
from pullback.compiling.keywords import by_position, with_names
from pullback.compiling.outputs import written_into
from pullback.compiling.plan_frames import template_of, template_of_graph
from pullback.compiling.pullbacks import build_pullback
from pullback.compiling.recordings import RECORDINGS_IN_VAIN, History
from pullback.compiling.signatures import signature
from pullback.compiling.specialization import Fallback, Program, UnanalysedCodeError, build, inner_function
from pullback.core.primitive import innermost_recorder
from pullback.dataclass import dataclass
from pullback.devices import PRECISIONS, DeviceCall, carried, precision_in_force
from pullback.errors import DifferentiationError, PlanWarning, TierError, name_of
from pullback.transforms.gradients import Gradient
from pullback.transforms.linearization import jvp, vjp

#: Signatures kept per function; the least recently used one goes first.
PLANS_KEPT = 64
INSTANCES_KEPT = 16

#: Frames that are made for one program: for threads that call a plan at the same time, and for what is around the function
#: as often as it is exchanged for its like. From then on calls that fit none go through Python.
FRAMES_TRIED = 8

#: Environments for which programs are kept for one signature; the oldest go first.
FAMILIES_KEPT = 8

#: Ways through a function that are compiled for one signature; one that takes more of them stays on the tape.
WAYS_KEPT = 8


@dataclass(slots=True, eq=False)
class Family:
    """The programs of one signature in one environment: one for each path through the function so far."""

    environment: Environment
    programs: tuple[Program, ...] = ()
    fallback: Fallback | None = None
    is_final: bool = False
    """The function stays on the tape, whatever is around it."""
    is_spent: bool = False
    """The function changed what is around it when it was recorded, so its program is right for one call only."""
    calls: int = 0

    def serves(self, args: tuple[Any, ...]) -> bool:
        """True if a call can be served now."""
        environment = self.environment
        return self.is_final or (not self.is_spent and environment.is_for(args) and environment.unchanged())

    def following(self, program: Program, changed: GuardFailure) -> Program | None:
        """The program that saw the same up to this guard and there what was seen now: the only ones that can be right."""
        seen = [guard.seen for guard in program.guards[: changed.guard]]
        seen.append(changed.seen)
        for other in self.programs:
            if [guard.seen for guard in other.guards[: len(seen)]] == seen:
                return other
        return None


#: Lock of all plans, held for microseconds, or while a program is prepared to be called natively.
_lock = threading.RLock()


def _after_fork_in_child() -> None:
    global _lock  # noqa: PLW0603 - a thread that stayed with the parent may hold the lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


class Plan:
    """A function that is compiled when it is called: call it like the function.

    In the native tier a call does not come to `__call__` any more, once a program has been made for arguments of its kind.
    """

    def __new__(cls, function: Callable[..., Any], tier: str, **_: Any) -> Self:
        """A plan that is called natively, where the tier is."""
        del function
        return super().__new__(native_subclass(cls) if tier == "native" else cls)

    def __init__(self, function: Callable[..., Any], tier: str) -> None:
        self.function = function
        self.tier = tiers.checked(tier)
        self._families: OrderedDict[Any, tuple[Family, ...]] = OrderedDict()
        self._histories: dict[Any, History] = {}
        self._warned: set[str] = set()
        self._by_names: dict[tuple[int, tuple[str, ...]], Plan] = {}
        self._last: Program | Fallback | None = None
        self._entered: dict[NativeProgram | None, int] = {}
        self._through_python: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._bound: OrderedDict[int, Plan] = OrderedDict()

    def __get__(self, instance: Any, owner: type | None = None) -> "Plan":
        """A plan in a class, as a method: for each instance one, to which what it reads of `self` is around the function.

        The latest are kept, and with them their instances.
        """
        if instance is None or not isinstance(self.function, FunctionType):
            return self
        with _lock:
            plan = self._bound.pop(id(instance), None) or Plan(MethodType(self.function, instance), self.tier)
            self._bound[id(instance)] = plan
            if len(self._bound) > INSTANCES_KEPT:
                self._bound.popitem(last=False)
        return plan

    def __call__(self, *args: Any, out: Any = None, **keywords: Any) -> Any:
        """Run, compiling first if arguments of these types have not been seen.

        In the tiers stateful and native results are memory of the plan: what is still referred to is never written to
        again, what was dropped is. With `out`, arrays in the structure of the
        result, the result is written into them, and they are what is returned.

            dw = plan(w, x, out=dw)
        """
        result = self._call(args, keywords)
        return result if out is None else written_into(out, result)

    def _call(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        entered = latest_frame(self) is not None
        forget_latest(self)
        if self.tier == "unfused":
            return self._on_the_tape(args, keywords, "the tier is unfused")
        if keywords:
            return self._call_by_keyword(args, keywords)
        key, leaves = signature(args)
        if leaves is not args and (there := self._carried(args)) is not None:
            return there.back(self._call(there.args, {}))
        if is_poisoning():
            key = ("poisoning", key)
        if (own := precision_in_force()) != PRECISIONS[0]:  # a graph that was captured keeps that of its products
            key = (own, key)
        families = self._families.get(key, ())
        family = next((known for known in families if known.serves(args)), None)
        if family is None:
            family = self._record(key, args, families, entered=entered)
            if family.fallback is not None:
                return self._first_on_the_tape(key, args, families, family.fallback)
        elif len(self._families) == PLANS_KEPT:
            self._keep(key, family)  # in use: not the next to go
        family.calls += 1
        return self._run(key, family, args, leaves)

    def _carried(self, args: tuple[Any, ...]) -> DeviceCall | None:
        """A call with others' arrays on a device, as one with device arrays."""
        on_device = carried(inner_function(self.function), args, {})
        return on_device if on_device is not None and on_device.kind != "device" else None

    def _record(self, key: Any, args: tuple[Any, ...], families: Sequence[Family], *, entered: bool) -> Family:
        """A family for what is around the function now. Numbers there that were something else before are inputs of it."""
        history = self._history(key)
        if families:
            latest = families[0]
            history.note(latest.environment.changes(), in_vain=latest.calls < 2 and not entered)
            if history.is_in_vain:
                reason = f"{history.latest} changes on each call; pass it as an argument"
                return self._keep(key, Family(latest.environment, fallback=Fallback(reason), is_final=True))
        function = inner_function(self.function)
        environment = Environment(function, history.varying, history.looked_into, trees.beside(args))
        family = self._compile(key, args, Family(environment))
        if history.is_due:
            self._warn(
                f"has been recorded {history.recordings} times, the latest time because {history.latest} changes; "
                "pass it as an argument"
            )
        return family

    def _call_by_keyword(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Arguments by keyword are further arguments of a plan of their own, one for each set of names."""
        args, keywords = by_position(self.function, args, keywords)
        if not keywords:
            return self._call(args, {})
        names = tuple(keywords)  # in the order of the call, which the function may see
        plan = self._by_names.get((len(args), names))
        if plan is None:
            if len(self._by_names) == PLANS_KEPT:
                return self._on_the_tape(args, keywords, f"called with more than {PLANS_KEPT} sets of keywords")
            plan = self._by_names[len(args), names] = Plan(with_names(self.function, len(args), names), self.tier)
            plan._through_python = self._through_python  # `explain` is asked of this one
        try:
            return plan(*args, *(keywords[name] for name in names))
        finally:
            self._last = plan._last

    def _run(self, key: Any, family: Family, args: tuple[Any, ...], leaves: Sequence[Any]) -> Any:
        """Run the program whose guards hold, compiling one if there is none."""
        values = [*leaves, *family.environment.read()]
        program: Program | None = None
        recorded = False
        while family.fallback is None:
            program = program or family.programs[0]
            overwritten = program.overwritten
            if overwritten and _share_memory(values, overwritten):
                return self._on_the_tape(args, {}, "an array that is overwritten shares memory with another argument")
            try:
                outputs = self._outputs(program, values)
            except Exception as error:
                reason = _why_the_tape_may_not_fail(error, values, family)
                if reason is None:
                    raise
                return self._on_the_tape(args, {}, reason)
            if not isinstance(outputs, GuardFailure):
                self._last = program
                if not recorded:
                    self._enter(program, args, family.environment, outputs)
                return program.finish(outputs, values)
            program = family.following(program, outputs)
            if program is None and recorded:
                return self._on_the_tape(args, {}, "a guard sees in the plan what it did not see while recording")
            if program is None:
                before, recorded = self._families.get(key, ()), True
                self._history(key).causes["another way through control flow"] += 1
                family = self._compile(key, args, family)
                if family.fallback is not None:
                    return self._first_on_the_tape(key, args, before, family.fallback)
                values = [*leaves, *family.environment.read()]
        return self._on_the_tape(args, {}, family.fallback.reason)

    @staticmethod
    def _outputs(program: Program, values: Sequence[Any]) -> tuple[Any, ...] | GuardFailure:
        if not program.quiet or program.compiled.native is not None:  # native programs give no warnings
            return program.compiled.run(values)
        with np.errstate(**dict.fromkeys(program.quiet, "ignore")):  # type: ignore[arg-type]  # the names are NumPy's
            return program.compiled.run(values)

    def _enter(self, program: Program, args: tuple[Any, ...], environment: Environment, outputs: Sequence[Any]) -> None:
        """Let calls like this one be native from now on."""
        native = program.compiled.native
        if program.compiled.replayed is not None:
            self._enter_graph(program, args, environment)
        if native is None or not is_native(self):
            return
        if not environment.unchanged():
            return  # recording changed it: a frame would expect what is there now
        with _lock:
            tried = self._entered.get(native, 0)
            if tried == FRAMES_TRIED:
                return
            alive, frames = self._frames_in_use()
            entered = [frame for frame in frames if frame.program is native]
            self._entered = {known: count for known, count in self._entered.items() if known in alive}
            self._entered[native] = tried + 1
            try:
                template = template_of(program, args, environment)
            except NotNativeError as reason:
                self._entered[native] = FRAMES_TRIED
                self._through_python[native] = str(reason)
                return
            idle = next((other for other in entered if not other.is_busy), None)
            if idle is not None and idle.template.expects_the_same(template):  # it was something else that did not fit
                return
            frame = Frame(template)
            frame.adopt(tuple(outputs))
            bind(self, [frame, *(other for other in frames if other is not idle)])

    def _enter_graph(self, program: Program, args: tuple[Any, ...], environment: Environment) -> None:
        """Let calls like this one, which launched a graph and did nothing else, launch it natively from now on."""
        entrance = program.compiled.replayed.entrance()
        if entrance is None or not is_native(self):
            return
        with _lock:
            if entrance.enters_again() or not entrance.may_be_tried() or not environment.unchanged():
                return
            try:
                frame = Frame(template_of_graph(program, args, environment, entrance), entrance.arena())
            except NotNativeError as reason:
                self._through_python[program.compiled.replayed] = str(reason)
                return
            entrance.entered(frame.words)
            bind(self, [frame, *self._frames_in_use()[1]])

    def _frames_in_use(self) -> tuple[set[Any], list[Frame]]:
        """The programs that calls may be entered to, and the frames of those."""
        alive = {one for other in self._programs() for one in (other.compiled.native, other.compiled.replayed)}
        frames = [frame for frame in bound_frames(self) if frame.program in alive or frame.program.owner in alive]
        return alive, [frame for frame in frames if frame.runs_left]

    def _first_on_the_tape(
        self, key: Any, args: tuple[Any, ...], before: tuple[Family, ...], fallback: Fallback
    ) -> Any:
        """Run on the tape what could not be recorded; if that fails too, other values may still have a plan."""
        try:
            result = self._on_the_tape(args, {}, fallback.reason)
        except Exception:
            with _lock:
                self._families.pop(key, None)
                if before:
                    self._families[key] = before
            raise
        if innermost_recorder() is None:  # else it becomes a part of that plan
            self._warn(f"runs on the tape, as if it were not compiled: {fallback.reason}")
        return result

    def vjp(self, *args: Any, once: bool = False) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
        """Value and pullback, as `pb.vjp` gives them, each a plan of its own; they are `plan.pullbacks[once]`.

        y, pullback = plan.vjp(w, x)
        """
        result: tuple[Any, Callable[[Any], tuple[Any, ...]]] = self.pullbacks[once](*args)
        return result

    @cached_property
    def pullbacks(self) -> dict[bool, "PullbackPlan"]:
        """The plans of value and pullback: by False the one to be called many times, by True the one to be called once."""
        return {once: PullbackPlan(self.function, self.tier, once=once) for once in (False, True)}

    def jvp(self, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        """Value and tangent, as `pb.jvp` gives them, in one plan."""
        result: tuple[Any, Any] = self.pushed(primals, tangents)
        return result

    @cached_property
    def pushed(self) -> "Plan":
        """The plan of value and tangent."""
        return Plan(partial(jvp, self.function), self.tier)

    def summary(self) -> dict[str, Any]:
        """Counts of the latest call: arrays, bytes, copies, state_bytes, kernels, flops, fallbacks and hashes.

        And why the plan was recorded, how often for each reason.
        """
        last = self._latest()
        recordings: Counter[str] = sum((history.causes for history in self._histories.values()), Counter())
        if isinstance(last, Fallback):
            counts = dict.fromkeys(("arrays", "bytes", "copies", "peak_bytes", "state_bytes", "kernels", "flops"))
            return {**counts, "fallbacks": [last.reason], "hash": None, "program": None, "recordings": dict(recordings)}
        summary = {**last.compiled.summary, "recordings": dict(recordings)}
        if last.backward is not None:
            summary["backward"] = dict(last.backward.summary)
        return summary

    def explain(self) -> str:
        """The page of the latest call: what it cost, the arguments, the graph after each pass, programs and their memory."""
        last = self._latest()
        if isinstance(last, Fallback):
            return f"# plan\n{self!r}\nruns on the tape: {last.reason}"
        first_graph = last.stages.graphs[0][1]
        parts = [f"# plan\n{self!r}\n{explanation.counts(last.compiled.counts, last.guards)}{self._calls(last)}"]
        parts.append(explanation.arguments(first_graph, last.stages.names, in_program=True))
        parts.extend(explanation.passes(last.stages))
        parts.extend(explanation.kernel_passes(last.compiled))
        parts.extend(explanation.program(last.compiled))
        if last.backward is not None:
            parts.extend(explanation.kernel_passes(last.backward, "backward: "))
            parts.extend(explanation.program(last.backward, "backward program"))
        return "\n\n".join(parts)

    def _calls(self, program: Program) -> str:
        """A line on how calls reach a program; of the native tier alone."""
        native, replayed = program.compiled.native, program.compiled.replayed
        if self.tier != "native":
            return ""
        plans = (self, *self._by_names.values())
        called = native if replayed is None else replayed
        reason = None if called is None else self._through_python.get(called)
        if replayed is not None:
            frames = [frame for plan in plans for frame in bound_frames(plan) if frame.program.owner is replayed]
            entered = any(frame.runs_left for frame in frames)
            why = "" if entered or reason is None else f"\ncalls like it go through Python: {reason}"
            return f"\n{explanation.replaying(replayed.counts, replayed.told, entered=entered)}{why}"
        if any(frame.program is native for plan in plans for frame in bound_frames(plan)):
            return "\ncalls are native"
        if native is None:
            return f"\ncalls go through Python: {explanation.why_through_python(program.compiled)}"
        return f"\ncalls go through Python: {reason or why_unknown() or 'this one was the first'}"

    def __repr__(self) -> str:
        kinds = len(self._families)
        ways = len(list(self._programs()))
        compiled = (
            f"{explanation.counted(ways, 'program')} for {explanation.counted(kinds, 'signature')}"
            if kinds
            else "each call runs on the tape"
            if self.tier == "unfused"
            else "not called yet"
        )
        return f"<plan of {self._title()}, tier {self.tier}: {compiled}>"

    def _title(self) -> str:
        name = name_of(inner_function(self.function))
        if not isinstance(self.function, Gradient):
            return name
        return f"{'value_and_grad' if self.function.with_value else 'grad'}({name}, wrt={self.function.wrt!r})"

    def _latest(self) -> Program | Fallback:
        frame = latest_frame(self)
        if frame is not None:
            self._last = next(
                (
                    program
                    for program in self._programs()
                    if frame.program is program.compiled.native
                    or (program.compiled.replayed is not None and frame.program.owner is program.compiled.replayed)
                ),
                self._last,
            )
        if self._last is None:
            raise ValueError("this plan has not been called yet; call it once first")
        return self._last

    def _programs(self) -> Iterator[Program]:
        return (program for families in self._families.values() for family in families for program in family.programs)

    def _warn(self, what: str) -> None:
        """Warn the caller of the plan, once, that it is slower than it could be."""
        if what in self._warned:
            return
        self._warned.add(what)
        warnings.warn(
            f"the plan of {_with_line(inner_function(self.function))} {what}", PlanWarning, stacklevel=_level()
        )

    def _on_the_tape(self, args: tuple[Any, ...], keywords: dict[str, Any], reason: str) -> Any:
        self._last = Fallback(reason)
        with tiers.on_the_tape(self.tier):
            return self._eagerly(args, keywords)

    def _history(self, key: Any) -> History:
        with _lock:
            return self._histories.setdefault(key, History())

    def _compile(self, key: Any, args: tuple[Any, ...], family: Family) -> Family:
        """The family with one program more, which comes first; for one call only if the function changes what is around it."""
        if isinstance(self.function, Gradient):
            self.function.selection.bind(args, {})
        if len(family.programs) == WAYS_KEPT:
            reason = f"the function took more than {WAYS_KEPT} ways through its control flow for arguments of one type"
            return self._keep(key, Family(family.environment, fallback=Fallback(reason)), family)
        with tiers.tier(self.tier):
            program, environment = self._built(key, args, family.environment)
        changed = environment.before.changed() or next((name for name, _, _ in environment.changes()), None)
        environment.forget()
        history = self._history(key)
        if isinstance(program, Fallback):
            history.changed_by_itself += program.changes
            is_final = program.changes and history.changed_by_itself > 1
            return self._keep(key, Family(environment, fallback=program, is_final=is_final), family)
        names = explanation.names_of_leaves(inner_function(self.function), args)
        program.stages.names = [*names, *environment.input_names]
        programs = family.programs if environment is family.environment else ()
        made = Family(environment, (program, *programs))
        if changed is None:
            return self._keep(key, made, family)
        history.changed_by_itself += 1
        made.is_spent = True
        if history.changed_by_itself > 1:  # once is how tables are filled and modules imported
            fallback = Fallback(f"the function changes {_itself(changed)}; return the new value instead")
            self._keep(key, Family(environment, fallback=fallback, is_final=True), family)
            self._warn(f"runs on the tape from now on: {fallback.reason}")
        else:
            self._keep(key, made, family)
        return made

    def _built(
        self, key: Any, args: tuple[Any, ...], environment: Environment
    ) -> tuple[Program | Fallback, Environment]:
        """A program, and the environment it is right in: with more looked into, and fewer numbers as inputs, if need be."""
        history = self._history(key)
        again = 0
        while True:
            numbers = environment.numbers()
            needed: Collection[int] = numbers if environment.asks_for_types else ()
            try:
                program = None if needed else self._build(args, environment)
            except UnanalysedCodeError as ran:
                program, history.looked_into = None, history.looked_into | ran.codes
                again += not ran.codes
                if again == RECORDINGS_IN_VAIN:
                    program = Fallback(
                        "a function with functools.lru_cache remembers something new whenever it is recorded"
                    )
            if isinstance(program, Fallback) or (program is not None and environment.numbers_matter):
                needed = numbers
            elif program is not None:
                needed = numbers.keys() & _looked_at(program, len(trees.flatten(args)[0]))
            if program is not None and not needed:
                return program, environment
            environment.before.put_back()
            history.constant |= {numbers[number] for number in needed}
            environment = Environment(environment.function, history.varying, history.looked_into, environment.beside)

    def _build(self, args: tuple[Any, ...], environment: Environment) -> Program | Fallback:
        return build(self.function, args, environment, tier=self.tier)

    def _eagerly(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return self.function(*args, **keywords)

    def _keep(self, key: Any, family: Family, instead_of: Family | None = None) -> Family:
        """Put a family first of its signature, and the signature last in the order of use; the first ones go."""
        with _lock:
            others = [other for other in self._families.pop(key, ()) if other not in (family, instead_of)]
            self._families[key] = (family, *others)[:FAMILIES_KEPT]
            while len(self._families) > PLANS_KEPT:
                self._histories.pop(self._families.popitem(last=False)[0], None)
        return family

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the programs: a copy makes its own."""
        return Plan, (self.function, self.tier)


class PullbackPlan(Plan):
    """A function that gives its value and its pullback; both run as plans."""

    def __init__(self, function: Callable[..., Any], tier: str, *, once: bool) -> None:
        super().__init__(function, tier)
        self.once = once

    def _build(self, args: tuple[Any, ...], environment: Environment) -> Program | Fallback:
        return build_pullback(self.function, args, environment, tier=self.tier, once=self.once)

    def _carried(self, args: tuple[Any, ...]) -> DeviceCall | None:
        on_device = carried(self.function, args, {})
        if on_device is not None and self.tier in tiers.KEEPING:
            raise TierError(
                f"pullbacks of plans do not run on {on_device.device} in the tier {self.tier} yet; use unfused or fused"
            )
        return super()._carried(args)

    def _eagerly(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return vjp(partial(self.function, **keywords) if keywords else self.function, *args, once=self.once)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(PullbackPlan, once=self.once), (self.function, self.tier)


@overload
def compile(function: Callable[..., Any], *, tier: str | None = None) -> Plan: ...  # noqa: A001


@overload
def compile(*, tier: str | None = None) -> Callable[[Callable[..., Any]], Plan]: ...  # noqa: A001


def compile(function: Callable[..., Any] | None = None, *, tier: str | None = None) -> Any:  # noqa: A001 (the public name, as help shows it)
    """A plan for a function or for a gradient: recorded at the first call, then run from a program of its own.

    Call the plan like the function; it records once for each combination of types and of values that the function looks
    at. `tier` is one of `pb.TIERS`; without it the one in force, or the last (`native`) where that is `unfused`.
    `plan.summary()` counts what a call does and says what is not native; `plan.explain()` gives the page of how it came to be.

    The function must depend on its arguments and its environment only; what it draws from a random generator or a
    clock while being recorded would be drawn once.

    >>> plan = pb.compile(pb.value_and_grad(lambda x: np.sum(np.tanh(x))), tier="stateful")
    >>> value, slope = plan(np.zeros(3))
    >>> print(value, slope, plan.summary()["arrays"])
    0.0 [1. 1. 1.] 0

    As a decorator: `@pb.compile`, or `@pb.compile(tier="fused")`.
    """
    if function is None:
        return partial(compile, tier=tier)
    if not callable(function):
        raise DifferentiationError(f"compile takes a function, not {type(function).__name__}")
    if tier is None:
        tier = current if (current := tiers.current_tier()) != "unfused" else tiers.TIERS[-1]
    return Plan(function, tier)


def _why_the_tape_may_not_fail(error: Exception, values: Sequence[Any], family: Family) -> str | None:
    """The reason to repeat on the tape a call that failed in a plan; None if it would fail there as well."""
    if isinstance(error, OverflowError) and any(type(v) is int and not -(2**63) <= v < 2**63 for v in values):
        return "a whole number has more than 64 bits"
    return "an error was raised, and the function may catch it" if family.environment.catches_errors else None


def _share_memory(values: Sequence[Any], overwritten: Sequence[int]) -> bool:
    arrays = [value for value in values if issubclass(type(value), np.ndarray)]
    return any(
        np.may_share_memory(values[position], other)
        for position in overwritten
        for other in arrays
        if other is not values[position] or sum(other is value for value in arrays) > 1
    )


def _looked_at(program: Program, leaves: int) -> list[int]:
    """The numbers of the hidden inputs that are guarded: the function uses their values, as a length, say."""
    graph = program.stages.graphs[0][1]
    seen = {guard.atom for guard in graph.guards}
    return [number for number, var in enumerate(graph.inputs[leaves:]) if var in seen]


def _itself(name: str) -> str:
    return "its own attributes" if name == "the function" else name


def _with_line(function: Callable[..., Any]) -> str:
    """The name of a function, and where it is written."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return name_of(function) + (f" ({Path(code.co_filename).name}:{code.co_firstlineno})" if code else "")


def _level() -> int:
    """The stack level of the innermost caller outside of the engine, as seen by the caller of this function."""
    frame, level = sys._getframe(1), 1  # noqa: SLF001 (inspect.stack costs a thousand times more)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_ENGINE):
        frame, level = frame.f_back, level + 1
    return level


_ENGINE = str(Path(__file__).parents[1])
