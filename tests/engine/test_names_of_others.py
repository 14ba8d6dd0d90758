"""Names that users of JAX, autograd and torch try first lead to ours."""

import numpy as np
import pytest

import pullback as pb


@pytest.mark.parametrize("name", sorted(pb._ELSEWHERE))
def test_a_name_of_another_engine_says_what_does_the_same(name):
    with pytest.raises(AttributeError, match=f"^module 'pullback' has no attribute '{name}'; use pb\\."):
        getattr(pb, name)
    ours = [word.partition("(")[0].strip(",") for word in pb._ELSEWHERE[name].split() if word.startswith("pb.")]
    assert ours
    for path in ours:
        found = pb
        for part in path.split("[")[0].split(".")[1:]:
            found = getattr(found, part)


def test_other_names_get_no_advice():
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'$"):
        pb.nonsense  # noqa: B018


def test_trees_are_mapped_leaf_by_leaf():
    tree = {"a": [1.0, (2.0, None)], "b": np.ones(2)}
    doubled = pb.tree_map(lambda x, y: x + y, tree, tree)
    assert doubled["a"] == [2.0, (4.0, None)]
    assert np.array_equal(doubled["b"], [2.0, 2.0])
    for other, difference in (
        ({"a": 1.0}, r"it has the leaf tree\['a'\] where the first has the leaf tree\['a'\]\[0\]"),
        ({"a": tree["a"]}, r"it has no leaf where the first has the leaf tree\['b'\]"),
        ({"b": tree["b"], "a": tree["a"]}, r"it has the leaf tree\['b'\] where .*; give both the same parts .* order"),
        ({"a": (1.0, (2.0, None)), "b": 1.0}, r"it is \(<class 'dict'>, .*tuple"),
    ):
        with pytest.raises(ValueError, match=f"tree 2 is not nested like the first: {difference}"):
            pb.tree_map(lambda x, y: x, tree, other)


class Pair:
    def __init__(self, left, right, label):
        self.left, self.right, self.label = left, right, label


pb.register_pytree_node(Pair, lambda p: ((p.left, p.right), p.label), lambda label, parts: Pair(*parts, label))


def test_registered_types_are_nodes_everywhere():
    pair = Pair(np.array([1.0, 2.0]), 3.0, "p")
    for tier in pb.TIERS:
        with pb.tier(tier):
            gradient = pb.grad(lambda p: np.sum(p.left**2) * p.right)(pair)
        assert gradient.label == "p"
        assert np.allclose(gradient.left, [6.0, 12.0])
        assert np.isclose(gradient.right, 5.0)
    assert pb.tree_map(lambda x: -x, pair).right == -3.0
