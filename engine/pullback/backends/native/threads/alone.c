// The functions of pool.c where there are no threads to share with: the caller does everything.

#include "counts.h"

NOTHROW void pullback_parallel_for(block_function function, void *context, word blocks)
{
    do_alone(function, context, blocks);
}
