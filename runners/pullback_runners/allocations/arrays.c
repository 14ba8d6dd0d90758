// The functions of NumPy's allocation handler that count; arrays.py says when they are called. What is loaded is arrays.ll, which
// `python -m tools.ir` makes of this file.

#include <stddef.h>
#include <stdint.h>

typedef struct { // `_Counters` in arrays.py
    int64_t allocations;
    int64_t requested;
    int64_t live;
    int64_t peak;
} counters;

void *malloc(size_t);
void *calloc(size_t, size_t);
void *realloc(void *, size_t);
void free(void *);

static void count(counters *counters, size_t bytes)
{
    __atomic_fetch_add(&counters->allocations, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counters->requested, bytes, __ATOMIC_RELAXED);
    int64_t live = __atomic_add_fetch(&counters->live, bytes, __ATOMIC_RELAXED);
    __atomic_fetch_max(&counters->peak, live, __ATOMIC_RELAXED);
}

void *array_malloc(counters *counters, size_t bytes)
{
    count(counters, bytes);
    return malloc(bytes);
}

void *array_calloc(counters *counters, size_t elements, size_t each)
{
    count(counters, elements * each);
    return calloc(elements, each);
}

// A realloc does not say the old size: it counts as a request of the new size and leaves the old one live.
void *array_realloc(counters *counters, void *old, size_t bytes)
{
    count(counters, bytes);
    return realloc(old, bytes);
}

void array_free(counters *counters, void *block, size_t bytes)
{
    __atomic_fetch_sub(&counters->live, bytes, __ATOMIC_RELAXED);
    free(block);
}
