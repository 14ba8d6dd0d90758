"""Reports with a few things changed, which reach deeper than documents made of nothing."""

from hypothesis import strategies as st

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def _places(value, at=()):
    yield at
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _places(item, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, (*at, index))


@st.composite
def mutated(draw, make):
    document = make()
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from([place for place in _places(document) if place]))
        target = document
        for step in place[:-1]:
            target = target[step]
        if draw(st.booleans()):
            target[place[-1]] = draw(json_values)
        else:
            del target[place[-1]]
    return document
