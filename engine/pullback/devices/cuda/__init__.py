"""Arrays on a device: PyTorch gives memory, streams and libraries, the rules and the tape are ours.

    values    the device array, and how arrays get there and back
    rows      what evaluates each primitive on tensors
    eager     the lowest trace, which evaluates primitives as they are applied

Nothing here is imported before an array is put on a device: loading PyTorch takes a second.
"""
