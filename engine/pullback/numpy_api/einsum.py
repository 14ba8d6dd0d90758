"""Einstein's sums, brought down to diagonals, sums, transposes and products of matrices, two operands at a time.

"ij,jk->ik"    the product matmul(a, b)
"bij,bjk->bk"  i is in one operand only: summed out first; b is in both and in the result: a stack
"ii->i"        a diagonal
"""

from collections.abc import Sequence
from string import ascii_letters
from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue
from pullback.errors import TracingError
from pullback.numpy_api.operands import as_operand, number_of
from pullback.numpy_api.reductions import sum_
from pullback.numpy_api.selecting import diagonal
from pullback.numpy_api.shapes import astype, broadcast_to, reshape, transpose
from pullback.numpy_api.translations import implements, refuse
from pullback.rules.contractions import matmul

LAST = -1
"""The position of the product before, at the end of the terms."""

Term = tuple[Any, str]
"""An operand, and the letter of each of its axes."""


@implements(np.einsum)
def einsum(*operands: Any, out: Any = None, optimize: Any = True, **keywords: Any) -> Any:
    """`optimize` is always on: the order of the products is NumPy's own choice for these shapes."""
    dtype = keywords.pop("dtype", None)
    if keywords.get("order") == "K":
        keywords.pop("order")
    if keywords.get("casting") == "safe":
        keywords.pop("casting")
    refuse("numpy.einsum", out=out, **keywords)
    subscripts, arrays = _string_form(operands)
    wanted = np.result_type(*(array.dtype for array in arrays)) if dtype is None else np.dtype(dtype)
    if not all(np.can_cast(array.dtype, wanted) for array in arrays):
        raise TypeError(f"numpy.einsum: an operand is not cast to {wanted}, which may lose digits; cast it with astype")
    arrays = [astype(array, wanted) for array in arrays]
    inputs, output = _explicit(subscripts, [np.shape(array) for array in arrays])
    lengths = _lengths(inputs, arrays)
    terms = [_with_distinct_letters(array, letters) for array, letters in zip(arrays, inputs, strict=True)]
    for pair in _order(inputs, output, lengths, optimize):
        taken = [terms.pop(position) for position in sorted((p % len(terms) for p in pair), reverse=True)]
        wanted = set(output).union(*(letters for _, letters in terms))
        terms.append(taken[0] if len(taken) == 1 else _product(taken[1], taken[0], wanted, lengths))
    return _finished(terms[0], output)


def _string_form(operands: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """Subscripts and arrays; lists of axis numbers, NumPy's other form, are spelled out."""
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), [as_operand(operand) for operand in operands[1:]]
    arrays, sublists, rest = [], [], list(operands)
    while len(rest) >= 2:
        arrays.append(as_operand(rest.pop(0)))
        sublists.append(rest.pop(0))
    spelled = ",".join(map(_spelled, sublists))
    return (f"{spelled}->{_spelled(rest[0])}" if rest else spelled), arrays


def _spelled(sublist: Sequence[Any]) -> str:
    return "".join("..." if axis is Ellipsis else sorted(ascii_letters)[int(axis)] for axis in sublist)


def _explicit(subscripts: str, shapes: Sequence[tuple[int, ...]]) -> tuple[list[str], str]:
    """One letter per axis, ellipses replaced by unused letters, and the output written out."""
    left, arrow, output = subscripts.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(shapes):
        raise ValueError(f"einsum: {subscripts!r} names {len(inputs)} operands, {len(shapes)} were given")
    unused = [letter for letter in ascii_letters if letter not in subscripts]
    ranks = [len(shape) - len(part.replace("...", "")) for part, shape in zip(inputs, shapes, strict=True)]
    for part, rank, shape in zip(inputs, ranks, shapes, strict=True):
        if rank < 0 or (rank and "..." not in part):
            raise ValueError(f"einsum: subscripts {part!r} do not fit an operand of shape {shape}")
    longest = max((rank for part, rank in zip(inputs, ranks, strict=True) if "..." in part), default=0)
    stack = "".join(unused[:longest])
    written = [part.replace("...", stack[longest - rank :]) for part, rank in zip(inputs, ranks, strict=True)]
    if arrow and longest and "..." not in output:
        raise ValueError(f"einsum: the output of {subscripts!r} has no '...', for which the operands have axes")
    if arrow:
        explicit = output.replace("...", stack)
    else:
        named = left.replace("...", "").replace(",", "")
        explicit = stack + "".join(letter for letter in sorted(set(named)) if named.count(letter) == 1)
    unknown = set(explicit) - set("".join(written))
    if unknown or len(set(explicit)) < len(explicit):
        raise ValueError(f"einsum: the output of {subscripts!r} repeats a letter or names one that no operand has")
    return written, explicit


def _lengths(inputs: Sequence[str], arrays: Sequence[Any]) -> dict[str, int]:
    lengths: dict[str, int] = {}
    for letters, array in zip(inputs, arrays, strict=True):
        for letter, length in zip(letters, np.shape(array), strict=True):
            known = lengths.setdefault(letter, length)
            if known == 1:
                lengths[letter] = length
            elif length not in (1, known):
                raise ValueError(f"einsum: axis {letter!r} has length {known} in one operand and {length} in another")
    return lengths


def _with_distinct_letters(array: Any, letters: str) -> Term:
    """A letter that is there twice stands for a diagonal."""
    for letter in sorted(set(letters)):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            array = diagonal(array, 0, first, second)
            letters = "".join(other for place, other in enumerate(letters) if place not in (first, second)) + letter
    return array, letters


def _order(inputs: Sequence[str], output: str, lengths: dict[str, int], optimize: Any) -> list[tuple[int, ...]]:
    """The order of the products: positions of the terms to multiply in each step; their product goes to the end."""
    if len(inputs) <= 2:
        return [tuple(range(len(inputs)))]
    if isinstance(optimize, list | tuple) and optimize and optimize[0] == "einsum_path":
        return _in_pairs([tuple(step) for step in optimize[1:]])
    probes = [np.broadcast_to(np.zeros(()), tuple(lengths[letter] for letter in letters)) for letters in inputs]
    path = np.einsum_path(f"{','.join(inputs)}->{output}", *probes, optimize="greedy")[0]
    return _in_pairs(path[1:])


def _in_pairs(path: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """A step of more than two terms as several steps of two."""
    pairs: list[tuple[int, ...]] = []
    for step in path:
        positions = sorted(step)
        pairs.append(tuple(positions[:2]))
        removed = positions[:2]
        for position in positions[2:]:
            pairs.append((position - len(removed), LAST))
            removed.append(position)
    return pairs


def _summed(term: Term, wanted: set[str]) -> Term:
    """Sum over the axes of a term that neither another term nor the output has, in its own dtype: small integers too."""
    array, letters = term
    lone = tuple(place for place, letter in enumerate(letters) if letter not in wanted)
    if not lone:
        return term
    return sum_(array, axis=lone, dtype=array.dtype), "".join(letter for letter in letters if letter in wanted)


def _product(a: Term, b: Term, wanted: set[str], lengths: dict[str, int]) -> Term:
    """Two terms multiplied, and summed over what neither the output nor another term has."""
    (x, of_x), (y, of_y) = _summed(a, wanted | set(b[1])), _summed(b, wanted | set(a[1]))
    shared = [letter for letter in of_x if letter in of_y]
    stack = [letter for letter in shared if letter in wanted]
    # A length of one against a longer one is stretched; inside a contraction it has to be, by hand.
    contracted = [letter for letter in shared if letter not in wanted]
    free_x = [letter for letter in of_x if letter not in shared]
    free_y = [letter for letter in of_y if letter not in shared]
    if not contracted:
        letters = "".join([*stack, *free_x, *free_y])
        return np.multiply(_spread(x, of_x, letters), _spread(y, of_y, letters)), letters
    x = _stretched(x, of_x, contracted, lengths)
    y = _stretched(y, of_y, contracted, lengths)
    length = number_of(lengths[letter] for letter in contracted)
    left = _ordered(x, of_x, [*stack, *free_x, *contracted])
    right = _ordered(y, of_y, [*stack, *contracted, *free_y])
    of_left, of_right = np.shape(left), np.shape(right)
    depth, wide, deep = len(stack), len(free_x), len(contracted)
    rows, columns = of_left[depth : depth + wide], of_right[depth + deep :]
    left = reshape(left, (*of_left[:depth], number_of(rows), length))
    right = reshape(right, (*of_right[:depth], length, number_of(columns)))
    product = matmul(left, right)
    return reshape(product, (*np.shape(product)[:depth], *rows, *columns)), "".join([*stack, *free_x, *free_y])


def _ordered(x: Any, letters: str, order: Sequence[str]) -> Any:
    return transpose(x, tuple(letters.index(letter) for letter in order))


def _spread(x: Any, letters: str, order: str) -> Any:
    """Axes in an order, with a length of one for those it lacks."""
    own = [letter for letter in order if letter in letters]
    lengths = dict(zip(letters, np.shape(x), strict=True))
    return reshape(_ordered(x, letters, own), tuple(lengths.get(letter, 1) for letter in order))


def _stretched(x: Any, letters: str, contracted: Sequence[str], lengths: dict[str, int]) -> Any:
    return broadcast_to(
        x,
        tuple(lengths[letter] if letter in contracted else n for letter, n in zip(letters, np.shape(x), strict=True)),
    )


def _finished(term: Term, output: str) -> Any:
    array, letters = _summed(term, set(output))
    return _ordered(array, letters, output)


@implements(np.einsum_path)
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    """NumPy's path for plain arrays of these shapes: the order depends on shapes alone."""
    plain: Any = [_without_values(operand) for operand in operands]
    if einsum_call:
        raise TracingError("numpy.einsum_path(…, einsum_call=True) is NumPy's own; leave einsum_call out")
    return np.einsum_path(*plain, optimize=optimize)


def _without_values(operand: Any) -> Any:
    return np.broadcast_to(0.0, as_operand(operand).shape) if isinstance(operand, TracedValue) else operand
