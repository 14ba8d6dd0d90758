// The pool of threads; pool.py says what it does. What is loaded is pool.ll, which `python -m tools.ir` makes of this file.

#include "counts.h"

// What pool.py defines before the IR is loaded.
extern const int set_mask;    // SIG_SETMASK
extern const int clock;       // CLOCK_MONOTONIC
extern const int looks;       // at the state between two at the clock
extern const int spin_ns;     // before a thread sleeps
NOTHROW void relax(void);     // tells the processor that a loop waits for another one

struct time {
    word seconds;
    word nanoseconds;
};

NOTHROW int getpid(void);
NOTHROW int clock_gettime(int, struct time *);
NOTHROW int sigfillset(void *);
NOTHROW int pthread_sigmask(int, const void *, void *);
NOTHROW int pthread_create(word *, const void *, void *(*)(void *), void *);
NOTHROW int pthread_detach(word);
NOTHROW int pthread_mutex_init(void *, const void *);
NOTHROW int pthread_mutex_lock(void *);
NOTHROW int pthread_mutex_unlock(void *);
NOTHROW int pthread_cond_init(void *, const void *);
NOTHROW int pthread_cond_wait(void *, void *);
NOTHROW int pthread_cond_signal(void *);

// One number: of the call (32 bits), whether threads may join (1), how many more may (15), how many have (16).
// Who has `busy` writes the call, then opens the state; a thread joins by exchanging the state for one with itself in it, so
// what it then reads belongs to that call until it has left. The caller closes the state and waits for those who have joined.
static word state ALIGNED;
static word given ALIGNED; // blocks
static word from_behind ALIGNED; // those of them that others than the caller took
static block_function function ALIGNED;
static void *context;
static word blocks;
static word busy ALIGNED;
static word sleepers;
static word waiting;
static word threads;
static word owner;
static int (*elsewhere)(void);
static char mutex[128] ALIGNED;
static char work[128] ALIGNED;
static char done[128] ALIGNED;

#define OPEN ((word)1 << 31)
#define ONE_SEAT ((word)1 << 16)

static inline word call_of(word state)
{
    return (word)((uint64_t)state >> 32);
}

static inline word seats_of(word state)
{
    return state >> 16 & 0x7fff;
}

static inline word joined_of(word state)
{
    return state & 0xffff;
}

// A limit that another library is under now: a function without arguments that gives an int.
NOTHROW void pool_set_elsewhere(int (*ask)(void))
{
    __atomic_store_n(&elsewhere, ask, __ATOMIC_RELAXED);
}

NOTHROW void pool_forget(void)
{
    __atomic_store_n(&owner, 0, __ATOMIC_RELEASE);
}

static inline word least(word a, word b)
{
    return a < b ? a : b;
}

static inline NOTHROW word allowed(void)
{
    word own = __atomic_load_n(&limit, __ATOMIC_RELAXED);
    int (*ask)(void) = __atomic_load_n(&elsewhere, __ATOMIC_RELAXED);
    return ask ? least(own, ask()) : own;
}

static NOTHROW word nanoseconds(void)
{
    struct time time;
    clock_gettime(clock, &time);
    return time.seconds * 1000000000 + time.nanoseconds;
}

// True if a call other than the last is open.
static inline bool call_has_come(word last)
{
    word now = __atomic_load_n(&state, __ATOMIC_SEQ_CST);
    return call_of(now) != last && now & OPEN;
}

// True if nobody has joined any more.
static inline bool all_have_left(void)
{
    return !joined_of(__atomic_load_n(&state, __ATOMIC_SEQ_CST));
}

// Looks at the state until a call other than the last is open, or, for a last one below zero, nobody has joined any more. False
// where neither happened for a while.
static NOTHROW bool look(word last)
{
    word since = 0;
    for (;;) {
        for (int k = 0; k < looks; k++) {
            if (last < 0 ? all_have_left() : call_has_come(last))
                return true;
            relax();
        }
        word now = nanoseconds();
        if (!since)
            since = now;
        if (now - since >= spin_ns)
            return false;
    }
}

// Takes blocks until there are none left, and says how many. The caller takes them from the front and the others from behind: in
// the next kernel each finds what it wrote in its own caches. Between processors that share none, a line takes 250 ns to come over.
static NOTHROW word take(bool is_caller)
{
    block_function function_ = function;
    void *context_ = context;
    word blocks_ = blocks, taken = 0;
    for (;;) {
        if (__atomic_fetch_add(&given, 1, __ATOMIC_RELAXED) >= blocks_)
            return taken;
        word block = is_caller ? taken : blocks_ - 1 - __atomic_fetch_add(&from_behind, 1, __ATOMIC_RELAXED);
        function_(context_, block);
        taken++;
    }
}

// Sleeps until there may be a call. Woken too late for one, a thread looks for the next: it is the second of a program, perhaps.
static NOTHROW void sleep_after(word last)
{
    pthread_mutex_lock(mutex);
    __atomic_fetch_add(&sleepers, 1, __ATOMIC_SEQ_CST);
    // who opened a call before we counted as a sleeper wakes nobody: we have to see it
    if (!call_has_come(last))
        pthread_cond_wait(work, mutex);
    __atomic_fetch_sub(&sleepers, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(mutex);
}

static NOTHROW void leave(void)
{
    word before = __atomic_fetch_sub(&state, 1, __ATOMIC_SEQ_CST);
    if ((before & (OPEN | 0xffff)) != 1) // it is open, or others are still there
        return;
    if (!__atomic_load_n(&waiting, __ATOMIC_SEQ_CST))
        return;
    pthread_mutex_lock(mutex);
    pthread_cond_signal(done);
    pthread_mutex_unlock(mutex);
}

static NOTHROW void *worker(void *unused)
{
    (void)unused;
    word last = 0;
    for (;;) {
        if (!look(last)) {
            sleep_after(last);
            continue;
        }
        word now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
        if (!seats_of(now)) {
            last = call_of(now);
            continue;
        }
        word expected = now;
        if (!(now & OPEN) || !__atomic_compare_exchange_n(&state, &expected, now - ONE_SEAT + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            continue;
        count(JOINED, 1);
        count(HELPED, take(false));
        leave();
        last = call_of(now);
    }
}

// Starts threads until there are enough; fewer where the system gives no more. By who has `busy`.
static NOTHROW void start(word enough)
{
    char every[128] __attribute__((aligned(16))), before[128] __attribute__((aligned(16)));
    if (threads >= enough)
        return;
    sigfillset(every);
    pthread_sigmask(set_mask, every, before);
    while (threads < enough) {
        word thread;
        if (pthread_create(&thread, NULL, worker, NULL))
            break;
        pthread_detach(thread);
        threads++;
        count(THREADS, 1);
    }
    pthread_sigmask(set_mask, before, NULL);
}

// Whether the pool is this process's, made so where it was inherited. False while another thread makes it so.
static NOTHROW bool adopt(void)
{
    word pid = getpid();
    word found = __atomic_load_n(&owner, __ATOMIC_ACQUIRE);
    if (found == pid)
        return true;
    if (found == -pid || !__atomic_compare_exchange_n(&owner, &found, -pid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return false;
    pthread_mutex_init(mutex, NULL);
    pthread_cond_init(work, NULL);
    pthread_cond_init(done, NULL);
    threads = sleepers = waiting = state = busy = 0;
    __atomic_store_n(&owner, pid, __ATOMIC_RELEASE);
    return true;
}

static NOTHROW void wake(word count)
{
    pthread_mutex_lock(mutex);
    for (word k = 0; k < count; k++)
        pthread_cond_signal(work);
    pthread_mutex_unlock(mutex);
}

static NOTHROW void wait_for_all(void)
{
    if (look(-1))
        return;
    pthread_mutex_lock(mutex);
    __atomic_store_n(&waiting, 1, __ATOMIC_SEQ_CST);
    while (!all_have_left())
        pthread_cond_wait(done, mutex);
    __atomic_store_n(&waiting, 0, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(mutex);
}

NOTHROW void pullback_parallel_for(block_function function_, void *context_, word blocks_)
{
    word wanted = least(allowed(), blocks_), nobody = 0;
    if (wanted < 2 || !adopt() || !__atomic_compare_exchange_n(&busy, &nobody, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        do_alone(function_, context_, blocks_);
        return;
    }
    word others = wanted - 1;
    start(others);
    function = function_;
    context = context_;
    blocks = blocks_;
    __atomic_store_n(&given, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&from_behind, 0, __ATOMIC_RELAXED);
    word call = call_of(__atomic_load_n(&state, __ATOMIC_RELAXED)) + 1;
    __atomic_store_n(&state, call << 32 | OPEN | others << 16, __ATOMIC_SEQ_CST);
    count(SHARED, 1);
    word awake = threads - __atomic_load_n(&sleepers, __ATOMIC_SEQ_CST);
    if (others > awake)
        wake(others - awake);
    take(true);
    word before = __atomic_fetch_and(&state, ~OPEN, __ATOMIC_SEQ_CST); // closed
    if (joined_of(before))
        wait_for_all();
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}
