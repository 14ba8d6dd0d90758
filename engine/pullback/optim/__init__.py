"""Optimizers of parameters in trees: SGD and Adam step by step, and SciPy's minimizers.

>>> loss = lambda p, x, y: np.mean((p["a"] * x + p["b"] - y) ** 2)
>>> x, params = np.linspace(0.0, 1.0, 20), {"a": 0.0, "b": 0.0}
>>> optimizer = pb.optim.Adam(learning_rate=0.1)
>>> state = optimizer.init(params)
>>> for _ in range(200):
...     params, state = optimizer.step(params, pb.grad(loss)(params, x, 2 * x + 1), state)
>>> found = pb.optim.minimize(loss, params, x, 2 * x + 1)  # L-BFGS
>>> round(params["a"], 1), round(found.params["a"], 3)
(2.0, 2.0)

`step` changes nothing: it returns new parameters and a new state. It is differentiable, and it compiles with the gradient
into one program, `pb.compile(train_step)`.
"""

from pullback.optim.minimizers import Minimum, minimize
from pullback.optim.optimizers import SGD, Adam, AdamState

__all__ = ["SGD", "Adam", "AdamState", "Minimum", "minimize"]
