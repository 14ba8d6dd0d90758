"""`odeint`, differentiated by its adjoint equation."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.integrate

from pullback.compat.autograd.core import make_vjp
from pullback.compat.autograd.misc.flatten import flatten
from pullback.compat.autograd.primitives import defvjp_argnums, primitive
from pullback.namespaces import the_rest_of

odeint = primitive(scipy.integrate.odeint)


def _adjoint(argnums: Sequence[int], ans: Any, args: Any, kwargs: Any) -> Callable[[Any], list[Any]]:
    """Integrate state, cotangent and the integrals that the arguments need backwards from one time to the one before.

    At each measured time the cotangent of what was measured is added (Fröhlich, Loos, Hasenauer, arXiv:1711.08079,
    section 2.4.2). With a = cotangent of the state: da/dt = -(df/dy)^T a, and the integrands of the cotangents of t0
    and of the arguments are the same with df/dt and df/dargs.
    """
    func, _, t, *rest = args
    func_args = rest[0] if rest else ()
    steps, width = np.shape(ans)
    flat_args, unflatten = flatten(func_args)

    def augmented(state: Any, time: Any, parameters: Any) -> Any:
        y, y_bar = state[:width], state[width : 2 * width]
        pull, dy = make_vjp(lambda yta: func(yta[0], yta[1], *unflatten(yta[2])), (y, time, parameters))
        y_integrand, t_integrand, args_integrand = pull(-y_bar)
        return np.concatenate((dy, y_integrand, np.reshape(t_integrand, (1,)), args_integrand))

    def pullback(g: Any) -> list[Any]:
        y_bar, t0_bar, args_bar = g[-1], 0.0, np.zeros(np.size(flat_args))
        t_bars: list[Any] = []
        for step in range(steps - 1, 0, -1):
            moved = np.dot(func(ans[step], t[step], *func_args), g[step])  # by moving the time of this measurement
            t_bars.append(moved)
            t0_bar = t0_bar - moved
            start = np.concatenate((ans[step], y_bar, np.reshape(t0_bar, (1,)), args_bar))
            times = np.stack((t[step], t[step - 1]))
            end = odeint(augmented, start, times, (flat_args,), **kwargs)[1]
            y_bar, t0_bar, args_bar = end[width : 2 * width] + g[step - 1], end[2 * width], end[2 * width + 1 :]
        t_bars.append(t0_bar)
        by_argument = {1: y_bar, 2: np.stack(t_bars[::-1]), 3: unflatten(args_bar)}
        return [by_argument.get(argnum) for argnum in argnums]

    return pullback


defvjp_argnums(odeint, _adjoint)


__getattr__, __dir__ = the_rest_of("pullback.scipy.integrate", __name__)
