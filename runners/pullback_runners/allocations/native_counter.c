/* The native layer: malloc and its kin counted while a window is open. Loaded with LD_PRELOAD, glibc only.
 *
 * Sees the whole process: C, C++, Fortran, code compiled at run time, all threads. Requested bytes are what was asked for;
 * live bytes, from which the peak comes, are usable sizes, since a free does not say what was asked for. A block from before
 * the window that is freed in it makes live negative: the peak is above the window's start, as the layer above says.
 * glibc's own names (__libc_malloc) are called, so nothing has to be looked up while the first malloc is running.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static atomic_int counting;
static _Atomic int64_t allocations, requested, live, peak;

static void *count(void *block, size_t bytes)
{
    if (!block || !atomic_load_explicit(&counting, memory_order_relaxed))
        return block;
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&requested, (int64_t)bytes, memory_order_relaxed);
    int64_t usable = (int64_t)malloc_usable_size(block);
    int64_t now = atomic_fetch_add_explicit(&live, usable, memory_order_relaxed) + usable;
    int64_t highest = atomic_load_explicit(&peak, memory_order_relaxed);
    while (now > highest && !atomic_compare_exchange_weak(&peak, &highest, now))
        ;
    return block;
}

static void forget(void *block)
{
    if (block && atomic_load_explicit(&counting, memory_order_relaxed))
        atomic_fetch_sub_explicit(&live, (int64_t)malloc_usable_size(block), memory_order_relaxed);
}

void *malloc(size_t bytes) { return count(__libc_malloc(bytes), bytes); }
void *calloc(size_t n, size_t each) { return count(__libc_calloc(n, each), n * each); }
void *memalign(size_t alignment, size_t bytes) { return count(__libc_memalign(alignment, bytes), bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

void free(void *block)
{
    forget(block);
    __libc_free(block);
}

/* One request of the new size, whether the block moves or not. */
void *realloc(void *old, size_t bytes)
{
    size_t before = old ? malloc_usable_size(old) : 0;
    void *block = __libc_realloc(old, bytes);
    if ((block || bytes == 0) && atomic_load_explicit(&counting, memory_order_relaxed))
        atomic_fetch_sub_explicit(&live, (int64_t)before, memory_order_relaxed);
    return count(block, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    if (alignment % sizeof(void *) || alignment & (alignment - 1) || !alignment)
        return EINVAL;
    void *block = memalign(alignment, bytes);
    if (!block)
        return ENOMEM;
    *out = block;
    return 0;
}

void pullback_native_begin(void)
{
    atomic_store(&allocations, 0);
    atomic_store(&requested, 0);
    atomic_store(&live, 0);
    atomic_store(&peak, 0);
    atomic_store(&counting, 1);
}

/* Closes the window and writes allocations, requested bytes and peak bytes. */
void pullback_native_end(int64_t counts[3])
{
    atomic_store(&counting, 0);
    counts[0] = atomic_load(&allocations);
    counts[1] = atomic_load(&requested);
    counts[2] = atomic_load(&peak);
}
