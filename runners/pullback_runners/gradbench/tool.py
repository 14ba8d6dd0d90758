"""The tool itself: what is answered to each kind of message. It never raises on account of a message."""

import importlib
import importlib.metadata
import importlib.util
import platform
import traceback
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.gradbench.engine import Engine
from pullback_runners.gradbench.module import Input, Module
from pullback_runners.gradbench.protocol import Answer, Message
from pullback_runners.gradbench.timing import repeated, timed

MODULES = (
    "hello", "ba", "det", "gmm", "ht", "kmeans", "llsq", "lse", "lstm", "ode", "particle", "saddle",
)  # fmt: skip
"""All of GradBench's evals, each a file of that name in modules/."""

DETERMINANT = "expansion into minors along the rows, every minor computed once (2^n of them, not n!), all minors of a size at a time"

LONGEST_S = 600  # that GradBench waits for an answer


class Tool:
    """Answers messages with one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def respond(self, message: Message) -> Answer:
        """The answer to a message."""
        answer: Answer = {"id": message["id"]}
        try:
            match message["kind"]:
                case "start":
                    answer |= {"tool": "pullback", "config": self._config()}
                case "define":
                    answer |= self._define(message.get("module"))
                case "evaluate":
                    answer |= self._evaluate(message.get("module"), message.get("function"), message.get("input"))
        except Exception as error:  # noqa: BLE001 - whatever a message brings about is its answer
            answer |= {"success": False, "error": f"{_sentence(error)}\n{traceback.format_exc()}"}
        return answer

    def _config(self) -> dict[str, Any]:
        return {
            "version": importlib.metadata.version("pullback"),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "device": "cpu",
            "dtype": "float64",
            "tier": self.engine.tier,
            "threads": pb.threads(),
            "timings": "prepare: arrays made of JSON; compile: the first call; evaluate: the calls after it",
            "det": DETERMINANT,
        }

    def _define(self, name: Any) -> Answer:
        if name not in MODULES:
            return {"success": False, "error": _unknown("module", name, MODULES)}
        _, timings = timed("import", lambda: _module(name))
        return {"success": True, "timings": timings}

    def _evaluate(self, name: Any, function: Any, given: Input) -> Answer:
        if name not in MODULES:
            return {"success": False, "error": _unknown("module", name, MODULES)}
        functions = _module(name).functions
        if function not in functions:
            return {"success": False, "error": _unknown(f"function of module {name}", function, functions)}
        min_runs, min_seconds = _wanted_runs(given)
        # NumPy's warnings are left alone: an overflow is in the output, and there it is refused.
        with np.errstate(all="ignore"):
            prepared, preparing = timed("prepare", lambda: functions[function](self.engine, given))
            _, compiling = timed("compile", prepared.call)
            result, evaluating = repeated(prepared.call, min_runs, min_seconds)
            output = prepared.output(result)
        return {"success": True, "output": output, "timings": [*preparing, *compiling, *evaluating]}


def _module(name: str) -> Module:
    module: Module = importlib.import_module(f"pullback_runners.gradbench.modules.{name}").MODULE
    return module


def _wanted_runs(given: Input) -> tuple[int, float]:
    """The number and duration of runs that the input asks for; one run where it names none."""
    if not isinstance(given, dict):
        return 1, 0.0
    runs, seconds = given.get("min_runs", 1), given.get("min_seconds", 0.0)
    if not isinstance(runs, int) or not isinstance(seconds, int | float) or runs < 0 or seconds < 0:
        raise ValueError(f"min_runs is {runs!r} and min_seconds {seconds!r}; both are numbers from 0 on")
    if seconds > LONGEST_S:
        raise ValueError(f"min_seconds is {seconds!r}; GradBench waits {LONGEST_S} s for an answer")
    return max(runs, 1), float(seconds)


def _unknown(what: str, name: Any, known: Any) -> str:
    return f"no {what} {name!r}; known: {', '.join(known)}"


def _sentence(error: Exception) -> str:
    return str(error) or type(error).__name__
