"""The threads of this process: they take blocks of work from callers, and sleep between.

    pullback_parallel_for(function, context, blocks)    calls function(context, block) for every block, on several threads

The caller takes blocks like the others and never waits for a thread to arrive: on a machine that is busy with other things it
does all of them itself, as if there were no pool. While one caller has the pool, others do their blocks alone, and so does a
block that asks for more threads. After a fork the child starts threads of its own. The threads run no Python and take no
signals.

A thread that has found no more blocks looks for the next call for `SPIN_NS` before it sleeps: a program is a sequence of
kernels, some of which take no longer than it takes to wake a thread. To offer blocks to threads that look costs the caller
about a microsecond; to those that sleep, a system call for each.

It is written as LLVM IR because there is no compiler at run time, and because kernels call it without the interpreter.
"""

import platform
import signal
import time
from typing import Final

SPIN_NS: Final = 100_000
"""About what it takes to let a thread sleep and wake it again on a virtual machine; a few times that on the machine itself."""

_LOOKS: Final = 32
"""Looks at the state between two at the clock."""

#: Instructions that tell a processor that a loop waits for another one.
_PAUSES: Final = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
_PAUSES["AMD64"] = _PAUSES["x86_64"]
_PAUSES["arm64"] = _PAUSES["aarch64"]

ALONE: Final = """
define void @pullback_parallel_for(ptr %function, ptr %context, i64 %blocks) nounwind {
entry:
  call void @alone(ptr %function, ptr %context, i64 %blocks)
  ret void
}
"""

COMMON: Final = """
@counts = internal global [5 x i64] zeroinitializer, align 64
@limit = internal global i64 1

define ptr @pool_counts() nounwind {
  ret ptr @counts
}

define void @pool_set_limit(i64 %limit) nounwind {
  store atomic i64 %limit, ptr @limit monotonic, align 8
  ret void
}

define internal void @alone(ptr %function, ptr %context, i64 %blocks) nounwind {
entry:
  %counter = getelementptr i64, ptr @counts, i64 1
  %old = atomicrmw add ptr %counter, i64 1 monotonic
  %some = icmp sgt i64 %blocks, 0
  br i1 %some, label %turn, label %done
turn:
  %block = phi i64 [ 0, %entry ], [ %next, %turn ]
  call void %function(ptr %context, i64 %block)
  %next = add nsw i64 %block, 1
  %more = icmp slt i64 %next, %blocks
  br i1 %more, label %turn, label %done
done:
  ret void
}
"""

# The state is one number: of the call (32 bits), whether threads may join (1), how many more may (15), how many have (16).
# Who has @busy writes the call, then opens the state; a thread joins by exchanging the state for one with itself in it, so
# what it then reads belongs to that call until it has left. The caller closes the state and waits for those who have joined.
_SHARED: Final = """
@state = internal global i64 0, align 64
@next = internal global i64 0, align 64
@function = internal global ptr null, align 64
@context = internal global ptr null
@blocks = internal global i64 0
@busy = internal global i64 0, align 64
@sleepers = internal global i64 0
@waiting = internal global i64 0
@threads = internal global i64 0
@owner = internal global i64 0
@elsewhere = internal global ptr null
@mutex = internal global [128 x i8] zeroinitializer, align 64
@work = internal global [128 x i8] zeroinitializer, align 64
@done = internal global [128 x i8] zeroinitializer, align 64

declare i32 @getpid()
declare i32 @clock_gettime(i32, ptr)
declare i32 @sigfillset(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i64 @llvm.smin.i64(i64, i64)
{declare_pause}

; A limit that another library is under now: a function without arguments that gives an int.
define void @pool_set_elsewhere(ptr %function) nounwind {{
  store atomic ptr %function, ptr @elsewhere monotonic, align 8
  ret void
}}

define void @pool_forget() nounwind {{
  store atomic i64 0, ptr @owner release, align 8
  ret void
}}

define internal i64 @allowed() nounwind {{
entry:
  %own = load atomic i64, ptr @limit monotonic, align 8
  %ask = load atomic ptr, ptr @elsewhere monotonic, align 8
  %none = icmp eq ptr %ask, null
  br i1 %none, label %alone, label %both
alone:
  ret i64 %own
both:
  %theirs32 = call i32 %ask()
  %theirs = sext i32 %theirs32 to i64
  %least = call i64 @llvm.smin.i64(i64 %own, i64 %theirs)
  ret i64 %least
}}

define internal i64 @nanoseconds() nounwind {{
  %time = alloca [2 x i64]
  %e = call i32 @clock_gettime(i32 {clock}, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %all = add i64 %whole, %rest
  ret i64 %all
}}

; Looks at the state until a call other than the last is open, or nobody has joined any more: `wanted` says which.
; False where neither happened for a while.
define internal i1 @look(i64 %last, i1 %wanted) nounwind {{
entry:
  br label %again
again:
  %since = phi i64 [ 0, %entry ], [ %began, %clock ]
  br label %turn
turn:
  %looks = phi i64 [ 0, %again ], [ %more, %wait ]
  %found = call i1 @has_come(i64 %last, i1 %wanted)
  br i1 %found, label %yes, label %wait
wait:
  {pause}
  %more = add i64 %looks, 1
  %short = icmp slt i64 %more, {looks}
  br i1 %short, label %turn, label %clock
clock:
  %now = call i64 @nanoseconds()
  %first = icmp eq i64 %since, 0
  %began = select i1 %first, i64 %now, i64 %since
  %passed = sub i64 %now, %began
  %patient = icmp slt i64 %passed, {spin_ns}
  br i1 %patient, label %again, label %no
yes:
  ret i1 true
no:
  ret i1 false
}}

define internal i1 @has_come(i64 %last, i1 %wanted) nounwind alwaysinline {{
entry:
  %state = load atomic i64, ptr @state seq_cst, align 8
  br i1 %wanted, label %call, label %end
call:
  %number = lshr i64 %state, 32
  %other = icmp ne i64 %number, %last
  %bit = and i64 %state, 2147483648
  %open = icmp ne i64 %bit, 0
  %both = and i1 %other, %open
  ret i1 %both
end:
  %joined = and i64 %state, 65535
  %nobody = icmp eq i64 %joined, 0
  ret i1 %nobody
}}

; Takes blocks until there are none left, and says how many.
define internal i64 @take() nounwind {{
entry:
  %function = load ptr, ptr @function
  %context = load ptr, ptr @context
  %blocks = load i64, ptr @blocks
  br label %turn
turn:
  %taken = phi i64 [ 0, %entry ], [ %more, %run ]
  %block = atomicrmw add ptr @next, i64 1 monotonic
  %some = icmp slt i64 %block, %blocks
  br i1 %some, label %run, label %end
run:
  call void %function(ptr %context, i64 %block)
  %more = add i64 %taken, 1
  br label %turn
end:
  ret i64 %taken
}}

define internal ptr @worker(ptr %unused) nounwind {{
entry:
  br label %seek
seek:
  %last = phi i64 [ 0, %entry ], [ %last, %woken ], [ %last, %join ], [ %number, %full ], [ %number, %left ]
  %found = call i1 @look(i64 %last, i1 true)
  br i1 %found, label %ask, label %tired
tired:
  %e1 = call i32 @pthread_mutex_lock(ptr @mutex)
  %s1 = atomicrmw add ptr @sleepers, i64 1 seq_cst
  ; whoever opened a call before we counted as a sleeper wakes nobody: we have to see it
  %come = call i1 @has_come(i64 %last, i1 true)
  br i1 %come, label %woken, label %sleep
sleep: ; woken too late for a call, a thread looks for the next: it is the second of a program, perhaps
  %e2 = call i32 @pthread_cond_wait(ptr @work, ptr @mutex)
  br label %woken
woken:
  %s2 = atomicrmw sub ptr @sleepers, i64 1 seq_cst
  %e3 = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %seek
ask:
  %state = load atomic i64, ptr @state acquire, align 8
  %number = lshr i64 %state, 32
  %high = lshr i64 %state, 16
  %seats = and i64 %high, 32767
  %none = icmp eq i64 %seats, 0
  br i1 %none, label %full, label %join
full:
  br label %seek
join:
  %bit = and i64 %state, 2147483648
  %open = icmp ne i64 %bit, 0
  %fewer = sub i64 %state, 65535 ; one seat less, one more who has joined
  %expected = select i1 %open, i64 %state, i64 -1
  %pair = cmpxchg ptr @state, i64 %expected, i64 %fewer seq_cst monotonic
  %joined = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %joined, label %begin, label %seek
begin:
  %joins = getelementptr i64, ptr @counts, i64 2
  %c1 = atomicrmw add ptr %joins, i64 1 monotonic
  %taken = call i64 @take()
  %helped = getelementptr i64, ptr @counts, i64 4
  %c2 = atomicrmw add ptr %helped, i64 %taken monotonic
  %before = atomicrmw sub ptr @state, i64 1 seq_cst
  %low = and i64 %before, 2147549183 ; whether it is open, and who has joined
  %last_one = icmp eq i64 %low, 1
  br i1 %last_one, label %tell, label %left
tell:
  %waiting = load atomic i64, ptr @waiting seq_cst, align 8
  %awaited = icmp ne i64 %waiting, 0
  br i1 %awaited, label %signal, label %left
signal:
  %e4 = call i32 @pthread_mutex_lock(ptr @mutex)
  %e5 = call i32 @pthread_cond_signal(ptr @done)
  %e6 = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %left
left:
  br label %seek
}}

; Starts threads until there are enough; fewer where the system gives no more. By who has @busy.
define internal void @start(i64 %enough) nounwind {{
entry:
  %thread = alloca i64
  %every = alloca [128 x i8], align 16
  %before = alloca [128 x i8], align 16
  %there = load i64, ptr @threads
  %fewer = icmp slt i64 %there, %enough
  br i1 %fewer, label %quiet, label %end
quiet:
  %e1 = call i32 @sigfillset(ptr %every)
  %e2 = call i32 @pthread_sigmask(i32 {set_mask}, ptr %every, ptr %before)
  br label %turn
turn:
  %count = phi i64 [ %there, %quiet ], [ %now, %started ]
  %failed32 = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr null)
  %failed = icmp ne i32 %failed32, 0
  br i1 %failed, label %loud, label %started
started:
  %id = load i64, ptr %thread
  %e3 = call i32 @pthread_detach(i64 %id)
  %now = add i64 %count, 1
  store i64 %now, ptr @threads
  %counter = getelementptr i64, ptr @counts, i64 3
  %old = atomicrmw add ptr %counter, i64 1 monotonic
  %more = icmp slt i64 %now, %enough
  br i1 %more, label %turn, label %loud
loud:
  %e4 = call i32 @pthread_sigmask(i32 {set_mask}, ptr %before, ptr null)
  br label %end
end:
  ret void
}}

; Whether the pool is this process's, made so where it was inherited. False while another thread makes it so.
define internal i1 @adopt() nounwind {{
entry:
  %pid32 = call i32 @getpid()
  %pid = zext i32 %pid32 to i64
  %owner = load atomic i64, ptr @owner acquire, align 8
  %ours = icmp eq i64 %owner, %pid
  br i1 %ours, label %yes, label %foreign
foreign:
  %begun = sub i64 0, %pid
  %being_made = icmp eq i64 %owner, %begun
  br i1 %being_made, label %no, label %claim
claim:
  %pair = cmpxchg ptr @owner, i64 %owner, i64 %begun acq_rel monotonic
  %won = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %won, label %make, label %no
make:
  %e1 = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %e2 = call i32 @pthread_cond_init(ptr @work, ptr null)
  %e3 = call i32 @pthread_cond_init(ptr @done, ptr null)
  store i64 0, ptr @threads
  store i64 0, ptr @sleepers
  store i64 0, ptr @waiting
  store i64 0, ptr @state
  store i64 0, ptr @busy
  store atomic i64 %pid, ptr @owner release, align 8
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}}

define internal void @wake(i64 %count) nounwind {{
entry:
  %e1 = call i32 @pthread_mutex_lock(ptr @mutex)
  br label %turn
turn:
  %woken = phi i64 [ 0, %entry ], [ %now, %turn ]
  %e2 = call i32 @pthread_cond_signal(ptr @work)
  %now = add i64 %woken, 1
  %more = icmp slt i64 %now, %count
  br i1 %more, label %turn, label %end
end:
  %e3 = call i32 @pthread_mutex_unlock(ptr @mutex)
  ret void
}}

define void @pullback_parallel_for(ptr %function, ptr %context, i64 %blocks) nounwind {{
entry:
  %allowed = call i64 @allowed()
  %wanted = call i64 @llvm.smin.i64(i64 %allowed, i64 %blocks)
  %few = icmp slt i64 %wanted, 2
  br i1 %few, label %alone, label %several
alone:
  call void @alone(ptr %function, ptr %context, i64 %blocks)
  ret void
several:
  %ours = call i1 @adopt()
  br i1 %ours, label %enter, label %alone
enter:
  %pair = cmpxchg ptr @busy, i64 0, i64 1 acquire monotonic
  %free = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %free, label %offer, label %alone
offer:
  %others = sub i64 %wanted, 1
  call void @start(i64 %others)
  store ptr %function, ptr @function
  store ptr %context, ptr @context
  store i64 %blocks, ptr @blocks
  store atomic i64 0, ptr @next monotonic, align 8
  %state = load atomic i64, ptr @state monotonic, align 8
  %high = lshr i64 %state, 32
  %number = add i64 %high, 1
  %shifted = shl i64 %number, 32
  %seats = shl i64 %others, 16
  %opened = or i64 %shifted, 2147483648
  %offered = or i64 %opened, %seats
  store atomic i64 %offered, ptr @state seq_cst, align 8
  %old = atomicrmw add ptr @counts, i64 1 monotonic
  %sleepers = load atomic i64, ptr @sleepers seq_cst, align 8
  %threads = load i64, ptr @threads
  %awake = sub i64 %threads, %sleepers
  %missing = sub i64 %others, %awake
  %some = icmp sgt i64 %missing, 0
  br i1 %some, label %wake, label %work
wake:
  call void @wake(i64 %missing)
  br label %work
work:
  %own = call i64 @take()
  %before = atomicrmw and ptr @state, i64 -2147483649 seq_cst ; closed
  %joined = and i64 %before, 65535
  %none = icmp eq i64 %joined, 0
  br i1 %none, label %end, label %look
look:
  %left = call i1 @look(i64 0, i1 false)
  br i1 %left, label %end, label %wait
wait:
  %e1 = call i32 @pthread_mutex_lock(ptr @mutex)
  store atomic i64 1, ptr @waiting seq_cst, align 8
  br label %doze
doze:
  %all = call i1 @has_come(i64 0, i1 false)
  br i1 %all, label %over, label %sleep
sleep:
  %e2 = call i32 @pthread_cond_wait(ptr @done, ptr @mutex)
  br label %doze
over:
  store atomic i64 0, ptr @waiting seq_cst, align 8
  %e3 = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %end
end:
  store atomic i64 0, ptr @busy release, align 8
  ret void
}}
"""


def text(*, with_threads: bool) -> str:
    """The module; without threads it has the same functions, and the caller does everything."""
    if not with_threads:
        return COMMON + ALONE
    declare_pause, pause = _PAUSES.get(platform.machine(), ("", ""))
    return COMMON + _SHARED.format(
        set_mask=int(signal.SIG_SETMASK),
        clock=int(time.CLOCK_MONOTONIC),
        spin_ns=SPIN_NS,
        looks=_LOOKS,
        declare_pause=declare_pause,
        pause=pause,
    )
