"""The public surface of HIPS autograd over this engine: a program written for it runs when its import is changed.

    import pullback.compat.autograd.numpy as np      # was: import autograd.numpy as np
    from pullback.compat.autograd import grad        # was: from autograd import grad

What maps, what differs and how much of its own test-suite passes: docs/autograd-compat.md.
"""

from pullback.compat.autograd.builtins import dict, isinstance, list, tuple, type  # noqa: A004 (its public names)
from pullback.compat.autograd.differential_operators import (
    checkpoint,
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    jacobian_vector_product,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_jvp_reversemode,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)
from pullback.compat.autograd.primitives import notrace_primitive, primitive

__all__ = [
    "checkpoint",
    "deriv",
    "dict",
    "elementwise_grad",
    "grad",
    "grad_and_aux",
    "grad_named",
    "hessian",
    "hessian_tensor_product",
    "hessian_vector_product",
    "holomorphic_grad",
    "isinstance",
    "jacobian",
    "jacobian_vector_product",
    "list",
    "make_ggnvp",
    "make_hvp",
    "make_jvp",
    "make_jvp_reversemode",
    "make_vjp",
    "multigrad_dict",
    "notrace_primitive",
    "primitive",
    "tensor_jacobian_product",
    "tuple",
    "type",
    "value_and_grad",
    "vector_jacobian_product",
]
