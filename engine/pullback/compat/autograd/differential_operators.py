"""The operators a user calls: gradients, Jacobians, Hessians and their products, all over `make_vjp` and `make_jvp`."""

import inspect
import warnings
from collections import OrderedDict
from typing import Any

import numpy as np

from pullback.compat.autograd import core
from pullback.compat.autograd.vector_spaces import VSpace, vspace
from pullback.compat.autograd.wrap_util import Function, unary_to_nary
from pullback.control import checkpoints
from pullback.transforms import jacobians

make_vjp = unary_to_nary(core.make_vjp)
make_jvp = unary_to_nary(core.make_jvp)


@unary_to_nary
def grad(fun: Function, x: Any) -> Any:
    """Gradient of a function that returns one real number: `grad(f, argnum=0)(x)` has the form of x."""
    vjp, ans = core.make_vjp(fun, x)
    return vjp(_one_number(ans, "grad").ones())


@unary_to_nary
def value_and_grad(fun: Function, x: Any) -> tuple[Any, Any]:
    """Value and gradient from one run."""
    vjp, ans = core.make_vjp(fun, x)
    return ans, vjp(_one_number(ans, "value_and_grad").ones())


@unary_to_nary
def grad_and_aux(fun: Function, x: Any) -> tuple[Any, Any]:
    """Gradient of the first result of a function that returns two, and the second as it is."""
    vjp, (ans, aux) = core.make_vjp(fun, x)
    return vjp((_one_number(ans, "grad_and_aux").ones(), None)), aux


@unary_to_nary
def elementwise_grad(fun: Function, x: Any) -> Any:
    """Sum of the rows of the Jacobian; of an elementwise function, its derivative at every element."""
    vjp, ans = core.make_vjp(fun, x)
    space = vspace(ans)
    if space.iscomplex:
        raise TypeError("elementwise_grad needs real results; use holomorphic_grad or jacobian")
    return vjp(space.ones())


@unary_to_nary
def deriv(fun: Function, x: Any) -> Any:
    """Derivative in forward mode along all ones: that of a function of one number."""
    return core.make_jvp(fun, x)(vspace(x).ones())[1]


@unary_to_nary
def holomorphic_grad(fun: Function, x: Any) -> Any:
    """Complex derivative of a holomorphic function."""
    if not vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", stacklevel=3)
    return grad(lambda z: np.real(fun(z)))(x)


@unary_to_nary
def jacobian(fun: Function, x: Any) -> Any:
    """Jacobian of an array by an array, of shape `result.shape + x.shape`, a row per pullback."""
    return jacobians.jacobian(fun, mode="reverse")(x)


@unary_to_nary
def hessian(fun: Function, x: Any) -> Any:
    """Hessian of a function that returns one number."""
    return jacobian(jacobian(fun))(x)


@unary_to_nary
def make_hvp(fun: Function, x: Any) -> Any:
    """Give `(hvp, gradient)`; `hvp(v)` is the Hessian at x times v."""
    return core.make_vjp(grad(fun), x)


def hessian_tensor_product(fun: Function, argnum: int = 0) -> Function:
    """Give a function of `(*args, tensor)`: the Hessian contracted with the tensor."""
    gradient = grad(fun, argnum)

    def gradient_along(*args: Any, **kwargs: Any) -> Any:
        *arguments, tensor = args
        return np.tensordot(gradient(*arguments, **kwargs), tensor, np.ndim(tensor))

    product: Function = grad(gradient_along, argnum)
    return product


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: Function, argnum: int = 0) -> Function:
    """Give a function of `(*args, tensor)`: the tensor contracted with the Jacobian, tensor first."""

    def contracted(*args: Any, **kwargs: Any) -> Any:
        *arguments, tensor = args
        return np.tensordot(tensor, fun(*arguments, **kwargs), axes=np.ndim(tensor))

    product: Function = jacobian(contracted, argnum)
    return product


vector_jacobian_product = tensor_jacobian_product


def jacobian_vector_product(fun: Function, argnum: int = 0) -> Function:
    """Give a function of `(*args, vector)`: the Jacobian times the vector, in forward mode."""

    def product(*args: Any, **kwargs: Any) -> Any:
        *arguments, vector = args
        return make_jvp(fun, argnum)(*arguments, **kwargs)(vector)[1]

    return product


@unary_to_nary
def make_jvp_reversemode(fun: Function, x: Any) -> Function:
    """Give `jvp(v)` without forward mode: the pullback is linear, so its own pullback is the Jacobian."""
    vjp, ans = core.make_vjp(fun, x)
    jvp: Function = core.make_vjp(vjp, vspace(ans).zeros())[0]
    return jvp


def _half_square(y: Any) -> Any:
    return 0.5 * np.sum(y**2, axis=-1)


def make_ggnvp(f: Function, g: Function = _half_square, f_argnum: int = 0) -> Function:
    """Give `ggnvp(v)` at a point: J^T H J v with J the Jacobian of f and H the Hessian of g (Gauss-Newton)."""

    @unary_to_nary
    def make(f: Function, x: Any) -> Function:
        pull, value = core.make_vjp(f, x)
        curve, gradient = core.make_vjp(grad(g), value)
        push, _ = core.make_vjp(pull, vspace(gradient).zeros())

        def ggnvp(v: Any) -> Any:
            return pull(curve(push(v)))

        return ggnvp

    made: Function = make(f, f_argnum)
    return made


def grad_named(fun: Function, argname: str) -> Function:
    """Gradient by an argument given by name."""
    gradient: Function = grad(fun, list(inspect.signature(fun).parameters).index(argname))
    return gradient


def multigrad_dict(fun: Function) -> Function:
    """Gradients by all arguments at once, as a dict from their names."""
    signature = inspect.signature(fun)

    def gradients(*args: Any, **kwargs: Any) -> OrderedDict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def call(arguments: dict[str, Any]) -> Any:
            again = signature.bind_partial()
            again.arguments = OrderedDict(arguments)
            return fun(*again.args, **again.kwargs)

        return OrderedDict(grad(call)(dict(bound.arguments)))

    return gradients


def checkpoint(fun: Function) -> Function:
    """The same function, with only its arguments saved: the backward pass runs its rules again (arXiv:1604.06174)."""
    checkpointed: Function = checkpoints.checkpoint(fun)
    return checkpointed


def _one_number(ans: Any, operator: str) -> VSpace:
    space = vspace(ans)
    if space.size != 1:
        raise TypeError(
            f"{operator} needs a function that returns one real number, this one returned {'None' if ans is None else space}; "
            "use jacobian, elementwise_grad or holomorphic_grad"
        )
    return space
