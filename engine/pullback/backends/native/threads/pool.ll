; Made of pool.c by `python -m tools.ir`: clang 19.1.7, digest a7b9dfeeee3144819608b13c64e72588.
%struct.time = type { i64, i64 }

@counts = internal global [5 x i64] zeroinitializer, align 64
@limit = internal global i64 1, align 8
@elsewhere = internal global ptr null, align 8
@owner = internal global i64 0, align 8
@busy = internal global i64 0, align 64
@function = internal global ptr null, align 64
@context = internal global ptr null, align 8
@blocks = internal global i64 0, align 8
@given = internal global i64 0, align 64
@from_behind = internal global i64 0, align 64
@state = internal global i64 0, align 64
@threads = internal global i64 0, align 8
@sleepers = internal global i64 0, align 8
@mutex = internal global [128 x i8] zeroinitializer, align 64
@work = internal global [128 x i8] zeroinitializer, align 64
@done = internal global [128 x i8] zeroinitializer, align 64
@waiting = internal global i64 0, align 8
@set_mask = external constant i32, align 4
@looks = external constant i32, align 4
@spin_ns = external constant i32, align 4
@clock = external constant i32, align 4

define ptr @pool_counts() nounwind {
  ret ptr @counts
}

define void @pool_set_limit(i64 %0) nounwind {
  store atomic i64 %0, ptr @limit monotonic, align 8
  ret void
}

define void @pool_set_elsewhere(ptr %0) nounwind {
  %2 = ptrtoint ptr %0 to i64
  store atomic i64 %2, ptr @elsewhere monotonic, align 8
  ret void
}

define void @pool_forget() nounwind {
  store atomic i64 0, ptr @owner release, align 8
  ret void
}

define void @pullback_parallel_for(ptr %0, ptr %1, i64 %2) nounwind {
  %4 = alloca %struct.time, align 8
  %5 = alloca [128 x i8], align 16
  %6 = alloca [128 x i8], align 16
  %7 = alloca i64, align 8
  %8 = load atomic i64, ptr @limit monotonic, align 8
  %9 = load atomic i64, ptr @elsewhere monotonic, align 8
  %10 = icmp eq i64 %9, 0
  br i1 %10, label %16, label %11

11:
  %12 = inttoptr i64 %9 to ptr
  %13 = tail call i32 %12()
  %14 = sext i32 %13 to i64
  %15 = tail call i64 @llvm.smin.i64(i64 %8, i64 %14)
  br label %16

16:
  %17 = phi i64 [ %15, %11 ], [ %8, %3 ]
  %18 = tail call i64 @llvm.smin.i64(i64 %17, i64 %2)
  %19 = icmp slt i64 %18, 2
  br i1 %19, label %38, label %20

20:
  %21 = tail call i32 @getpid()
  %22 = sext i32 %21 to i64
  %23 = load atomic i64, ptr @owner acquire, align 8
  %24 = icmp eq i64 %23, %22
  br i1 %24, label %35, label %25

25:
  %26 = sub nsw i64 0, %22
  %27 = icmp eq i64 %23, %26
  br i1 %27, label %38, label %28

28:
  %29 = cmpxchg ptr @owner, i64 %23, i64 %26 acq_rel monotonic, align 8
  %30 = extractvalue { i64, i1 } %29, 1
  br i1 %30, label %31, label %38

31:
  %32 = tail call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %33 = tail call i32 @pthread_cond_init(ptr @work, ptr null)
  %34 = tail call i32 @pthread_cond_init(ptr @done, ptr null)
  store i64 0, ptr @busy, align 64
  store i64 0, ptr @state, align 64
  store i64 0, ptr @waiting, align 8
  store i64 0, ptr @sleepers, align 8
  store i64 0, ptr @threads, align 8
  store atomic i64 %22, ptr @owner release, align 8
  br label %35

35:
  %36 = cmpxchg ptr @busy, i64 0, i64 1 acquire monotonic, align 64
  %37 = extractvalue { i64, i1 } %36, 1
  br i1 %37, label %45, label %38

38:
  %39 = atomicrmw add ptr getelementptr inbounds (i8, ptr @counts, i64 8), i64 1 monotonic, align 8
  %40 = icmp sgt i64 %2, 0
  br i1 %40, label %41, label %152

41:
  %42 = phi i64 [ %43, %41 ], [ 0, %38 ]
  tail call void %0(ptr %1, i64 %42)
  %43 = add nuw nsw i64 %42, 1
  %44 = icmp eq i64 %43, %2
  br i1 %44, label %152, label %41

45:
  %46 = add nsw i64 %18, -1
  %47 = load i64, ptr @threads, align 8
  %48 = icmp slt i64 %47, %46
  br i1 %48, label %49, label %69

49:
  %50 = call i32 @sigfillset(ptr %5)
  %51 = load i32, ptr @set_mask, align 4
  %52 = call i32 @pthread_sigmask(i32 %51, ptr %5, ptr %6)
  %53 = load i64, ptr @threads, align 8
  %54 = icmp slt i64 %53, %46
  br i1 %54, label %55, label %66

55:
  %56 = call i32 @pthread_create(ptr %7, ptr null, ptr @worker, ptr null)
  %57 = icmp eq i32 %56, 0
  br i1 %57, label %59, label %58

58:
  br label %66

59:
  %60 = load i64, ptr %7, align 8
  %61 = call i32 @pthread_detach(i64 %60)
  %62 = load i64, ptr @threads, align 8
  %63 = add i64 %62, 1
  store i64 %63, ptr @threads, align 8
  %64 = atomicrmw add ptr getelementptr inbounds (i8, ptr @counts, i64 24), i64 1 monotonic, align 8
  %65 = icmp slt i64 %63, %46
  br i1 %65, label %55, label %66

66:
  %67 = call i32 @pthread_sigmask(i32 %51, ptr %6, ptr null)
  %68 = load i64, ptr @threads, align 8
  br label %69

69:
  %70 = phi i64 [ %47, %45 ], [ %68, %66 ]
  store ptr %0, ptr @function, align 64
  store ptr %1, ptr @context, align 8
  store i64 %2, ptr @blocks, align 8
  store atomic i64 0, ptr @given monotonic, align 64
  store atomic i64 0, ptr @from_behind monotonic, align 64
  %71 = load atomic i64, ptr @state monotonic, align 64
  %72 = and i64 %71, -4294967296
  %73 = add i64 %72, 6442450944
  %74 = shl i64 %46, 16
  %75 = or i64 %73, %74
  store atomic i64 %75, ptr @state seq_cst, align 64
  %76 = atomicrmw add ptr @counts, i64 1 monotonic, align 8
  %77 = load atomic i64, ptr @sleepers seq_cst, align 8
  %78 = sub i64 %70, %77
  %79 = icmp sgt i64 %46, %78
  br i1 %79, label %80, label %91

80:
  %81 = sub i64 %46, %78
  %82 = call i32 @pthread_mutex_lock(ptr @mutex)
  %83 = icmp sgt i64 %81, 0
  br i1 %83, label %84, label %89

84:
  %85 = phi i64 [ %87, %84 ], [ 0, %80 ]
  %86 = call i32 @pthread_cond_signal(ptr @work)
  %87 = add nuw nsw i64 %85, 1
  %88 = icmp eq i64 %87, %81
  br i1 %88, label %89, label %84

89:
  %90 = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %91

91:
  %92 = load ptr, ptr @function, align 64
  %93 = load ptr, ptr @context, align 8
  %94 = load i64, ptr @blocks, align 8
  %95 = atomicrmw add ptr @given, i64 1 monotonic, align 64
  %96 = icmp slt i64 %95, %94
  br i1 %96, label %97, label %102

97:
  %98 = phi i64 [ %99, %97 ], [ 0, %91 ]
  call void %92(ptr %93, i64 %98)
  %99 = add i64 %98, 1
  %100 = atomicrmw add ptr @given, i64 1 monotonic, align 64
  %101 = icmp slt i64 %100, %94
  br i1 %101, label %97, label %102

102:
  %103 = atomicrmw and ptr @state, i64 -2147483649 seq_cst, align 64
  %104 = and i64 %103, 65535
  %105 = icmp eq i64 %104, 0
  br i1 %105, label %151, label %106

106:
  %107 = load i32, ptr @looks, align 4
  %108 = icmp sgt i32 %107, 0
  %109 = load i32, ptr @clock, align 4
  %110 = getelementptr inbounds i8, ptr %4, i64 8
  %111 = load i32, ptr @spin_ns, align 4
  %112 = sext i32 %111 to i64
  br label %113

113:
  %114 = phi i64 [ 0, %106 ], [ %134, %127 ]
  br i1 %108, label %115, label %127

115:
  %116 = load atomic i64, ptr @state seq_cst, align 64
  %117 = and i64 %116, 65535
  %118 = icmp eq i64 %117, 0
  br i1 %118, label %151, label %123

119:
  %120 = load atomic i64, ptr @state seq_cst, align 64
  %121 = and i64 %120, 65535
  %122 = icmp eq i64 %121, 0
  br i1 %122, label %137, label %123

123:
  %124 = phi i32 [ %125, %119 ], [ 0, %115 ]
  call void @relax()
  %125 = add nuw nsw i32 %124, 1
  %126 = icmp eq i32 %125, %107
  br i1 %126, label %127, label %119

127:
  %128 = call i32 @clock_gettime(i32 %109, ptr %4)
  %129 = load i64, ptr %4, align 8
  %130 = mul i64 %129, 1000000000
  %131 = load i64, ptr %110, align 8
  %132 = add i64 %130, %131
  %133 = icmp eq i64 %114, 0
  %134 = select i1 %133, i64 %132, i64 %114
  %135 = sub i64 %132, %134
  %136 = icmp slt i64 %135, %112
  br i1 %136, label %113, label %139

137:
  %138 = icmp slt i32 %125, %107
  br i1 %138, label %151, label %139

139:
  %140 = call i32 @pthread_mutex_lock(ptr @mutex)
  store atomic i64 1, ptr @waiting seq_cst, align 8
  %141 = load atomic i64, ptr @state seq_cst, align 64
  %142 = and i64 %141, 65535
  %143 = icmp eq i64 %142, 0
  br i1 %143, label %149, label %144

144:
  %145 = call i32 @pthread_cond_wait(ptr @done, ptr @mutex)
  %146 = load atomic i64, ptr @state seq_cst, align 64
  %147 = and i64 %146, 65535
  %148 = icmp eq i64 %147, 0
  br i1 %148, label %149, label %144

149:
  store atomic i64 0, ptr @waiting seq_cst, align 8
  %150 = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %151

151:
  store atomic i64 0, ptr @busy release, align 64
  br label %152

152:
  ret void
}

declare i32 @getpid()

declare i32 @pthread_mutex_init(ptr, ptr)

declare i32 @pthread_cond_init(ptr, ptr)

declare i32 @sigfillset(ptr)

declare i32 @pthread_sigmask(i32, ptr, ptr)

declare i32 @pthread_create(ptr, ptr, ptr, ptr)

define internal ptr @worker(ptr %0) nounwind {
  %2 = alloca %struct.time, align 8
  %3 = load i32, ptr @looks, align 4
  %4 = icmp sgt i32 %3, 0
  %5 = load i32, ptr @clock, align 4
  %6 = getelementptr inbounds i8, ptr %2, i64 8
  %7 = load i32, ptr @spin_ns, align 4
  %8 = sext i32 %7 to i64
  br label %9

9:
  %10 = phi i64 [ 0, %1 ], [ %65, %64 ]
  br label %11

11:
  br label %12

12:
  %13 = phi i64 [ 0, %11 ], [ %43, %42 ]
  br i1 %4, label %14, label %32

14:
  %15 = load atomic i64, ptr @state seq_cst, align 64
  %16 = lshr i64 %15, 32
  %17 = icmp ne i64 %16, %10
  %18 = and i64 %15, 2147483648
  %19 = icmp ne i64 %18, 0
  %20 = and i1 %17, %19
  br i1 %20, label %60, label %28

21:
  %22 = load atomic i64, ptr @state seq_cst, align 64
  %23 = lshr i64 %22, 32
  %24 = icmp ne i64 %23, %10
  %25 = and i64 %22, 2147483648
  %26 = icmp ne i64 %25, 0
  %27 = and i1 %24, %26
  br i1 %27, label %44, label %28

28:
  %29 = phi i32 [ %30, %21 ], [ 0, %14 ]
  call void @relax()
  %30 = add nuw nsw i32 %29, 1
  %31 = icmp eq i32 %30, %3
  br i1 %31, label %32, label %21

32:
  %33 = call i32 @clock_gettime(i32 %5, ptr %2)
  %34 = load i64, ptr %2, align 8
  %35 = mul i64 %34, 1000000000
  %36 = load i64, ptr %6, align 8
  %37 = add i64 %35, %36
  %38 = icmp eq i64 %13, 0
  %39 = select i1 %38, i64 %37, i64 %13
  %40 = sub i64 %37, %39
  %41 = icmp slt i64 %40, %8
  br i1 %41, label %42, label %46

42:
  %43 = phi i64 [ %39, %32 ], [ 0, %57 ]
  br label %12

44:
  %45 = icmp slt i32 %30, %3
  br i1 %45, label %60, label %46

46:
  %47 = call i32 @pthread_mutex_lock(ptr @mutex)
  %48 = atomicrmw add ptr @sleepers, i64 1 seq_cst, align 8
  %49 = load atomic i64, ptr @state seq_cst, align 64
  %50 = lshr i64 %49, 32
  %51 = icmp ne i64 %50, %10
  %52 = and i64 %49, 2147483648
  %53 = icmp ne i64 %52, 0
  %54 = and i1 %51, %53
  br i1 %54, label %57, label %55

55:
  %56 = call i32 @pthread_cond_wait(ptr @work, ptr @mutex)
  br label %57

57:
  %58 = atomicrmw sub ptr @sleepers, i64 1 seq_cst, align 8
  %59 = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %42

60:
  %61 = load atomic i64, ptr @state acquire, align 64
  %62 = and i64 %61, 2147418112
  %63 = icmp eq i64 %62, 0
  br i1 %63, label %64, label %66

64:
  %65 = lshr i64 %61, 32
  br label %9

66:
  %67 = and i64 %61, 2147483648
  %68 = icmp eq i64 %67, 0
  br i1 %68, label %73, label %69

69:
  %70 = add nsw i64 %61, -65535
  %71 = cmpxchg ptr @state, i64 %61, i64 %70 seq_cst monotonic, align 64
  %72 = extractvalue { i64, i1 } %71, 1
  br i1 %72, label %74, label %73

73:
  br label %11

74:
  %75 = atomicrmw add ptr getelementptr inbounds (i8, ptr @counts, i64 16), i64 1 monotonic, align 8
  %76 = load ptr, ptr @function, align 64
  %77 = load ptr, ptr @context, align 8
  %78 = load i64, ptr @blocks, align 8
  %79 = atomicrmw add ptr @given, i64 1 monotonic, align 64
  %80 = icmp slt i64 %79, %78
  br i1 %80, label %81, label %89

81:
  %82 = phi i64 [ %86, %81 ], [ 0, %74 ]
  %83 = atomicrmw add ptr @from_behind, i64 1 monotonic, align 64
  %84 = xor i64 %83, -1
  %85 = add i64 %78, %84
  call void %76(ptr %77, i64 %85)
  %86 = add i64 %82, 1
  %87 = atomicrmw add ptr @given, i64 1 monotonic, align 64
  %88 = icmp slt i64 %87, %78
  br i1 %88, label %81, label %89

89:
  %90 = phi i64 [ 0, %74 ], [ %86, %81 ]
  %91 = atomicrmw add ptr getelementptr inbounds (i8, ptr @counts, i64 32), i64 %90 monotonic, align 8
  %92 = atomicrmw sub ptr @state, i64 1 seq_cst, align 64
  %93 = and i64 %92, 2147549183
  %94 = icmp eq i64 %93, 1
  br i1 %94, label %95, label %64

95:
  %96 = load atomic i64, ptr @waiting seq_cst, align 8
  %97 = icmp eq i64 %96, 0
  br i1 %97, label %64, label %98

98:
  %99 = call i32 @pthread_mutex_lock(ptr @mutex)
  %100 = call i32 @pthread_cond_signal(ptr @done)
  %101 = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %64
}

declare i32 @pthread_detach(i64)

declare void @relax()

declare i32 @clock_gettime(i32, ptr)

declare i32 @pthread_mutex_lock(ptr)

declare i32 @pthread_cond_wait(ptr, ptr)

declare i32 @pthread_mutex_unlock(ptr)

declare i32 @pthread_cond_signal(ptr)

declare i64 @llvm.smin.i64(i64, i64)
