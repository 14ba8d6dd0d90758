"""The files that `pullback init` writes, as text."""

import json
from collections.abc import Collection, Sequence

from pullback_runners.projects.detection import Guess, Guesses
from pullback_runners.projects.functions import Argument, PlainFunction

WORKLOAD_FILE = "bench/gradients.py"

_TABLES = ("project", "build", "measure", "environment")


def project_text(guesses: Guesses, workloads: Sequence[str]) -> str:
    """The text of `pullback.toml`."""
    measured = Guess("measure", "workloads", tuple(workloads), "")
    lines = ["# How Pullback measures this repository; docs/projects.md of Pullback explains each key."]
    for table in _TABLES:
        keys = [each for each in (*guesses.guesses, measured) if each.table == table and each.value]
        if keys:
            lines += ["", f"[{table}]", *(f"{each.key} = {_toml(each.value)}" for each in keys)]
    return "\n".join(lines) + "\n"


def _toml(value: str | tuple[str, ...]) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else f"[{', '.join(map(_toml, value))}]"


def example_for(engine: str) -> PlainFunction:
    """An example workload for repositories in which no function was found: the file holds it itself."""
    arguments = (Argument("w", 1), Argument("x", 2), Argument("y", 1))
    return PlainFunction("", "mean_squared_error", engine, arguments, is_number=True, place="")


_IMPORTS = {
    "numpy": ("numpy as np",),
    "jax": ("jax", "jax.numpy as jnp"),
    "torch": ("torch",),
    "autograd": ("autograd",),
    "mygrad": ("mygrad",),
}
_MEANS = {"numpy": "np.mean", "jax": "jnp.mean", "torch": "torch.mean", "autograd": "anp.mean", "mygrad": "mygrad.mean"}
_SUMS = {"numpy": "np.sum", "jax": "jnp.sum", "torch": "torch.sum", "autograd": "anp.sum", "mygrad": "mygrad.sum"}

_STEPS = {
    "jax": """\
    arguments = [jnp.asarray(each) for each in ({tuple})]
    step = jax.jit(jax.value_and_grad({call}))
    return lambda: step(*arguments)
""",
    "torch": """\
    {all} = ({tensors})
    {first}.requires_grad_()

    def step():
        value = {inner}
        return value, torch.autograd.grad(value, {first})

    return step
""",
    "autograd": """\
    step = autograd.value_and_grad({call})
    return lambda: step({all})
""",
    "mygrad": """\
    def step():
        tensor = mygrad.tensor({first})
        value = {on_tensor}
        value.backward()
        return value.item(), tensor.grad

    return step
""",
}
"""By engine, code of a user who asks for a value and its gradient by the first argument."""


def workload_name(function: PlainFunction, taken: Collection[str]) -> str:
    """The name of a function's workload, which is neither one of Pullback's own nor that of its module."""
    is_taken = function.name in taken or function.name in {function.module.partition(".")[0], "workload", "grid"}
    return f"gradient_of_{function.name}" if is_taken else function.name


def workload_text(function: PlainFunction, name: str, project: str) -> str:
    """The text of a workload file that differentiates a function by its first argument."""
    engine, is_example = function.engine, not function.module
    drawn = function.differentiable
    first, names = drawn[0].name, ", ".join(each.name for each in drawn)
    imports = ["numpy as np", *(each for each in _IMPORTS[engine] if each != "numpy as np")]
    inner = _call(function, {})
    if engine == "autograd" and (is_example or inner.startswith("anp.")):
        imports.append("autograd.numpy as anp")
    if not is_example:
        imports.append(function.module)
    what = "the mean squared error of a linear model" if is_example else f"{function.module}.{function.name}"
    small, large = ("50", "500") if any(each.rank == 2 for each in drawn) else ("1_000", "100_000")
    dtype = ', dtype=("f4",)' if engine in {"jax", "torch"} else ""
    lines = [
        f'"""Gradients of {project} that Pullback measures: `pullback run`, `pullback compare --against HEAD~1`.',
        "",
        "A workload has sizes for each suite, generates its arguments, and defines how its value and gradient are computed. Add your own.",
        '"""',
        "",
        *(f"import {each}" for each in _sorted(imports)),
        "from pullback_runners.workloads import grid, workload",
        "",
        "",
    ]
    if is_example:
        lines += [
            "# No function of this repository could be used directly, so this is an example: call yours instead.",
            f"def squares({names}):",
            f"    return {_MEANS[engine]}(({drawn[1].name} @ {first} - {drawn[2].name}) ** 2)",
            "",
            "",
        ]
    form = "" if engine == "numpy" else "numpy=False, "
    lines += [
        f'@workload(wrt="{first}", {form}quick=grid(n=({small},){dtype}), standard=grid(n=({small}, {large}){dtype}))',
        f"def {name}(n):",
        f'    """The gradient of {what} by {first}."""',
        *([f"    return {_as_function(function, names)}"] if engine == "numpy" else []),
        "",
        "",
        f"@{name}.inputs",
        "def _(rng, dtype, n):",
        *_returned([_drawn(each) for each in drawn]),
    ]
    if engine != "numpy":
        step = _STEPS[engine].format(
            all=names,
            tuple=names if len(drawn) > 1 else f"{names},",
            first=first,
            call=_as_function(function, names),
            inner=inner,
            on_tensor=_call(function, {first: "tensor"}),
            tensors=", ".join(f"torch.as_tensor({each.name}).clone()" for each in drawn)
            + ("," if len(drawn) == 1 else ""),
        )
        lines += ["", "", f'@{name}.variant("{engine}")', f"def _({names}, *, n):", *step.rstrip().splitlines()]
    return "\n".join(lines) + "\n"


def _sorted(imports: Sequence[str]) -> list[str]:
    return sorted(dict.fromkeys(imports))


def _returned(entries: Sequence[str]) -> list[str]:
    """The lines that return a dictionary, an entry a line where there are several."""
    if len(entries) == 1:
        return [f"    return {{{entries[0]}}}"]
    return ["    return {", *(f"        {each}," for each in entries), "    }"]


def _drawn(argument: Argument) -> str:
    if argument.rank == 0:
        return f'"{argument.name}": dtype.type(rng.uniform(0.5, 1.5))'
    return f'"{argument.name}": rng.uniform(0.5, 1.5, {"(n, n)" if argument.rank == 2 else "n"}).astype(dtype)'


def _name_of(function: PlainFunction) -> str:
    return f"{function.module}.{function.name}" if function.module else "squares"


def _call(function: PlainFunction, other: dict[str, str]) -> str:
    """The text of a call that gives a number."""
    arguments = ", ".join("5" if each.is_whole else other.get(each.name, each.name) for each in function.arguments)
    call = f"{_name_of(function)}({arguments})"
    return call if function.is_number else f"{_SUMS[function.engine]}({call})"


def _as_function(function: PlainFunction, names: str) -> str:
    if function.is_number and not any(each.is_whole for each in function.arguments):
        return _name_of(function)
    return f"lambda {names}: {_call(function, {})}"
