; Made of objects.c by `python -m tools.ir`: clang 19.1.7, digest d1c881e93174775cfd431de725cf2943.
%struct.slot = type { i64, i64 }

define ptr @counted_call(ptr %0, ptr %1) {
  %3 = getelementptr inbounds i8, ptr %0, i64 32
  store atomic i64 1, ptr %3 seq_cst, align 8
  %4 = tail call ptr @PyObject_CallNoArgs(ptr %1)
  store atomic i64 0, ptr %3 seq_cst, align 8
  ret ptr %4
}

declare ptr @PyObject_CallNoArgs(ptr)

define ptr @object_malloc(ptr %0, i64 %1) {
  %3 = getelementptr inbounds i8, ptr %0, i64 8
  %4 = load ptr, ptr %3, align 8
  %5 = load ptr, ptr %0, align 8
  %6 = tail call ptr %4(ptr %5, i64 %1)
  %7 = getelementptr inbounds i8, ptr %0, i64 40
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr inbounds i8, ptr %8, i64 32
  %10 = load atomic i64, ptr %9 monotonic, align 8
  %11 = icmp eq i64 %10, 0
  br i1 %11, label %13, label %12

12:
  tail call fastcc void @note(ptr %8, ptr %6, i64 %1, i64 1)
  br label %13

13:
  ret ptr %6
}

define internal fastcc void @note(ptr %0, ptr %1, i64 %2, i64 %3) nounwind {
  %5 = icmp eq ptr %1, null
  br i1 %5, label %43, label %6

6:
  %7 = getelementptr inbounds i8, ptr %0, i64 40
  br label %8

8:
  %9 = cmpxchg ptr %7, i64 0, i64 1 acquire monotonic, align 8
  %10 = extractvalue { i64, i1 } %9, 1
  br i1 %10, label %11, label %8

11:
  %12 = getelementptr inbounds i8, ptr %0, i64 56
  %13 = load i64, ptr %12, align 8
  %14 = icmp sgt i64 %13, 3145728
  br i1 %14, label %15, label %17

15:
  %16 = getelementptr inbounds i8, ptr %0, i64 64
  store i64 1, ptr %16, align 8
  br label %42

17:
  %18 = getelementptr inbounds i8, ptr %0, i64 48
  %19 = load ptr, ptr %18, align 8
  %20 = ptrtoint ptr %1 to i64
  %21 = tail call fastcc i64 @place_of(ptr %19, i64 %20)
  %22 = getelementptr %struct.slot, ptr %19, i64 %21
  %23 = load i64, ptr %22, align 8
  %24 = icmp eq i64 %23, 0
  br i1 %24, label %25, label %42

25:
  store i64 %20, ptr %22, align 8
  %26 = getelementptr inbounds i8, ptr %22, i64 8
  store i64 %2, ptr %26, align 8
  %27 = load i64, ptr %12, align 8
  %28 = add i64 %27, 1
  store i64 %28, ptr %12, align 8
  %29 = load i64, ptr %0, align 8
  %30 = add i64 %29, %3
  store i64 %30, ptr %0, align 8
  %31 = mul nuw nsw i64 %3, %2
  %32 = getelementptr inbounds i8, ptr %0, i64 8
  %33 = load i64, ptr %32, align 8
  %34 = add i64 %33, %31
  store i64 %34, ptr %32, align 8
  %35 = getelementptr inbounds i8, ptr %0, i64 16
  %36 = load i64, ptr %35, align 8
  %37 = add i64 %36, %2
  store i64 %37, ptr %35, align 8
  %38 = getelementptr inbounds i8, ptr %0, i64 24
  %39 = load i64, ptr %38, align 8
  %40 = icmp sgt i64 %37, %39
  br i1 %40, label %41, label %42

41:
  store i64 %37, ptr %38, align 8
  br label %42

42:
  store atomic i64 0, ptr %7 release, align 8
  br label %43

43:
  ret void
}

define ptr @object_calloc(ptr %0, i64 %1, i64 %2) {
  %4 = getelementptr inbounds i8, ptr %0, i64 16
  %5 = load ptr, ptr %4, align 8
  %6 = load ptr, ptr %0, align 8
  %7 = tail call ptr %5(ptr %6, i64 %1, i64 %2)
  %8 = getelementptr inbounds i8, ptr %0, i64 40
  %9 = load ptr, ptr %8, align 8
  %10 = getelementptr inbounds i8, ptr %9, i64 32
  %11 = load atomic i64, ptr %10 monotonic, align 8
  %12 = icmp eq i64 %11, 0
  br i1 %12, label %15, label %13

13:
  %14 = mul i64 %2, %1
  tail call fastcc void @note(ptr %9, ptr %7, i64 %14, i64 1)
  br label %15

15:
  ret ptr %7
}

define ptr @object_realloc(ptr %0, ptr %1, i64 %2) {
  %4 = getelementptr inbounds i8, ptr %0, i64 40
  %5 = load ptr, ptr %4, align 8
  %6 = getelementptr inbounds i8, ptr %5, i64 32
  %7 = load atomic i64, ptr %6 monotonic, align 8
  %8 = icmp eq i64 %7, 0
  br i1 %8, label %9, label %14

9:
  %10 = getelementptr inbounds i8, ptr %0, i64 24
  %11 = load ptr, ptr %10, align 8
  %12 = load ptr, ptr %0, align 8
  %13 = tail call ptr %11(ptr %12, ptr %1, i64 %2)
  br label %27

14:
  %15 = tail call fastcc i64 @forget(ptr %5, ptr %1)
  %16 = getelementptr inbounds i8, ptr %0, i64 24
  %17 = load ptr, ptr %16, align 8
  %18 = load ptr, ptr %0, align 8
  %19 = tail call ptr %17(ptr %18, ptr %1, i64 %2)
  %20 = icmp eq ptr %19, null
  br i1 %20, label %23, label %21

21:
  %22 = load ptr, ptr %4, align 8
  tail call fastcc void @note(ptr %22, ptr %19, i64 %2, i64 1)
  br label %27

23:
  %24 = icmp sgt i64 %15, -1
  br i1 %24, label %25, label %27

25:
  %26 = load ptr, ptr %4, align 8
  tail call fastcc void @note(ptr %26, ptr %1, i64 %15, i64 0)
  br label %27

27:
  %28 = phi ptr [ %13, %9 ], [ null, %23 ], [ null, %25 ], [ %19, %21 ]
  ret ptr %28
}

define internal fastcc i64 @forget(ptr %0, ptr %1) nounwind {
  %3 = icmp eq ptr %1, null
  br i1 %3, label %25, label %4

4:
  %5 = getelementptr inbounds i8, ptr %0, i64 40
  br label %6

6:
  %7 = cmpxchg ptr %5, i64 0, i64 1 acquire monotonic, align 8
  %8 = extractvalue { i64, i1 } %7, 1
  br i1 %8, label %9, label %6

9:
  %10 = getelementptr inbounds i8, ptr %0, i64 48
  %11 = load ptr, ptr %10, align 8
  %12 = ptrtoint ptr %1 to i64
  %13 = tail call fastcc i64 @place_of(ptr %11, i64 %12)
  %14 = getelementptr %struct.slot, ptr %11, i64 %13
  %15 = load i64, ptr %14, align 8
  %16 = icmp eq i64 %15, 0
  br i1 %16, label %23, label %17

17:
  store i64 1, ptr %14, align 8
  %18 = getelementptr inbounds i8, ptr %14, i64 8
  %19 = load i64, ptr %18, align 8
  %20 = getelementptr inbounds i8, ptr %0, i64 16
  %21 = load i64, ptr %20, align 8
  %22 = sub i64 %21, %19
  store i64 %22, ptr %20, align 8
  br label %23

23:
  %24 = phi i64 [ %19, %17 ], [ -1, %9 ]
  store atomic i64 0, ptr %5 release, align 8
  br label %25

25:
  %26 = phi i64 [ %24, %23 ], [ -1, %2 ]
  ret i64 %26
}

define void @object_free(ptr %0, ptr %1) {
  %3 = getelementptr inbounds i8, ptr %0, i64 40
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr inbounds i8, ptr %4, i64 32
  %6 = load atomic i64, ptr %5 monotonic, align 8
  %7 = icmp eq i64 %6, 0
  br i1 %7, label %10, label %8

8:
  %9 = tail call fastcc i64 @forget(ptr %4, ptr %1)
  br label %10

10:
  %11 = getelementptr inbounds i8, ptr %0, i64 32
  %12 = load ptr, ptr %11, align 8
  %13 = load ptr, ptr %0, align 8
  tail call void %12(ptr %13, ptr %1)
  ret void
}

define internal fastcc range(i64 0, 4194304) i64 @place_of(ptr %0, i64 %1) nounwind {
  %3 = mul i64 %1, -7046029254386353131
  %4 = lshr i64 %3, 42
  %5 = getelementptr %struct.slot, ptr %0, i64 %4
  %6 = load i64, ptr %5, align 8
  %7 = icmp eq i64 %6, 0
  %8 = icmp eq i64 %6, %1
  %9 = or i1 %7, %8
  br i1 %9, label %19, label %10

10:
  %11 = phi i64 [ %13, %10 ], [ %4, %2 ]
  %12 = add nuw nsw i64 %11, 1
  %13 = and i64 %12, 4194303
  %14 = getelementptr %struct.slot, ptr %0, i64 %13
  %15 = load i64, ptr %14, align 8
  %16 = icmp eq i64 %15, 0
  %17 = icmp eq i64 %15, %1
  %18 = or i1 %16, %17
  br i1 %18, label %19, label %10

19:
  %20 = phi i64 [ %4, %2 ], [ %13, %10 ]
  ret i64 %20
}
