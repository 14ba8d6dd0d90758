; Made of alone.c by `python -m tools.ir`: clang 19.1.7, digest 5a6ccfd389292957a91c1ef859a5b440.
@counts = internal global [5 x i64] zeroinitializer, align 64

define ptr @pool_counts() nounwind {
  ret ptr @counts
}

define void @pool_set_limit(i64 %0) nounwind {
  ret void
}

define void @pullback_parallel_for(ptr %0, ptr %1, i64 %2) nounwind {
  %4 = atomicrmw add ptr getelementptr inbounds (i8, ptr @counts, i64 8), i64 1 monotonic, align 8
  %5 = icmp sgt i64 %2, 0
  br i1 %5, label %6, label %10

6:
  %7 = phi i64 [ %8, %6 ], [ 0, %3 ]
  tail call void %0(ptr %1, i64 %7)
  %8 = add nuw nsw i64 %7, 1
  %9 = icmp eq i64 %8, %2
  br i1 %9, label %10, label %6

10:
  ret void
}
