"""scipy.integrate for traced values: everything SciPy's, but for what would call a traced function from compiled code."""

from typing import Any, NoReturn

from pullback.errors import NoRuleError
from pullback.namespaces import the_rest_of
from pullback.scipy.stand_ins import stands_in_for


@stands_in_for("scipy.integrate")
def odeint(func: Any, y0: Any, t: Any, args: Any = (), **options: Any) -> NoReturn:
    """Integrate plain values; traced ones are refused, because the solver's steps are out of sight."""
    raise NoRuleError(
        "scipy.integrate.odeint has no rule here; write the steps of a solver with pb.scan, "
        "or use pullback.compat.autograd.scipy.integrate.odeint, which solves the adjoint equation"
    )


__getattr__, __dir__ = the_rest_of("scipy.integrate", __name__)
