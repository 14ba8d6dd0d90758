"""A dense layer, and its bias and activation by themselves."""

from typing import Any

import numpy as np

from pullback.nn.activation_choice import activation
from pullback.nn.layer_rules import Act, as_arrays, check_bias_argument, run_layer
from pullback.rules import bias_act as bias_rule
from pullback.rules import dense as dense_rule


def dense_bias_act(w: Any, x: Any, b: Any = None, act: Act = "identity") -> Any:
    """act(w @ x + b), with w (out, in), x (in,) or (in, batch), b (out,) or (out, 1) or none.

    `act` is an activation of `pb.nn` or its name, a NumPy ufunc or any elementwise function; `functools.partial` gives an
    activation other parameters. Outside the unfused tier an activation whose derivative can be written from its output
    overwrites the product: one array, not three.

        y = pb.nn.dense_bias_act(w, x, b, act="relu")
    """
    check_bias_argument("dense_bias_act", b)
    w, x, b = as_arrays(w, x, b)
    if np.ndim(w) != 2 or np.ndim(x) not in (1, 2):
        raise ValueError(
            f"dense_bias_act: w is (out, in) and x is (in,) or (in, batch), got shapes {np.shape(w)} and {np.shape(x)}"
        )
    if np.shape(w)[1] != np.shape(x)[0]:
        raise ValueError(
            f"dense_bias_act: w of shape {np.shape(w)} takes {np.shape(w)[1]} inputs, x has {np.shape(x)[0]}"
        )
    operands = (w, x) if b is None else (w, x, b)
    outputs = np.shape(w)[0]
    fitting = ((), (outputs,), (outputs, 1)) if np.ndim(x) == 2 else ((), (outputs,))
    if b is not None and np.shape(b) not in fitting:
        raise ValueError(
            f"dense_bias_act: a bias of shape {np.shape(b)} does not fit {outputs} outputs; give it shape ({outputs},)"
        )
    return run_layer(dense_rule.dense_bias_act, act, operands, {}, dense_reference)


def dense_reference(w: Any, x: Any, b: Any = None) -> Any:
    """Give w @ x + b in primitives."""
    z = w @ x
    return z if b is None else z + dense_rule.column(b, np.ndim(z))


def bias_act(act: Act, x: Any, b: Any = None) -> Any:
    """act(x + b), with a b that broadcasts to x; x is left as it was.

    One new array outside the unfused tier, not two; with the identity and no bias it is x itself.

        y = pb.nn.bias_act("tanh", w @ x, b)
    """
    check_bias_argument("bias_act", b)
    x, b = as_arrays(x, b)
    if b is None:
        return activation(act)(x)
    bias_rule.bias_act.check_bias(np.shape(b), np.shape(x))
    return run_layer(bias_rule.bias_act, act, (x, b), {}, lambda x, b: x + b)
