"""Arrays beside pages that cannot be touched: who reads or writes past them ends the process."""

import ctypes
import mmap

import numpy as np

PAGE = mmap.PAGESIZE

#: What memory holds that nobody has written yet: not a number in any format, and no small integer.
GARBAGE = 0xFF

_libc = ctypes.CDLL(None, use_errno=True)
_PROT_NONE = 0


def fenced(nbytes, *, at_end):
    """So many bytes of garbage that end where a closed page begins, or begin where one ends."""
    pages = -(-max(nbytes, 1) // PAGE)
    block = mmap.mmap(-1, (pages + 2) * PAGE)
    whole = np.frombuffer(block, np.uint8)
    for closed in (0, pages + 1):
        close_page(whole.ctypes.data + closed * PAGE)
    open_ = whole[PAGE : (pages + 1) * PAGE]
    open_[...] = GARBAGE
    return open_[open_.size - nbytes :] if at_end else open_[:nbytes]


def fenced_empty(shape, dtype, *, at_end):
    """An array in C order beside a closed page, full of garbage."""
    dtype = np.dtype(dtype)
    return fenced(int(np.prod(shape)) * dtype.itemsize, at_end=at_end).view(dtype).reshape(shape)


def fenced_copy(array, *, at_end):
    """A copy beside a closed page that lies as the array does: its strides, and all that is between its elements."""
    if array.size == 0:
        return array.copy()
    low, high = np.lib.array_utils.byte_bounds(array)
    first = array.__array_interface__["data"][0] - low
    block = fenced(high - low, at_end=at_end)
    copy = np.ndarray(array.shape, array.dtype, block, first, array.strides)
    copy[...] = array
    return copy


def close_page(address):
    """Let nobody touch the page that begins here."""
    if _libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(PAGE), _PROT_NONE):
        raise OSError(ctypes.get_errno(), "mprotect")
