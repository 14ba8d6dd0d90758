"""`vectorize` for functions of numbers that are traced."""

from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue
from pullback.errors import TracingError
from pullback.transforms.batching import vmap


class vectorize(np.vectorize):  # noqa: N801 (NumPy's name)
    """A function of numbers on arrays that broadcast, as `numpy.vectorize`; on traced arrays it is `pb.vmap` of the function.

    >>> square = pb.numpy.vectorize(lambda t: t * t)
    >>> pb.grad(lambda x: np.sum(square(x)))(np.array([1.0, 2.0]))
    array([2., 4.])
    """

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """The function at each element."""
        if not any(isinstance(value, TracedValue) for value in (*args, *keywords.values())):
            return super().__call__(*args, **keywords)
        if keywords or self.excluded or self.signature is not None:
            raise TracingError(
                "vectorize of traced values takes positional arguments, without excluded= and signature=; write pb.vmap"
            )
        shape = np.broadcast_shapes(*map(np.shape, args))
        flat = [np.reshape(np.broadcast_to(value, shape), -1) for value in args]
        results = vmap(self.pyfunc)(*flat)
        if isinstance(results, tuple):
            return tuple(np.reshape(result, shape) for result in results)
        return np.reshape(results, shape)
