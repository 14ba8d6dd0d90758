; Made of arrays.c by `python -m tools.ir`: clang 19.1.7, digest 87ca67b1137be49c664495945565403a.
define ptr @array_malloc(ptr %0, i64 %1) {
  %3 = atomicrmw add ptr %0, i64 1 monotonic, align 8
  %4 = getelementptr inbounds i8, ptr %0, i64 8
  %5 = atomicrmw add ptr %4, i64 %1 monotonic, align 8
  %6 = getelementptr inbounds i8, ptr %0, i64 16
  %7 = atomicrmw add ptr %6, i64 %1 monotonic, align 8
  %8 = add i64 %7, %1
  %9 = getelementptr inbounds i8, ptr %0, i64 24
  %10 = atomicrmw max ptr %9, i64 %8 monotonic, align 8
  %11 = tail call ptr @malloc(i64 %1)
  ret ptr %11
}

declare ptr @malloc(i64)

define ptr @array_calloc(ptr %0, i64 %1, i64 %2) {
  %4 = mul i64 %2, %1
  %5 = atomicrmw add ptr %0, i64 1 monotonic, align 8
  %6 = getelementptr inbounds i8, ptr %0, i64 8
  %7 = atomicrmw add ptr %6, i64 %4 monotonic, align 8
  %8 = getelementptr inbounds i8, ptr %0, i64 16
  %9 = atomicrmw add ptr %8, i64 %4 monotonic, align 8
  %10 = add i64 %9, %4
  %11 = getelementptr inbounds i8, ptr %0, i64 24
  %12 = atomicrmw max ptr %11, i64 %10 monotonic, align 8
  %13 = tail call ptr @calloc(i64 %1, i64 %2)
  ret ptr %13
}

declare ptr @calloc(i64, i64)

define ptr @array_realloc(ptr %0, ptr %1, i64 %2) {
  %4 = atomicrmw add ptr %0, i64 1 monotonic, align 8
  %5 = getelementptr inbounds i8, ptr %0, i64 8
  %6 = atomicrmw add ptr %5, i64 %2 monotonic, align 8
  %7 = getelementptr inbounds i8, ptr %0, i64 16
  %8 = atomicrmw add ptr %7, i64 %2 monotonic, align 8
  %9 = add i64 %8, %2
  %10 = getelementptr inbounds i8, ptr %0, i64 24
  %11 = atomicrmw max ptr %10, i64 %9 monotonic, align 8
  %12 = tail call ptr @realloc(ptr %1, i64 %2)
  ret ptr %12
}

declare ptr @realloc(ptr, i64)

define void @array_free(ptr %0, ptr %1, i64 %2) {
  %4 = getelementptr inbounds i8, ptr %0, i64 16
  %5 = atomicrmw sub ptr %4, i64 %2 monotonic, align 8
  tail call void @free(ptr %1)
  ret void
}

declare void @free(ptr)
