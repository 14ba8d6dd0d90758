// malloc and its kin, counted while a window is open; native_library.py says how they are loaded. What it links is native_library.ll,
// which `python -m tools.ir` makes of this file.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The linker (shared_objects.py) takes code and .data alone. Of code nothing may be unwound, and functions of glibc are called
// through addresses in .data, which clang must take for something that may change.
#define NOTHROW __attribute__((nothrow))
#define DATA __attribute__((section(".data"), visibility("hidden")))

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void *__libc_valloc(size_t);
void *__libc_pvalloc(size_t);
void __libc_free(void *);
size_t malloc_usable_size(void *);

DATA void *(*to_malloc)(size_t) = __libc_malloc;
DATA void *(*to_calloc)(size_t, size_t) = __libc_calloc;
DATA void *(*to_realloc)(void *, size_t) = __libc_realloc;
DATA void *(*to_memalign)(size_t, size_t) = __libc_memalign;
DATA void *(*to_valloc)(size_t) = __libc_valloc;
DATA void *(*to_pvalloc)(size_t) = __libc_pvalloc;
DATA void (*to_free)(void *) = __libc_free;
DATA size_t (*usable_size)(void *) = malloc_usable_size;

DATA int64_t counting = 0;
DATA int64_t allocations = 0;
DATA int64_t requested = 0;
DATA int64_t live = 0;
DATA int64_t peak = 0;

enum { EINVAL = 22, ENOMEM = 12 }; // of Linux

static inline NOTHROW bool is_counting(void)
{
    return __atomic_load_n(&counting, __ATOMIC_RELAXED);
}

static NOTHROW void *count(void *block, size_t bytes)
{
    if (block && is_counting()) {
        __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&requested, bytes, __ATOMIC_RELAXED);
        int64_t now = __atomic_add_fetch(&live, usable_size(block), __ATOMIC_RELAXED);
        __atomic_fetch_max(&peak, now, __ATOMIC_RELAXED);
    }
    return block;
}

NOTHROW void *malloc(size_t bytes)
{
    return count(to_malloc(bytes), bytes);
}

NOTHROW void *calloc(size_t elements, size_t each)
{
    return count(to_calloc(elements, each), elements * each);
}

NOTHROW void *memalign(size_t alignment, size_t bytes)
{
    return count(to_memalign(alignment, bytes), bytes);
}

NOTHROW void *aligned_alloc(size_t alignment, size_t bytes)
{
    return count(to_memalign(alignment, bytes), bytes);
}

NOTHROW void *valloc(size_t bytes)
{
    return count(to_valloc(bytes), bytes);
}

NOTHROW void *pvalloc(size_t bytes)
{
    return count(to_pvalloc(bytes), bytes);
}

NOTHROW int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    if (alignment < 8 || alignment & (alignment - 1))
        return EINVAL;
    void *block = count(to_memalign(alignment, bytes), bytes);
    if (!block)
        return ENOMEM;
    *out = block;
    return 0;
}

// One request of the new size, whether the block moves or not; nothing is asked for when the new size is 0.
NOTHROW void *realloc(void *old, size_t bytes)
{
    size_t before = old ? usable_size(old) : 0;
    void *block = to_realloc(old, bytes);
    if ((block || !bytes) && is_counting())
        __atomic_fetch_sub(&live, before, __ATOMIC_RELAXED);
    return count(block, bytes);
}

NOTHROW void free(void *block)
{
    if (!block)
        return;
    if (is_counting())
        __atomic_fetch_sub(&live, usable_size(block), __ATOMIC_RELAXED);
    to_free(block);
}

NOTHROW void pullback_native_begin(void)
{
    __atomic_store_n(&allocations, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&requested, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&live, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&peak, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&counting, 1, __ATOMIC_SEQ_CST);
}

// Closes the window and writes allocations, requested bytes and peak bytes.
NOTHROW void pullback_native_end(int64_t *counts)
{
    __atomic_store_n(&counting, 0, __ATOMIC_SEQ_CST);
    counts[0] = __atomic_load_n(&allocations, __ATOMIC_SEQ_CST);
    counts[1] = __atomic_load_n(&requested, __ATOMIC_SEQ_CST);
    counts[2] = __atomic_load_n(&peak, __ATOMIC_SEQ_CST);
}
