"""Which primitive stands for which NumPy ufunc."""

from typing import Any

import numpy as np

from pullback.primitive import Primitive
from pullback.rules import elementwise as e
from pullback.rules.contractions import matmul

UFUNCS: dict[Any, Primitive] = {
    np.add: e.add,
    np.subtract: e.sub,
    np.multiply: e.mul,
    np.divide: e.div,
    np.negative: e.neg,
    np.power: e.power,
    np.square: e.square,
    np.exp: e.exp,
    np.expm1: e.expm1,
    np.log: e.log,
    np.log1p: e.log1p,
    np.sqrt: e.sqrt,
    np.sin: e.sin,
    np.cos: e.cos,
    np.tanh: e.tanh,
    np.absolute: e.absolute,
    np.maximum: e.maximum,
    np.minimum: e.minimum,
    np.sign: e.sign,
    np.equal: e.equal,
    np.not_equal: e.not_equal,
    np.less: e.less,
    np.less_equal: e.less_equal,
    np.greater: e.greater,
    np.greater_equal: e.greater_equal,
    np.matmul: matmul,
}
