"""Numbers that lie a few elements apart, or backwards, as lanes: whole vectors are loaded and their lanes chosen.

Lane by lane it takes two instructions a number; this way as many a vector as the stride says, and as many loads.
"""

from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.native.kernels.register_transpose import shuffled

_MOST_APART = 4


def load_strided(lanes: Lanes, pointer: str, offset: int, stride: int, active: int) -> str:
    """The first `active` of the numbers `stride` elements apart from an offset on, 0 in other lanes; reads none beyond."""
    if lanes.width == 1 or active == 1 or not (stride == -1 or 1 < stride <= _MOST_APART):
        return lanes.load(pointer, offset, stride=stride, active=active)
    if stride == -1:
        loaded = lanes.load(pointer, offset - (active - 1), active=active)
        last = 2 * lanes.width - 1
        order = [active - 1 - lane if lane < active else last for lane in range(lanes.width)]
        return shuffled(lanes, loaded, lanes.constant(0), order)
    chosen, reach = lanes.constant(0), (active - 1) * stride + 1
    for start in range(0, reach, lanes.width):
        row = lanes.load(pointer, offset + start, active=min(lanes.width, reach - start))
        places = [lane * stride - start for lane in range(lanes.width)]
        here = [lane < active and 0 <= place < lanes.width for lane, place in enumerate(places)]
        order = [
            lanes.width + place if own else lane for lane, (place, own) in enumerate(zip(places, here, strict=True))
        ]
        chosen = shuffled(lanes, chosen, row, order)
    return chosen
