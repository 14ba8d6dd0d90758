"""The threads of this process: they take blocks of work from whoever has some, and sleep between.

    pullback_parallel_for(function, context, blocks)    calls function(context, block) for every block, on several threads

The caller takes blocks like the others and never waits for a thread to arrive: on a machine that is busy with other things it
does all of them itself, as if there were no pool. Threads sleep on a condition variable; none ever spins. While one caller
has the pool, others do their blocks alone, and so does a block that asks for more threads. After a fork the child starts
threads of its own. The threads run no Python and take no signals.

It is written as LLVM IR because there is no compiler at run time, and because kernels call it without the interpreter.
"""

import signal
from typing import Final

ALONE: Final = """
define void @pullback_parallel_for(ptr %function, ptr %context, i64 %blocks) nounwind {
entry:
  call void @alone(ptr %function, ptr %context, i64 %blocks)
  ret void
}
"""

COMMON: Final = """
@counts = internal global [4 x i64] zeroinitializer, align 64
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

# A job: function, context, blocks, the next block to take, threads that are at work on it, threads that may still join.
# Everything of a job but its next block changes under @mutex, which also makes what threads wrote visible to the caller.
_SHARED: Final = """
%Job = type {{ ptr, ptr, i64, i64, i64, i64 }}

@mutex = internal global [128 x i8] zeroinitializer, align 64
@work = internal global [128 x i8] zeroinitializer, align 64
@done = internal global [128 x i8] zeroinitializer, align 64
@owner = internal global i64 0
@threads = internal global i64 0
@job = internal global ptr null
@serial = internal global i64 0
@elsewhere = internal global ptr null

declare i32 @getpid()
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
declare i64 @llvm.smin.i64(i64, i64)

; Takes blocks of a job until there are none left.
define internal void @take(ptr %job) nounwind {{
entry:
  %p1 = getelementptr %Job, ptr %job, i64 0, i32 1
  %p2 = getelementptr %Job, ptr %job, i64 0, i32 2
  %p3 = getelementptr %Job, ptr %job, i64 0, i32 3
  %function = load ptr, ptr %job
  %context = load ptr, ptr %p1
  %blocks = load i64, ptr %p2
  br label %turn
turn:
  %block = atomicrmw add ptr %p3, i64 1 monotonic
  %some = icmp slt i64 %block, %blocks
  br i1 %some, label %run, label %end
run:
  call void %function(ptr %context, i64 %block)
  br label %turn
end:
  ret void
}}

define internal ptr @worker(ptr %unused) nounwind {{
entry:
  %e1 = call i32 @pthread_mutex_lock(ptr @mutex)
  br label %look
look:
  %last = phi i64 [ 0, %entry ], [ %last, %sleep ], [ %serial, %decline ], [ %serial, %leave ]
  %job = load ptr, ptr @job
  %serial = load i64, ptr @serial
  %idle = icmp eq ptr %job, null
  %known = icmp eq i64 %serial, %last
  %nothing = or i1 %idle, %known
  br i1 %nothing, label %sleep, label %ask
sleep:
  %e2 = call i32 @pthread_cond_wait(ptr @work, ptr @mutex)
  br label %look
ask:
  %p4 = getelementptr %Job, ptr %job, i64 0, i32 4
  %p5 = getelementptr %Job, ptr %job, i64 0, i32 5
  %seats = load i64, ptr %p5
  %full = icmp sle i64 %seats, 0
  br i1 %full, label %decline, label %join
decline:
  br label %look
join:
  %fewer = sub i64 %seats, 1
  store i64 %fewer, ptr %p5
  %here = load i64, ptr %p4
  %more = add i64 %here, 1
  store i64 %more, ptr %p4
  %counter = getelementptr i64, ptr @counts, i64 2
  %old = atomicrmw add ptr %counter, i64 1 monotonic
  %e3 = call i32 @pthread_mutex_unlock(ptr @mutex)
  call void @take(ptr %job)
  %e4 = call i32 @pthread_mutex_lock(ptr @mutex)
  %working = load i64, ptr %p4
  %left = sub i64 %working, 1
  store i64 %left, ptr %p4
  %last_one = icmp eq i64 %left, 0
  br i1 %last_one, label %tell, label %leave
tell:
  %e5 = call i32 @pthread_cond_signal(ptr @done)
  br label %leave
leave:
  br label %look
}}

; Starts threads until there are enough; fewer where the system gives no more. Under @mutex.
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
  store ptr null, ptr @job
  store atomic i64 %pid, ptr @owner release, align 8
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}}

define void @pullback_parallel_for(ptr %function, ptr %context, i64 %blocks) nounwind {{
entry:
  %job = alloca %Job, align 64
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
  %e1 = call i32 @pthread_mutex_lock(ptr @mutex)
  %current = load ptr, ptr @job
  %free = icmp eq ptr %current, null
  br i1 %free, label %offer, label %taken
taken:
  %e2 = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %alone
offer:
  %others = sub i64 %wanted, 1
  call void @start(i64 %others)
  %p1 = getelementptr %Job, ptr %job, i64 0, i32 1
  %p2 = getelementptr %Job, ptr %job, i64 0, i32 2
  %p3 = getelementptr %Job, ptr %job, i64 0, i32 3
  %p4 = getelementptr %Job, ptr %job, i64 0, i32 4
  %p5 = getelementptr %Job, ptr %job, i64 0, i32 5
  store ptr %function, ptr %job
  store ptr %context, ptr %p1
  store i64 %blocks, ptr %p2
  store i64 0, ptr %p3
  store i64 0, ptr %p4
  store i64 %others, ptr %p5
  store ptr %job, ptr @job
  %serial = load i64, ptr @serial
  %following = add i64 %serial, 1
  store i64 %following, ptr @serial
  %old = atomicrmw add ptr @counts, i64 1 monotonic
  br label %wake
wake:
  %woken = phi i64 [ 0, %offer ], [ %woken_now, %wake ]
  %e3 = call i32 @pthread_cond_signal(ptr @work)
  %woken_now = add i64 %woken, 1
  %more = icmp slt i64 %woken_now, %others
  br i1 %more, label %wake, label %work_along
work_along:
  %e4 = call i32 @pthread_mutex_unlock(ptr @mutex)
  call void @take(ptr %job)
  %e5 = call i32 @pthread_mutex_lock(ptr @mutex)
  store ptr null, ptr @job
  br label %look
look:
  %working = load i64, ptr %p4
  %finished = icmp eq i64 %working, 0
  br i1 %finished, label %end, label %wait
wait:
  %e6 = call i32 @pthread_cond_wait(ptr @done, ptr @mutex)
  br label %look
end:
  %e7 = call i32 @pthread_mutex_unlock(ptr @mutex)
  ret void
}}
"""


def text(*, with_threads: bool) -> str:
    """The module; without threads it has the same functions, and the caller does everything."""
    if not with_threads:
        return COMMON + ALONE
    return COMMON + _SHARED.format(set_mask=int(signal.SIG_SETMASK))
