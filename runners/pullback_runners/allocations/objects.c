// The allocators that count what CPython's are asked for; objects.py says when they are called. What is loaded is objects.ll, which
// `python -m tools.ir` makes of this file.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLOT_BITS = 22 }; // as objects.py has memory for

typedef struct {
    uint64_t address; // 0 never used, 1 freed
    int64_t bytes;
} slot;

typedef struct { // `_State` in objects.py
    int64_t allocations;
    int64_t requested;
    int64_t live;
    int64_t peak;
    int64_t counting;
    int64_t lock;
    slot *table;
    int64_t used;
    int64_t overflow;
} state;

typedef struct { // `_Hook` in objects.py: what was there before, and the state
    void *context;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *);
    state *state;
} hook;

void *PyObject_CallNoArgs(void *);

// Call a Python object and count nothing but what it does.
void *counted_call(state *state, void *callable)
{
    __atomic_store_n(&state->counting, 1, __ATOMIC_SEQ_CST);
    void *result = PyObject_CallNoArgs(callable);
    __atomic_store_n(&state->counting, 0, __ATOMIC_SEQ_CST);
    return result;
}

static bool is_counting(const state *state)
{
    return __atomic_load_n(&state->counting, __ATOMIC_RELAXED);
}

// The raw domain may be called without the interpreter's lock.
static void lock(state *state)
{
    int64_t free = 0;
    while (!__atomic_compare_exchange_n(&state->lock, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        free = 0;
}

static void unlock(state *state)
{
    __atomic_store_n(&state->lock, 0, __ATOMIC_RELEASE);
}

// The place of an address in the table, or the free one where it would be.
static __attribute__((noinline)) uint64_t place_of(const slot *table, uint64_t address)
{
    uint64_t place = address * 0x9e3779b97f4a7c15 >> (64 - SLOT_BITS); // 2**64 / golden ratio: Fibonacci hashing
    while (table[place].address && table[place].address != address)
        place = (place + 1) & ((1 << SLOT_BITS) - 1);
    return place;
}

// Note a block and count it, unless it is noted already (then the request came through another domain).
static __attribute__((noinline)) void note(state *state, void *block, int64_t bytes, int64_t requests)
{
    if (!block)
        return;
    lock(state);
    if (state->used > 3 << (SLOT_BITS - 2)) {
        state->overflow = 1;
    } else {
        slot *slot = &state->table[place_of(state->table, (uint64_t)block)];
        if (!slot->address) {
            slot->address = (uint64_t)block;
            slot->bytes = bytes;
            state->used++;
            state->allocations += requests;
            state->requested += bytes * requests;
            state->live += bytes;
            if (state->live > state->peak)
                state->peak = state->live;
        }
    }
    unlock(state);
}

// Forget a block; its bytes, or -1 if it was not asked for while counting.
static __attribute__((noinline)) int64_t forget(state *state, void *block)
{
    int64_t bytes = -1;
    if (!block)
        return bytes;
    lock(state);
    slot *slot = &state->table[place_of(state->table, (uint64_t)block)];
    if (slot->address) {
        slot->address = 1;
        bytes = slot->bytes;
        state->live -= bytes;
    }
    unlock(state);
    return bytes;
}

void *object_malloc(hook *hook, size_t bytes)
{
    void *block = hook->malloc(hook->context, bytes);
    if (is_counting(hook->state))
        note(hook->state, block, bytes, 1);
    return block;
}

void *object_calloc(hook *hook, size_t elements, size_t each)
{
    void *block = hook->calloc(hook->context, elements, each);
    if (is_counting(hook->state))
        note(hook->state, block, elements * each, 1);
    return block;
}

// A realloc is one request of the new size, whether the block moves or not.
void *object_realloc(hook *hook, void *old, size_t bytes)
{
    if (!is_counting(hook->state))
        return hook->realloc(hook->context, old, bytes);
    int64_t old_bytes = forget(hook->state, old);
    void *block = hook->realloc(hook->context, old, bytes);
    if (block)
        note(hook->state, block, bytes, 1);
    else if (old_bytes >= 0)
        note(hook->state, old, old_bytes, 0);
    return block;
}

void object_free(hook *hook, void *block)
{
    if (is_counting(hook->state))
        forget(hook->state, block);
    hook->free(hook->context, block);
}
