// What is counted, the number of threads that are allowed, and the caller alone.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int64_t word;
typedef void (*block_function)(void *context, word block);

#define NOTHROW __attribute__((nothrow))
#define ALIGNED __attribute__((aligned(64))) // a cache line of its own

enum { SHARED, ALONE, JOINED, THREADS, HELPED, KINDS }; // as `Counts` in library.py has them

static word counts[KINDS] ALIGNED;
static word limit = 1;

static inline NOTHROW void count(int kind, word more)
{
    __atomic_fetch_add(&counts[kind], more, __ATOMIC_RELAXED);
}

NOTHROW word *pool_counts(void)
{
    return counts;
}

NOTHROW void pool_set_limit(word allowed)
{
    __atomic_store_n(&limit, allowed, __ATOMIC_RELAXED);
}

static NOTHROW void do_alone(block_function function, void *context, word blocks)
{
    count(ALONE, 1);
    for (word block = 0; block < blocks; block++)
        function(context, block);
}
