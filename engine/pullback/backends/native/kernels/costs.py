"""What a step costs, in instructions on one vector: rough figures that decide how far bodies are unrolled."""

from pullback.backends.native.kernels.nests import Step

#: Elementary functions, by evaluation of a polynomial or two.
_OF_A_FUNCTION = 24

_COSTS = {
    **dict.fromkeys(("identity", "astype", "copy"), 0),
    **dict.fromkeys(("add", "sub", "mul", "neg", "square", "absolute", "copysign", "quotient"), 1),
    **dict.fromkeys(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "where"), 1),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isfinite"), 1),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"), 1),
    **dict.fromkeys(("relu", "relu6", "leakyrelu", "trelu", "hardtanh", "hardsigmoid", "hardswish", "sign"), 2),
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin", "floor", "ceil", "rint", "trunc", "signbit"), 3),
    **dict.fromkeys(("div", "sqrt", "reciprocal"), 8),
}


def cost(step: Step) -> int:
    """Instructions of a step, about."""
    return _COSTS.get(step.primitive.name, _OF_A_FUNCTION)
