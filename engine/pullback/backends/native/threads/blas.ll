; Made of blas.c by `python -m tools.ir`: clang 19.1.7, digest f92e5b2b0ee6c60e5c8c524a699f35d9.
@blas_set = internal global ptr null, align 8
@blas_get = internal global ptr null, align 8
@blas_inside = internal global i64 0, align 8
@blas_before = internal global i32 0, align 4

define void @blas_bind(ptr %0, ptr %1) nounwind {
  %3 = ptrtoint ptr %1 to i64
  store atomic i64 %3, ptr @blas_set monotonic, align 8
  %4 = ptrtoint ptr %0 to i64
  store atomic i64 %4, ptr @blas_get release, align 8
  ret void
}

define void @pullback_blas_enter() nounwind {
  %1 = load atomic i64, ptr @blas_get acquire, align 8
  %2 = inttoptr i64 %1 to ptr
  %3 = icmp eq i64 %1, 0
  br i1 %3, label %13, label %4

4:
  %5 = atomicrmw add ptr @blas_inside, i64 1 acq_rel, align 8
  %6 = icmp eq i64 %5, 0
  br i1 %6, label %7, label %13

7:
  %8 = tail call i32 %2()
  store atomic i32 %8, ptr @blas_before release, align 4
  %9 = icmp sgt i32 %8, 1
  br i1 %9, label %10, label %13

10:
  %11 = load atomic i64, ptr @blas_set monotonic, align 8
  %12 = inttoptr i64 %11 to ptr
  tail call void %12(i32 1)
  br label %13

13:
  ret void
}

define void @pullback_blas_leave() nounwind {
  %1 = load atomic i64, ptr @blas_get acquire, align 8
  %2 = icmp eq i64 %1, 0
  br i1 %2, label %12, label %3

3:
  %4 = load atomic i32, ptr @blas_before acquire, align 4
  %5 = atomicrmw sub ptr @blas_inside, i64 1 acq_rel, align 8
  %6 = icmp eq i64 %5, 1
  %7 = icmp sgt i32 %4, 1
  %8 = select i1 %6, i1 %7, i1 false
  br i1 %8, label %9, label %12

9:
  %10 = load atomic i64, ptr @blas_set monotonic, align 8
  %11 = inttoptr i64 %10 to ptr
  tail call void %11(i32 %4)
  br label %12

12:
  ret void
}

define void @blas_forget() nounwind {
  %1 = load atomic i64, ptr @blas_inside acquire, align 8
  %2 = icmp slt i64 %1, 1
  br i1 %2, label %15, label %3

3:
  store atomic i64 1, ptr @blas_inside release, align 8
  %4 = load atomic i64, ptr @blas_get acquire, align 8
  %5 = icmp eq i64 %4, 0
  br i1 %5, label %15, label %6

6:
  %7 = load atomic i32, ptr @blas_before acquire, align 4
  %8 = atomicrmw sub ptr @blas_inside, i64 1 acq_rel, align 8
  %9 = icmp eq i64 %8, 1
  %10 = icmp sgt i32 %7, 1
  %11 = select i1 %9, i1 %10, i1 false
  br i1 %11, label %12, label %15

12:
  %13 = load atomic i64, ptr @blas_set monotonic, align 8
  %14 = inttoptr i64 %13 to ptr
  tail call void %14(i32 %7)
  br label %15

15:
  ret void
}
