"""Native kernels of any size cut into blocks, of few elements each, as only large ones are otherwise."""

from pullback.backends.native.kernels import epilogue, row_blocks, shared_nests, thread_parts
from pullback.backends.native.threads import sharing


def cut_everything(change=setattr):
    """Change what decides how kernels are cut; objects on disk do not know of it and must not be read or kept."""
    for module, name, value in (
        (sharing, "SHARED_FROM_NS", 1.0),
        (epilogue, "SHARED_FROM_NS", 1.0),
        (row_blocks, "SHARED_FROM_NS", 1.0),
        (row_blocks, "LEAST_ROWS", 1),
        (sharing, "LEAST_BLOCK_NS", 5.0),
        (shared_nests, "LINE", 4),
        (shared_nests, "STRETCH", 4),
        (thread_parts, "_COLUMNS_PER_COPY", 8),
    ):
        change(module, name, value)
