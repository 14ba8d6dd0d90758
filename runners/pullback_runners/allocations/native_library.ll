; Made of native_library.c by `python -m tools.ir`: clang 19.1.7, digest 29d1aceaa8e80247b7128b2d4467d1e1.
@to_malloc = hidden global ptr @__libc_malloc, section ".data", align 8
@to_calloc = hidden global ptr @__libc_calloc, section ".data", align 8
@to_realloc = hidden global ptr @__libc_realloc, section ".data", align 8
@to_memalign = hidden global ptr @__libc_memalign, section ".data", align 8
@to_valloc = hidden global ptr @__libc_valloc, section ".data", align 8
@to_pvalloc = hidden global ptr @__libc_pvalloc, section ".data", align 8
@to_free = hidden global ptr @__libc_free, section ".data", align 8
@usable_size = hidden global ptr @malloc_usable_size, section ".data", align 8
@counting = hidden global i64 0, section ".data", align 8
@allocations = hidden global i64 0, section ".data", align 8
@requested = hidden global i64 0, section ".data", align 8
@live = hidden global i64 0, section ".data", align 8
@peak = hidden global i64 0, section ".data", align 8

declare ptr @__libc_malloc(i64)

declare ptr @__libc_calloc(i64, i64)

declare ptr @__libc_realloc(ptr, i64)

declare ptr @__libc_memalign(i64, i64)

declare ptr @__libc_valloc(i64)

declare ptr @__libc_pvalloc(i64)

declare void @__libc_free(ptr)

declare i64 @malloc_usable_size(ptr)

define ptr @malloc(i64 %0) nounwind {
  %2 = load ptr, ptr @to_malloc, align 8
  %3 = tail call ptr %2(i64 %0)
  %4 = icmp eq ptr %3, null
  br i1 %4, label %16, label %5

5:
  %6 = load atomic i64, ptr @counting monotonic, align 8
  %7 = icmp eq i64 %6, 0
  br i1 %7, label %16, label %8

8:
  %9 = atomicrmw add ptr @allocations, i64 1 monotonic, align 8
  %10 = atomicrmw add ptr @requested, i64 %0 monotonic, align 8
  %11 = load ptr, ptr @usable_size, align 8
  %12 = tail call i64 %11(ptr %3)
  %13 = atomicrmw add ptr @live, i64 %12 monotonic, align 8
  %14 = add i64 %13, %12
  %15 = atomicrmw max ptr @peak, i64 %14 monotonic, align 8
  br label %16

16:
  ret ptr %3
}

define ptr @calloc(i64 %0, i64 %1) nounwind {
  %3 = load ptr, ptr @to_calloc, align 8
  %4 = tail call ptr %3(i64 %0, i64 %1)
  %5 = mul i64 %1, %0
  %6 = icmp eq ptr %4, null
  br i1 %6, label %18, label %7

7:
  %8 = load atomic i64, ptr @counting monotonic, align 8
  %9 = icmp eq i64 %8, 0
  br i1 %9, label %18, label %10

10:
  %11 = atomicrmw add ptr @allocations, i64 1 monotonic, align 8
  %12 = atomicrmw add ptr @requested, i64 %5 monotonic, align 8
  %13 = load ptr, ptr @usable_size, align 8
  %14 = tail call i64 %13(ptr %4)
  %15 = atomicrmw add ptr @live, i64 %14 monotonic, align 8
  %16 = add i64 %15, %14
  %17 = atomicrmw max ptr @peak, i64 %16 monotonic, align 8
  br label %18

18:
  ret ptr %4
}

define ptr @memalign(i64 %0, i64 %1) nounwind {
  %3 = load ptr, ptr @to_memalign, align 8
  %4 = tail call ptr %3(i64 %0, i64 %1)
  %5 = icmp eq ptr %4, null
  br i1 %5, label %17, label %6

6:
  %7 = load atomic i64, ptr @counting monotonic, align 8
  %8 = icmp eq i64 %7, 0
  br i1 %8, label %17, label %9

9:
  %10 = atomicrmw add ptr @allocations, i64 1 monotonic, align 8
  %11 = atomicrmw add ptr @requested, i64 %1 monotonic, align 8
  %12 = load ptr, ptr @usable_size, align 8
  %13 = tail call i64 %12(ptr %4)
  %14 = atomicrmw add ptr @live, i64 %13 monotonic, align 8
  %15 = add i64 %14, %13
  %16 = atomicrmw max ptr @peak, i64 %15 monotonic, align 8
  br label %17

17:
  ret ptr %4
}

define ptr @aligned_alloc(i64 %0, i64 %1) nounwind {
  %3 = load ptr, ptr @to_memalign, align 8
  %4 = tail call ptr %3(i64 %0, i64 %1)
  %5 = icmp eq ptr %4, null
  br i1 %5, label %17, label %6

6:
  %7 = load atomic i64, ptr @counting monotonic, align 8
  %8 = icmp eq i64 %7, 0
  br i1 %8, label %17, label %9

9:
  %10 = atomicrmw add ptr @allocations, i64 1 monotonic, align 8
  %11 = atomicrmw add ptr @requested, i64 %1 monotonic, align 8
  %12 = load ptr, ptr @usable_size, align 8
  %13 = tail call i64 %12(ptr %4)
  %14 = atomicrmw add ptr @live, i64 %13 monotonic, align 8
  %15 = add i64 %14, %13
  %16 = atomicrmw max ptr @peak, i64 %15 monotonic, align 8
  br label %17

17:
  ret ptr %4
}

define ptr @valloc(i64 %0) nounwind {
  %2 = load ptr, ptr @to_valloc, align 8
  %3 = tail call ptr %2(i64 %0)
  %4 = icmp eq ptr %3, null
  br i1 %4, label %16, label %5

5:
  %6 = load atomic i64, ptr @counting monotonic, align 8
  %7 = icmp eq i64 %6, 0
  br i1 %7, label %16, label %8

8:
  %9 = atomicrmw add ptr @allocations, i64 1 monotonic, align 8
  %10 = atomicrmw add ptr @requested, i64 %0 monotonic, align 8
  %11 = load ptr, ptr @usable_size, align 8
  %12 = tail call i64 %11(ptr %3)
  %13 = atomicrmw add ptr @live, i64 %12 monotonic, align 8
  %14 = add i64 %13, %12
  %15 = atomicrmw max ptr @peak, i64 %14 monotonic, align 8
  br label %16

16:
  ret ptr %3
}

define ptr @pvalloc(i64 %0) nounwind {
  %2 = load ptr, ptr @to_pvalloc, align 8
  %3 = tail call ptr %2(i64 %0)
  %4 = icmp eq ptr %3, null
  br i1 %4, label %16, label %5

5:
  %6 = load atomic i64, ptr @counting monotonic, align 8
  %7 = icmp eq i64 %6, 0
  br i1 %7, label %16, label %8

8:
  %9 = atomicrmw add ptr @allocations, i64 1 monotonic, align 8
  %10 = atomicrmw add ptr @requested, i64 %0 monotonic, align 8
  %11 = load ptr, ptr @usable_size, align 8
  %12 = tail call i64 %11(ptr %3)
  %13 = atomicrmw add ptr @live, i64 %12 monotonic, align 8
  %14 = add i64 %13, %12
  %15 = atomicrmw max ptr @peak, i64 %14 monotonic, align 8
  br label %16

16:
  ret ptr %3
}

define range(i32 0, 23) i32 @posix_memalign(ptr %0, i64 %1, i64 %2) nounwind {
  %4 = icmp ugt i64 %1, 7
  %5 = tail call range(i64 0, 65) i64 @llvm.ctpop.i64(i64 %1)
  %6 = icmp ult i64 %5, 2
  %7 = select i1 %4, i1 %6, i1 false
  br i1 %7, label %8, label %24

8:
  %9 = load ptr, ptr @to_memalign, align 8
  %10 = tail call ptr %9(i64 %1, i64 %2)
  %11 = icmp eq ptr %10, null
  br i1 %11, label %24, label %12

12:
  %13 = load atomic i64, ptr @counting monotonic, align 8
  %14 = icmp eq i64 %13, 0
  br i1 %14, label %23, label %15

15:
  %16 = atomicrmw add ptr @allocations, i64 1 monotonic, align 8
  %17 = atomicrmw add ptr @requested, i64 %2 monotonic, align 8
  %18 = load ptr, ptr @usable_size, align 8
  %19 = tail call i64 %18(ptr %10)
  %20 = atomicrmw add ptr @live, i64 %19 monotonic, align 8
  %21 = add i64 %20, %19
  %22 = atomicrmw max ptr @peak, i64 %21 monotonic, align 8
  br label %23

23:
  store ptr %10, ptr %0, align 8
  br label %24

24:
  %25 = phi i32 [ 22, %3 ], [ 0, %23 ], [ 12, %8 ]
  ret i32 %25
}

define ptr @realloc(ptr %0, i64 %1) nounwind {
  %3 = icmp eq ptr %0, null
  br i1 %3, label %7, label %4

4:
  %5 = load ptr, ptr @usable_size, align 8
  %6 = tail call i64 %5(ptr %0)
  br label %7

7:
  %8 = phi i64 [ %6, %4 ], [ 0, %2 ]
  %9 = load ptr, ptr @to_realloc, align 8
  %10 = tail call ptr %9(ptr %0, i64 %1)
  %11 = icmp eq ptr %10, null
  %12 = icmp ne i64 %1, 0
  %13 = and i1 %12, %11
  br i1 %13, label %31, label %14

14:
  %15 = load atomic i64, ptr @counting monotonic, align 8
  %16 = icmp eq i64 %15, 0
  br i1 %16, label %19, label %17

17:
  %18 = atomicrmw sub ptr @live, i64 %8 monotonic, align 8
  br label %19

19:
  br i1 %11, label %31, label %20

20:
  %21 = load atomic i64, ptr @counting monotonic, align 8
  %22 = icmp eq i64 %21, 0
  br i1 %22, label %31, label %23

23:
  %24 = atomicrmw add ptr @allocations, i64 1 monotonic, align 8
  %25 = atomicrmw add ptr @requested, i64 %1 monotonic, align 8
  %26 = load ptr, ptr @usable_size, align 8
  %27 = tail call i64 %26(ptr %10)
  %28 = atomicrmw add ptr @live, i64 %27 monotonic, align 8
  %29 = add i64 %28, %27
  %30 = atomicrmw max ptr @peak, i64 %29 monotonic, align 8
  br label %31

31:
  ret ptr %10
}

define void @free(ptr %0) nounwind {
  %2 = icmp eq ptr %0, null
  br i1 %2, label %12, label %3

3:
  %4 = load atomic i64, ptr @counting monotonic, align 8
  %5 = icmp eq i64 %4, 0
  br i1 %5, label %10, label %6

6:
  %7 = load ptr, ptr @usable_size, align 8
  %8 = tail call i64 %7(ptr %0)
  %9 = atomicrmw sub ptr @live, i64 %8 monotonic, align 8
  br label %10

10:
  %11 = load ptr, ptr @to_free, align 8
  tail call void %11(ptr %0)
  br label %12

12:
  ret void
}

define void @pullback_native_begin() nounwind {
  store atomic i64 0, ptr @allocations seq_cst, align 8
  store atomic i64 0, ptr @requested seq_cst, align 8
  store atomic i64 0, ptr @live seq_cst, align 8
  store atomic i64 0, ptr @peak seq_cst, align 8
  store atomic i64 1, ptr @counting seq_cst, align 8
  ret void
}

define void @pullback_native_end(ptr %0) nounwind {
  store atomic i64 0, ptr @counting seq_cst, align 8
  %2 = load atomic i64, ptr @allocations seq_cst, align 8
  store i64 %2, ptr %0, align 8
  %3 = load atomic i64, ptr @requested seq_cst, align 8
  %4 = getelementptr i8, ptr %0, i64 8
  store i64 %3, ptr %4, align 8
  %5 = load atomic i64, ptr @peak seq_cst, align 8
  %6 = getelementptr i8, ptr %0, i64 16
  store i64 %5, ptr %6, align 8
  ret void
}

declare i64 @llvm.ctpop.i64(i64)
