"""Questions about numbers, and operations on truth values and whole numbers: the derivative is zero wherever it exists."""

import operator

import numpy as np

from pullback.core.kinds import Scalar

equal = Scalar("equal", np.equal, None, None, operator=operator.eq)
not_equal = Scalar("not_equal", np.not_equal, None, None, operator=operator.ne)
less = Scalar("less", np.less, None, None, operator=operator.lt)
less_equal = Scalar("less_equal", np.less_equal, None, None, operator=operator.le)
greater = Scalar("greater", np.greater, None, None, operator=operator.gt)
greater_equal = Scalar("greater_equal", np.greater_equal, None, None, operator=operator.ge)
COMPARISONS = (equal, not_equal, less, less_equal, greater, greater_equal)

isnan = Scalar("isnan", np.isnan, None)
isinf = Scalar("isinf", np.isinf, None)
isfinite = Scalar("isfinite", np.isfinite, None)
signbit = Scalar("signbit", np.signbit, None)

logical_and = Scalar("logical_and", np.logical_and, None, None)
logical_or = Scalar("logical_or", np.logical_or, None, None)
logical_xor = Scalar("logical_xor", np.logical_xor, None, None)
logical_not = Scalar("logical_not", np.logical_not, None)
bitwise_and = Scalar("bitwise_and", np.bitwise_and, None, None, operator=operator.and_)
bitwise_or = Scalar("bitwise_or", np.bitwise_or, None, None, operator=operator.or_)
bitwise_xor = Scalar("bitwise_xor", np.bitwise_xor, None, None, operator=operator.xor)
invert = Scalar("invert", np.invert, None)
complement = Scalar(
    "complement", np.invert, None, operator=operator.invert
)  # Python's ~True is -2, NumPy's invert of it False
left_shift = Scalar("left_shift", np.left_shift, None, None, operator=operator.lshift)
right_shift = Scalar("right_shift", np.right_shift, None, None, operator=operator.rshift)
bitwise_count = Scalar("bitwise_count", np.bitwise_count, None)
gcd = Scalar("gcd", np.gcd, None, None)
lcm = Scalar("lcm", np.lcm, None, None)
