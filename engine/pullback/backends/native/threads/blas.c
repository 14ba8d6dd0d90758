// BLAS on one thread while a program calls it; blas.py says what it does. What is loaded is blas.ll, which `python -m tools.ir` makes of
// this file.
//
// The first to enter saves the setting, the last to leave restores it. Another thread may enter between the decrement of
// `inside` by the last one and its restoring. It then saves 1, which it will not restore, and cannot change the number that is
// being restored: `leave` loads that before it decrements, and `enter` stores after an increment that saw this decrement
// (acq_rel). The calls of this thread may then run on several threads.

#include <stddef.h>
#include <stdint.h>

#define NOTHROW __attribute__((nothrow))

static int (*blas_get)(void);
static void (*blas_set)(int);
static int64_t blas_inside;
static int blas_before;

NOTHROW void blas_bind(int (*get)(void), void (*set)(int))
{
    __atomic_store_n(&blas_set, set, __ATOMIC_RELAXED);
    __atomic_store_n(&blas_get, get, __ATOMIC_RELEASE);
}

NOTHROW void pullback_blas_enter(void)
{
    int (*get)(void) = __atomic_load_n(&blas_get, __ATOMIC_ACQUIRE);
    if (!get || __atomic_fetch_add(&blas_inside, 1, __ATOMIC_ACQ_REL))
        return;
    int now = get();
    __atomic_store_n(&blas_before, now, __ATOMIC_RELEASE);
    if (now > 1)
        __atomic_load_n(&blas_set, __ATOMIC_RELAXED)(1);
}

NOTHROW void pullback_blas_leave(void)
{
    if (!__atomic_load_n(&blas_get, __ATOMIC_ACQUIRE))
        return;
    int before = __atomic_load_n(&blas_before, __ATOMIC_ACQUIRE);
    if (__atomic_fetch_sub(&blas_inside, 1, __ATOMIC_ACQ_REL) == 1 && before > 1)
        __atomic_load_n(&blas_set, __ATOMIC_RELAXED)(before);
}

// In a child nobody is inside, whoever was in the parent.
NOTHROW void blas_forget(void)
{
    if (__atomic_load_n(&blas_inside, __ATOMIC_ACQUIRE) <= 0)
        return;
    __atomic_store_n(&blas_inside, 1, __ATOMIC_RELEASE);
    pullback_blas_leave();
}
