; Made of entry.c by `python -m tools.ir`: clang 19.1.7, digest 1126bd647be1a7c44e7525d8091d31dc.
%struct.table = type { ptr, ptr, i64 }
%struct.held = type { ptr, [2 x i64] }
%struct.step = type { %union.anon, i32, i32, %union.anon.1, %union.anon.2, ptr, i64, i64, i64 }
%union.anon = type { i64 }
%union.anon.1 = type { i64 }
%union.anon.2 = type { ptr }
%struct.watch = type { ptr, ptr, i64, i64, i64, i64, ptr }
%struct.pair = type { i64, i64 }
%struct.output = type { ptr, ptr, ptr, i64, i64, i64, ptr, i64 }
%struct.guard = type { i64, i64, i64 }
%struct.making = type { i64, i64, %union.anon.3 }
%union.anon.3 = type { ptr }

@ndarray = internal global ptr null, align 8
@suspensions = internal global ptr null, align 8
@out_name = internal global ptr null, align 8
@frame_offset = internal global i64 0, align 8

define void @initialise(ptr %0, ptr %1, ptr %2, i64 %3) nounwind {
  store ptr %0, ptr @ndarray, align 8
  store ptr %1, ptr @suspensions, align 8
  store ptr %2, ptr @out_name, align 8
  store i64 %3, ptr @frame_offset, align 8
  ret void
}

define ptr @entry(ptr %0, ptr %1, i64 %2, ptr %3) {
  %5 = alloca i32, align 4
  %6 = alloca ptr, align 8
  %7 = alloca ptr, align 8
  %8 = alloca i64, align 8
  %9 = and i64 %2, 9223372036854775807
  %10 = load i64, ptr @frame_offset, align 8
  %11 = getelementptr i8, ptr %0, i64 %10
  %12 = load ptr, ptr @suspensions, align 8
  %13 = load i64, ptr %12, align 8
  %14 = icmp eq i64 %13, 0
  br i1 %14, label %15, label %492

15:
  %16 = icmp eq ptr %3, null
  br i1 %16, label %24, label %17

17:
  %18 = tail call i64 @PyTuple_Size(ptr %3)
  %19 = icmp eq i64 %18, 1
  br i1 %19, label %20, label %492

20:
  %21 = tail call ptr @PyTuple_GetItem(ptr %3, i64 0)
  %22 = load ptr, ptr @out_name, align 8
  %23 = icmp eq ptr %21, %22
  br i1 %23, label %24, label %492

24:
  %25 = load ptr, ptr %11, align 8
  %26 = icmp eq ptr %25, null
  br i1 %26, label %492, label %27

27:
  %28 = phi ptr [ %488, %486 ], [ %25, %24 ]
  %29 = getelementptr inbounds i8, ptr %28, i64 16
  %30 = load ptr, ptr %29, align 8
  %31 = load i64, ptr %30, align 8
  %32 = getelementptr inbounds i8, ptr %30, i64 184
  %33 = load ptr, ptr %32, align 8
  %34 = load i64, ptr %33, align 8
  %35 = or i64 %34, %31
  %36 = icmp eq i64 %35, 0
  br i1 %36, label %37, label %486

37:
  %38 = getelementptr inbounds i8, ptr %30, i64 32
  %39 = load i64, ptr %38, align 8
  %40 = icmp eq i64 %39, %9
  br i1 %40, label %41, label %486

41:
  %42 = getelementptr inbounds i8, ptr %30, i64 112
  %43 = load i64, ptr %42, align 8
  br i1 %16, label %47, label %44

44:
  %45 = getelementptr inbounds i8, ptr %30, i64 168
  %46 = load i64, ptr %45, align 8
  br label %47

47:
  %48 = phi i64 [ %46, %44 ], [ 0, %41 ]
  %49 = icmp ne i64 %43, 0
  %50 = icmp ne i64 %48, 0
  %51 = select i1 %16, i1 true, i1 %50
  %52 = select i1 %49, i1 %51, i1 false
  br i1 %52, label %53, label %486

53:
  %54 = getelementptr inbounds i8, ptr %30, i64 40
  %55 = getelementptr inbounds i8, ptr %30, i64 48
  %56 = load i64, ptr %55, align 8
  %57 = getelementptr i8, ptr %30, i64 %56
  %58 = getelementptr inbounds i8, ptr %30, i64 56
  %59 = load i64, ptr %58, align 8
  %60 = getelementptr i8, ptr %30, i64 %59
  %61 = load i64, ptr %54, align 8
  %62 = add i64 %61, %48
  %63 = getelementptr inbounds i8, ptr %30, i64 192
  %64 = getelementptr inbounds i8, ptr %30, i64 200
  %65 = load i64, ptr %64, align 8
  %66 = getelementptr i8, ptr %30, i64 %65
  %67 = load i64, ptr %63, align 8
  %68 = icmp eq i64 %67, 0
  br i1 %68, label %93, label %72

69:
  %70 = add nuw i64 %73, 1
  %71 = icmp eq i64 %70, %67
  br i1 %71, label %93, label %72

72:
  %73 = phi i64 [ %70, %69 ], [ 0, %53 ]
  %74 = getelementptr %struct.table, ptr %66, i64 %73
  %75 = load ptr, ptr %74, align 8
  %76 = getelementptr inbounds i8, ptr %75, i64 32
  %77 = load ptr, ptr %76, align 8
  %78 = getelementptr inbounds i8, ptr %74, i64 8
  %79 = load ptr, ptr %78, align 8
  %80 = icmp eq ptr %77, %79
  br i1 %80, label %81, label %486

81:
  %82 = getelementptr inbounds i8, ptr %75, i64 40
  %83 = load ptr, ptr %82, align 8
  %84 = icmp eq ptr %83, null
  br i1 %84, label %85, label %486

85:
  %86 = getelementptr inbounds i8, ptr %77, i64 8
  %87 = load i32, ptr %86, align 8
  %88 = and i32 %87, 16777215
  %89 = zext nneg i32 %88 to i64
  %90 = getelementptr inbounds i8, ptr %74, i64 16
  %91 = load i64, ptr %90, align 8
  %92 = icmp eq i64 %91, %89
  br i1 %92, label %69, label %486

93:
  %94 = getelementptr inbounds i8, ptr %30, i64 208
  %95 = getelementptr inbounds i8, ptr %30, i64 216
  %96 = load i64, ptr %95, align 8
  %97 = getelementptr i8, ptr %30, i64 %96
  %98 = load i64, ptr %94, align 8
  %99 = icmp eq i64 %98, 0
  br i1 %99, label %120, label %100

100:
  %101 = phi i64 [ %116, %100 ], [ 0, %93 ]
  %102 = phi i64 [ %115, %100 ], [ 0, %93 ]
  %103 = getelementptr %struct.held, ptr %97, i64 %101
  %104 = load ptr, ptr %103, align 8
  %105 = load i64, ptr %104, align 8
  %106 = getelementptr inbounds i8, ptr %103, i64 8
  %107 = load i64, ptr %106, align 8
  %108 = xor i64 %107, %105
  %109 = getelementptr i8, ptr %104, i64 8
  %110 = load i64, ptr %109, align 8
  %111 = getelementptr i8, ptr %103, i64 16
  %112 = load i64, ptr %111, align 8
  %113 = xor i64 %112, %110
  %114 = or i64 %108, %102
  %115 = or i64 %114, %113
  %116 = add nuw i64 %101, 1
  %117 = icmp eq i64 %116, %98
  br i1 %117, label %118, label %100

118:
  %119 = icmp eq i64 %115, 0
  br i1 %119, label %120, label %486

120:
  %121 = icmp eq i64 %62, 0
  br i1 %121, label %458, label %122

122:
  %123 = phi i64 [ %455, %454 ], [ 0, %120 ]
  %124 = getelementptr %struct.step, ptr %57, i64 %123
  %125 = load i64, ptr %124, align 8
  %126 = icmp eq i64 %125, 4294967296
  %127 = trunc i64 %125 to i32
  %128 = lshr i64 %125, 32
  %129 = trunc nuw i64 %128 to i32
  br i1 %126, label %130, label %181

130:
  %131 = getelementptr inbounds i8, ptr %124, i64 16
  %132 = load i64, ptr %131, align 8
  %133 = getelementptr ptr, ptr %1, i64 %132
  %134 = load ptr, ptr %133, align 8
  %135 = getelementptr ptr, ptr %60, i64 %123
  store ptr %134, ptr %135, align 8
  %136 = getelementptr inbounds i8, ptr %134, i64 8
  %137 = load ptr, ptr %136, align 8
  %138 = load ptr, ptr @ndarray, align 8
  %139 = icmp eq ptr %137, %138
  br i1 %139, label %140, label %457

140:
  %141 = getelementptr inbounds i8, ptr %134, i64 56
  %142 = load ptr, ptr %141, align 8
  %143 = getelementptr inbounds i8, ptr %124, i64 32
  %144 = load ptr, ptr %143, align 8
  %145 = icmp ne ptr %142, %144
  %146 = getelementptr inbounds i8, ptr %134, i64 24
  %147 = load i32, ptr %146, align 8
  %148 = getelementptr inbounds i8, ptr %124, i64 12
  %149 = load i32, ptr %148, align 4
  %150 = icmp ne i32 %147, %149
  %151 = or i1 %145, %150
  %152 = getelementptr inbounds i8, ptr %134, i64 64
  %153 = load i32, ptr %152, align 8
  %154 = and i32 %153, 257
  %155 = icmp ne i32 %154, 257
  %156 = or i1 %151, %155
  br i1 %156, label %457, label %157

157:
  %158 = getelementptr inbounds i8, ptr %134, i64 32
  %159 = load ptr, ptr %158, align 8
  %160 = getelementptr inbounds i8, ptr %124, i64 40
  %161 = load i64, ptr %160, align 8
  %162 = getelementptr i8, ptr %30, i64 %161
  %163 = sext i32 %147 to i64
  %164 = icmp eq i32 %147, 0
  br i1 %164, label %175, label %168

165:
  %166 = add nuw i64 %169, 1
  %167 = icmp eq i64 %166, %163
  br i1 %167, label %175, label %168

168:
  %169 = phi i64 [ %166, %165 ], [ 0, %157 ]
  %170 = getelementptr i64, ptr %159, i64 %169
  %171 = load i64, ptr %170, align 8
  %172 = getelementptr i64, ptr %162, i64 %169
  %173 = load i64, ptr %172, align 8
  %174 = icmp eq i64 %171, %173
  br i1 %174, label %165, label %457

175:
  %176 = getelementptr inbounds i8, ptr %134, i64 16
  %177 = load ptr, ptr %176, align 8
  %178 = getelementptr inbounds i8, ptr %124, i64 48
  %179 = load i64, ptr %178, align 8
  %180 = getelementptr i8, ptr %30, i64 %179
  store ptr %177, ptr %180, align 8
  br label %454

181:
  %182 = icmp eq i32 %127, 3
  br i1 %182, label %183, label %253

183:
  %184 = getelementptr inbounds i8, ptr %124, i64 4
  switch i32 %129, label %185 [
    i32 1, label %195
    i32 12, label %195
  ]

185:
  %186 = getelementptr inbounds i8, ptr %124, i64 16
  %187 = load ptr, ptr %186, align 8
  %188 = getelementptr inbounds i8, ptr %124, i64 8
  %189 = load i32, ptr %188, align 8
  %190 = zext i32 %189 to i64
  %191 = getelementptr ptr, ptr %60, i64 %190
  %192 = ptrtoint ptr %187 to i64
  %193 = load ptr, ptr %191, align 8
  %194 = call ptr @PyList_GetItem(ptr %193, i64 %192)
  br label %346

195:
  %196 = getelementptr inbounds i8, ptr %124, i64 8
  %197 = load i32, ptr %196, align 8
  %198 = zext i32 %197 to i64
  %199 = getelementptr ptr, ptr %60, i64 %198
  %200 = load ptr, ptr %199, align 8
  %201 = getelementptr inbounds i8, ptr %124, i64 16
  %202 = load i64, ptr %201, align 8
  %203 = call ptr @PyList_GetItem(ptr %200, i64 %202)
  %204 = getelementptr ptr, ptr %60, i64 %123
  store ptr %203, ptr %204, align 8
  %205 = getelementptr inbounds i8, ptr %203, i64 8
  %206 = load ptr, ptr %205, align 8
  %207 = load ptr, ptr @ndarray, align 8
  %208 = icmp eq ptr %206, %207
  br i1 %208, label %209, label %457

209:
  %210 = load i32, ptr %184, align 4
  %211 = icmp eq i32 %210, 12
  %212 = getelementptr inbounds i8, ptr %203, i64 56
  %213 = load ptr, ptr %212, align 8
  %214 = getelementptr inbounds i8, ptr %124, i64 32
  %215 = load ptr, ptr %214, align 8
  %216 = icmp ne ptr %213, %215
  %217 = getelementptr inbounds i8, ptr %203, i64 24
  %218 = load i32, ptr %217, align 8
  %219 = getelementptr inbounds i8, ptr %124, i64 12
  %220 = load i32, ptr %219, align 4
  %221 = icmp ne i32 %218, %220
  %222 = or i1 %216, %221
  %223 = getelementptr inbounds i8, ptr %203, i64 64
  %224 = load i32, ptr %223, align 8
  %225 = select i1 %211, i32 -1282, i32 -258
  %226 = or i32 %224, %225
  %227 = icmp ne i32 %226, -1
  %228 = or i1 %222, %227
  br i1 %228, label %457, label %229

229:
  %230 = getelementptr inbounds i8, ptr %203, i64 32
  %231 = load ptr, ptr %230, align 8
  %232 = getelementptr inbounds i8, ptr %124, i64 40
  %233 = load i64, ptr %232, align 8
  %234 = getelementptr i8, ptr %30, i64 %233
  %235 = sext i32 %218 to i64
  %236 = icmp eq i32 %218, 0
  br i1 %236, label %247, label %240

237:
  %238 = add nuw i64 %241, 1
  %239 = icmp eq i64 %238, %235
  br i1 %239, label %247, label %240

240:
  %241 = phi i64 [ %238, %237 ], [ 0, %229 ]
  %242 = getelementptr i64, ptr %231, i64 %241
  %243 = load i64, ptr %242, align 8
  %244 = getelementptr i64, ptr %234, i64 %241
  %245 = load i64, ptr %244, align 8
  %246 = icmp eq i64 %243, %245
  br i1 %246, label %237, label %457

247:
  %248 = getelementptr inbounds i8, ptr %203, i64 16
  %249 = load ptr, ptr %248, align 8
  %250 = getelementptr inbounds i8, ptr %124, i64 48
  %251 = load i64, ptr %250, align 8
  %252 = getelementptr i8, ptr %30, i64 %251
  store ptr %249, ptr %252, align 8
  br label %454

253:
  %254 = getelementptr inbounds i8, ptr %124, i64 16
  %255 = load ptr, ptr %254, align 8
  %256 = getelementptr inbounds i8, ptr %124, i64 8
  %257 = load i32, ptr %256, align 8
  %258 = zext i32 %257 to i64
  %259 = getelementptr ptr, ptr %60, i64 %258
  %260 = ptrtoint ptr %255 to i64
  switch i32 %127, label %457 [
    i32 0, label %261
    i32 1, label %346
    i32 2, label %264
    i32 16, label %334
    i32 4, label %267
    i32 13, label %267
    i32 5, label %278
    i32 17, label %278
    i32 6, label %279
    i32 18, label %279
    i32 7, label %299
    i32 8, label %303
    i32 9, label %305
    i32 10, label %307
    i32 14, label %309
    i32 11, label %325
    i32 15, label %328
    i32 12, label %336
  ]

261:
  %262 = getelementptr ptr, ptr %1, i64 %260
  %263 = load ptr, ptr %262, align 8
  br label %346

264:
  %265 = load ptr, ptr %259, align 8
  %266 = call ptr @PyTuple_GetItem(ptr %265, i64 %260)
  br label %346

267:
  %268 = icmp eq i32 %127, 13
  %269 = getelementptr inbounds i8, ptr %124, i64 24
  %270 = select i1 %268, ptr %269, ptr %259
  %271 = load ptr, ptr %270, align 8
  %272 = call ptr @PyDict_GetItemWithError(ptr %271, ptr %255)
  %273 = icmp eq ptr %272, null
  br i1 %273, label %274, label %346

274:
  %275 = call ptr @PyErr_Occurred()
  %276 = icmp eq ptr %275, null
  br i1 %276, label %346, label %277

277:
  call void @PyErr_Clear()
  br label %457

278:
  store i64 0, ptr %8, align 8
  br label %279

279:
  %280 = load ptr, ptr %259, align 8
  %281 = call i32 @PyDict_Next(ptr %280, ptr %8, ptr %6, ptr %7)
  %282 = icmp eq i32 %281, 0
  br i1 %282, label %342, label %283

283:
  %284 = load ptr, ptr %6, align 8
  %285 = load ptr, ptr %254, align 8
  %286 = icmp eq ptr %284, %285
  br i1 %286, label %343, label %287

287:
  %288 = load i32, ptr %124, align 8
  %289 = icmp slt i32 %288, 17
  br i1 %289, label %342, label %290

290:
  %291 = getelementptr inbounds i8, ptr %284, i64 8
  %292 = load ptr, ptr %291, align 8
  %293 = getelementptr inbounds i8, ptr %285, i64 8
  %294 = load ptr, ptr %293, align 8
  %295 = icmp eq ptr %292, %294
  br i1 %295, label %296, label %342

296:
  %297 = call i32 @PyObject_RichCompareBool(ptr %284, ptr %285, i32 2)
  %298 = icmp eq i32 %297, 1
  br i1 %298, label %343, label %342

299:
  %300 = call ptr @PyCell_Get(ptr %255)
  %301 = icmp eq ptr %300, null
  br i1 %301, label %346, label %302

302:
  call void @Py_DecRef(ptr %300)
  br label %346

303:
  %304 = call ptr @PyFunction_GetCode(ptr %255)
  br label %346

305:
  %306 = call ptr @PyFunction_GetDefaults(ptr %255)
  br label %346

307:
  %308 = call ptr @PyFunction_GetKwDefaults(ptr %255)
  br label %346

309:
  %310 = call ptr @PyFunction_GetCode(ptr %255)
  %311 = call ptr @PyFunction_GetDefaults(ptr %255)
  %312 = call ptr @PyFunction_GetKwDefaults(ptr %255)
  %313 = getelementptr inbounds i8, ptr %124, i64 24
  %314 = load ptr, ptr %313, align 8
  %315 = icmp eq ptr %310, %314
  %316 = getelementptr inbounds i8, ptr %124, i64 32
  %317 = load ptr, ptr %316, align 8
  %318 = icmp eq ptr %311, %317
  %319 = and i1 %315, %318
  %320 = ptrtoint ptr %312 to i64
  %321 = getelementptr inbounds i8, ptr %124, i64 40
  %322 = load i64, ptr %321, align 8
  %323 = icmp eq i64 %322, %320
  %324 = and i1 %319, %323
  br i1 %324, label %346, label %457

325:
  %326 = getelementptr inbounds i8, ptr %255, i64 8
  %327 = load ptr, ptr %326, align 8
  br label %346

328:
  %329 = load ptr, ptr %259, align 8
  %330 = call ptr @PyObject_GenericGetAttr(ptr %329, ptr %255)
  %331 = icmp eq ptr %330, null
  br i1 %331, label %333, label %332

332:
  call void @Py_DecRef(ptr %330)
  br label %346

333:
  call void @PyErr_Clear()
  br label %457

334:
  %335 = load ptr, ptr %259, align 8
  br label %336

336:
  %337 = phi ptr [ %335, %334 ], [ %255, %253 ]
  %338 = call ptr @PyObject_GenericGetDict(ptr %337, ptr null)
  %339 = icmp eq ptr %338, null
  br i1 %339, label %341, label %340

340:
  call void @Py_DecRef(ptr %338)
  br label %346

341:
  call void @PyErr_Clear()
  br label %457

342:
  br label %457

343:
  %344 = load ptr, ptr %7, align 8
  %345 = icmp eq ptr %344, null
  br i1 %345, label %457, label %346

346:
  %347 = phi ptr [ %344, %343 ], [ %255, %309 ], [ %330, %332 ], [ %338, %340 ], [ %263, %261 ], [ %266, %264 ], [ %194, %185 ], [ %272, %267 ], [ null, %274 ], [ %300, %302 ], [ null, %299 ], [ %304, %303 ], [ %306, %305 ], [ %308, %307 ], [ %327, %325 ], [ %255, %253 ]
  %348 = getelementptr ptr, ptr %60, i64 %123
  store ptr %347, ptr %348, align 8
  %349 = getelementptr inbounds i8, ptr %124, i64 4
  %350 = load i32, ptr %349, align 4
  %351 = icmp eq i32 %350, 0
  br i1 %351, label %352, label %357

352:
  %353 = getelementptr inbounds i8, ptr %124, i64 32
  %354 = load ptr, ptr %353, align 8
  %355 = icmp eq ptr %354, %347
  %356 = freeze i1 %355
  br i1 %356, label %454, label %457

357:
  %358 = icmp eq ptr %347, null
  br i1 %358, label %457, label %359

359:
  %360 = icmp eq i32 %350, 9
  br i1 %360, label %454, label %361

361:
  %362 = getelementptr inbounds i8, ptr %124, i64 48
  %363 = load i64, ptr %362, align 8
  %364 = getelementptr i8, ptr %30, i64 %363
  %365 = and i32 %350, -2
  %366 = icmp eq i32 %365, 10
  %367 = getelementptr inbounds i8, ptr %347, i64 8
  %368 = load ptr, ptr %367, align 8
  br i1 %366, label %369, label %380

369:
  %370 = getelementptr inbounds i8, ptr %124, i64 32
  %371 = load ptr, ptr %370, align 8
  %372 = icmp eq ptr %368, %371
  br i1 %372, label %373, label %380

373:
  %374 = call double @PyFloat_AsDouble(ptr %347)
  %375 = load i32, ptr %349, align 4
  %376 = icmp eq i32 %375, 10
  br i1 %376, label %377, label %378

377:
  store double %374, ptr %364, align 8
  br label %454

378:
  %379 = fptrunc double %374 to float
  store float %379, ptr %364, align 4
  br label %454

380:
  %381 = getelementptr inbounds i8, ptr %124, i64 24
  %382 = load ptr, ptr %381, align 8
  %383 = icmp eq ptr %368, %382
  br i1 %383, label %384, label %457

384:
  switch i32 %350, label %457 [
    i32 1, label %385
    i32 12, label %385
    i32 2, label %425
    i32 3, label %449
    i32 4, label %427
    i32 5, label %430
    i32 10, label %430
    i32 11, label %430
    i32 6, label %431
    i32 7, label %437
    i32 8, label %443
    i32 13, label %454
  ]

385:
  %386 = icmp eq i32 %350, 12
  %387 = getelementptr inbounds i8, ptr %347, i64 56
  %388 = load ptr, ptr %387, align 8
  %389 = getelementptr inbounds i8, ptr %124, i64 32
  %390 = load ptr, ptr %389, align 8
  %391 = icmp ne ptr %388, %390
  %392 = getelementptr inbounds i8, ptr %347, i64 24
  %393 = load i32, ptr %392, align 8
  %394 = getelementptr inbounds i8, ptr %124, i64 12
  %395 = load i32, ptr %394, align 4
  %396 = icmp ne i32 %393, %395
  %397 = or i1 %391, %396
  %398 = getelementptr inbounds i8, ptr %347, i64 64
  %399 = load i32, ptr %398, align 8
  %400 = select i1 %386, i32 -1282, i32 -258
  %401 = or i32 %399, %400
  %402 = icmp ne i32 %401, -1
  %403 = or i1 %397, %402
  br i1 %403, label %457, label %404

404:
  %405 = getelementptr inbounds i8, ptr %347, i64 32
  %406 = load ptr, ptr %405, align 8
  %407 = getelementptr inbounds i8, ptr %124, i64 40
  %408 = load i64, ptr %407, align 8
  %409 = getelementptr i8, ptr %30, i64 %408
  %410 = sext i32 %393 to i64
  %411 = icmp eq i32 %393, 0
  br i1 %411, label %422, label %415

412:
  %413 = add nuw i64 %416, 1
  %414 = icmp eq i64 %413, %410
  br i1 %414, label %422, label %415

415:
  %416 = phi i64 [ %413, %412 ], [ 0, %404 ]
  %417 = getelementptr i64, ptr %406, i64 %416
  %418 = load i64, ptr %417, align 8
  %419 = getelementptr i64, ptr %409, i64 %416
  %420 = load i64, ptr %419, align 8
  %421 = icmp eq i64 %418, %420
  br i1 %421, label %412, label %457

422:
  %423 = getelementptr inbounds i8, ptr %347, i64 16
  %424 = load ptr, ptr %423, align 8
  store ptr %424, ptr %364, align 8
  br label %454

425:
  %426 = call double @PyFloat_AsDouble(ptr %347)
  store double %426, ptr %364, align 8
  br label %454

427:
  %428 = call i32 @PyObject_IsTrue(ptr %347)
  %429 = trunc i32 %428 to i8
  store i8 %429, ptr %364, align 1
  br label %454

430:
  call void @PyArray_ScalarAsCtype(ptr %347, ptr %364)
  br label %454

431:
  %432 = call i64 @PyTuple_Size(ptr %347)
  %433 = getelementptr inbounds i8, ptr %124, i64 40
  %434 = load i64, ptr %433, align 8
  %435 = icmp eq i64 %432, %434
  %436 = freeze i1 %435
  br i1 %436, label %454, label %457

437:
  %438 = call i64 @PyList_Size(ptr %347)
  %439 = getelementptr inbounds i8, ptr %124, i64 40
  %440 = load i64, ptr %439, align 8
  %441 = icmp eq i64 %438, %440
  %442 = freeze i1 %441
  br i1 %442, label %454, label %457

443:
  %444 = call i64 @PyDict_Size(ptr %347)
  %445 = getelementptr inbounds i8, ptr %124, i64 40
  %446 = load i64, ptr %445, align 8
  %447 = icmp eq i64 %444, %446
  %448 = freeze i1 %447
  br i1 %448, label %454, label %457

449:
  %450 = call i64 @PyLong_AsLongLongAndOverflow(ptr %347, ptr %5)
  store i64 %450, ptr %364, align 8
  %451 = load i32, ptr %5, align 4
  %452 = freeze i32 %451
  %453 = icmp eq i32 %452, 0
  br i1 %453, label %454, label %457

454:
  %455 = add nuw i64 %123, 1
  %456 = icmp eq i64 %455, %62
  br i1 %456, label %458, label %122

457:
  br label %486

458:
  %459 = call fastcc i1 @arrays_are_right(ptr %30, ptr %57, ptr %60, i1 %16)
  br i1 %459, label %460, label %486

460:
  store i64 1, ptr %30, align 8
  %461 = load ptr, ptr %32, align 8
  store i64 1, ptr %461, align 8
  %462 = getelementptr inbounds i8, ptr %30, i64 24
  %463 = load i64, ptr %462, align 8
  %464 = icmp eq i64 %463, 0
  br i1 %464, label %466, label %465

465:
  call fastcc void @hold(ptr %60, i64 %62)
  br label %466

466:
  %467 = call fastcc i1 @prepare_outputs(ptr %30, i1 %16)
  br i1 %467, label %468, label %490

468:
  %469 = call fastcc i64 @run(ptr %30)
  %470 = icmp eq i64 %469, 0
  br i1 %470, label %471, label %473

471:
  %472 = call fastcc i1 @guards_hold(ptr %30)
  br i1 %472, label %474, label %473

473:
  call fastcc void @leave(ptr %30, ptr %60, i64 %62)
  br label %486

474:
  %475 = icmp sgt i64 %43, 0
  br i1 %475, label %476, label %479

476:
  %477 = getelementptr inbounds i8, ptr %30, i64 112
  %478 = add nsw i64 %43, -1
  store i64 %478, ptr %477, align 8
  br label %479

479:
  %480 = getelementptr inbounds i8, ptr %11, i64 8
  store ptr %30, ptr %480, align 8
  br i1 %16, label %481, label %483

481:
  %482 = call fastcc ptr @make_result(ptr %30, ptr %60)
  br label %490

483:
  %484 = getelementptr ptr, ptr %1, i64 %9
  %485 = load ptr, ptr %484, align 8
  call void @Py_IncRef(ptr %485)
  br label %490

486:
  %487 = getelementptr inbounds i8, ptr %30, i64 8
  %488 = load ptr, ptr %487, align 8
  %489 = icmp eq ptr %488, null
  br i1 %489, label %492, label %27

490:
  %491 = phi ptr [ %482, %481 ], [ %485, %483 ], [ null, %466 ]
  call fastcc void @leave(ptr %30, ptr %60, i64 %62)
  br label %494

492:
  %493 = call fastcc ptr @call_in_python(ptr %0, ptr %1, i64 %9, ptr %3)
  br label %494

494:
  %495 = phi ptr [ %493, %492 ], [ %491, %490 ]
  ret ptr %495
}

declare i64 @PyTuple_Size(ptr)

declare ptr @PyTuple_GetItem(ptr, i64)

define internal fastcc ptr @call_in_python(ptr %0, ptr %1, i64 %2, ptr %3) {
  %5 = tail call ptr @PyTuple_New(i64 %2)
  %6 = icmp eq ptr %5, null
  br i1 %6, label %45, label %7

7:
  %8 = icmp eq i64 %2, 0
  br i1 %8, label %9, label %11

9:
  %10 = icmp eq ptr %3, null
  br i1 %10, label %36, label %19

11:
  %12 = phi i64 [ %17, %11 ], [ 0, %7 ]
  %13 = getelementptr ptr, ptr %1, i64 %12
  %14 = load ptr, ptr %13, align 8
  tail call void @Py_IncRef(ptr %14)
  %15 = load ptr, ptr %13, align 8
  %16 = tail call i32 @PyTuple_SetItem(ptr %5, i64 %12, ptr %15)
  %17 = add nuw i64 %12, 1
  %18 = icmp eq i64 %17, %2
  br i1 %18, label %9, label %11

19:
  %20 = tail call ptr @PyDict_New()
  %21 = icmp eq ptr %20, null
  br i1 %21, label %42, label %22

22:
  %23 = tail call i64 @PyTuple_Size(ptr %3)
  %24 = getelementptr ptr, ptr %1, i64 %2
  %25 = icmp eq i64 %23, 0
  br i1 %25, label %36, label %29

26:
  %27 = add nuw i64 %30, 1
  %28 = icmp eq i64 %27, %23
  br i1 %28, label %36, label %29

29:
  %30 = phi i64 [ %27, %26 ], [ 0, %22 ]
  %31 = tail call ptr @PyTuple_GetItem(ptr %3, i64 %30)
  %32 = getelementptr ptr, ptr %24, i64 %30
  %33 = load ptr, ptr %32, align 8
  %34 = tail call i32 @PyDict_SetItem(ptr %20, ptr %31, ptr %33)
  %35 = icmp eq i32 %34, 0
  br i1 %35, label %26, label %42

36:
  %37 = phi ptr [ null, %9 ], [ %20, %22 ], [ %20, %26 ]
  %38 = getelementptr inbounds i8, ptr %0, i64 8
  %39 = load ptr, ptr %38, align 8
  %40 = tail call ptr @PyType_GetSlot(ptr %39, i32 50)
  %41 = tail call ptr %40(ptr %0, ptr %5, ptr %37)
  br label %42

42:
  %43 = phi ptr [ %37, %36 ], [ null, %19 ], [ %20, %29 ]
  %44 = phi ptr [ %41, %36 ], [ null, %19 ], [ null, %29 ]
  tail call void @Py_DecRef(ptr %5)
  tail call void @Py_DecRef(ptr %43)
  br label %45

45:
  %46 = phi ptr [ null, %4 ], [ %44, %42 ]
  ret ptr %46
}

define internal fastcc i1 @arrays_are_right(ptr %0, ptr %1, ptr %2, i1 %3) nounwind {
  %5 = getelementptr inbounds i8, ptr %0, i64 136
  %6 = getelementptr inbounds i8, ptr %0, i64 144
  %7 = load i64, ptr %6, align 8
  %8 = getelementptr i8, ptr %0, i64 %7
  %9 = load i64, ptr %5, align 8
  %10 = icmp eq i64 %9, 0
  br i1 %10, label %62, label %11

11:
  %12 = phi i64 [ %60, %59 ], [ 0, %4 ]
  %13 = getelementptr %struct.watch, ptr %8, i64 %12
  %14 = load ptr, ptr %13, align 8
  %15 = getelementptr inbounds i8, ptr %14, i64 16
  %16 = load ptr, ptr %15, align 8
  %17 = getelementptr inbounds i8, ptr %13, i64 8
  %18 = load ptr, ptr %17, align 8
  %19 = icmp eq ptr %16, %18
  br i1 %19, label %20, label %101

20:
  %21 = getelementptr inbounds i8, ptr %13, i64 24
  %22 = load i64, ptr %21, align 8
  %23 = icmp slt i64 %22, 0
  br i1 %23, label %59, label %24

24:
  %25 = getelementptr inbounds i8, ptr %13, i64 32
  %26 = getelementptr inbounds i8, ptr %13, i64 40
  %27 = getelementptr inbounds i8, ptr %13, i64 48
  %28 = load ptr, ptr %27, align 8
  %29 = getelementptr inbounds i8, ptr %13, i64 16
  %30 = load i64, ptr %29, align 8
  br label %31

31:
  %32 = phi i64 [ 0, %24 ], [ %57, %56 ]
  %33 = icmp eq i64 %32, %22
  br i1 %33, label %34, label %36

34:
  %35 = load i64, ptr %26, align 8
  br label %39

36:
  %37 = load i64, ptr %25, align 8
  %38 = mul i64 %37, %32
  br label %39

39:
  %40 = phi i64 [ %35, %34 ], [ %38, %36 ]
  %41 = getelementptr i8, ptr %18, i64 %40
  %42 = mul i64 %30, %32
  %43 = getelementptr i8, ptr %28, i64 %42
  switch i64 %30, label %101 [
    i64 8, label %52
    i64 4, label %44
    i64 1, label %48
  ]

44:
  %45 = load i32, ptr %41, align 1
  %46 = load i32, ptr %43, align 1
  %47 = icmp eq i32 %45, %46
  br i1 %47, label %56, label %101

48:
  %49 = load i8, ptr %41, align 1
  %50 = load i8, ptr %43, align 1
  %51 = icmp eq i8 %49, %50
  br i1 %51, label %56, label %101

52:
  %53 = load i64, ptr %41, align 1
  %54 = load i64, ptr %43, align 1
  %55 = icmp eq i64 %53, %54
  br i1 %55, label %56, label %101

56:
  %57 = add i64 %32, 1
  %58 = icmp sgt i64 %57, %22
  br i1 %58, label %59, label %31

59:
  %60 = add nuw i64 %12, 1
  %61 = icmp eq i64 %60, %9
  br i1 %61, label %62, label %11

62:
  %63 = getelementptr inbounds i8, ptr %0, i64 152
  %64 = getelementptr inbounds i8, ptr %0, i64 160
  %65 = load i64, ptr %64, align 8
  %66 = getelementptr i8, ptr %0, i64 %65
  %67 = load i64, ptr %63, align 8
  br i1 %3, label %71, label %68

68:
  %69 = getelementptr inbounds i8, ptr %0, i64 176
  %70 = load i64, ptr %69, align 8
  br label %71

71:
  %72 = phi i64 [ %70, %68 ], [ 0, %62 ]
  %73 = add i64 %72, %67
  %74 = icmp eq i64 %73, 0
  br i1 %74, label %101, label %75

75:
  %76 = phi i64 [ %99, %98 ], [ 0, %71 ]
  %77 = getelementptr %struct.pair, ptr %66, i64 %76
  %78 = load i64, ptr %77, align 8
  %79 = getelementptr inbounds i8, ptr %77, i64 8
  %80 = load i64, ptr %79, align 8
  %81 = getelementptr ptr, ptr %2, i64 %78
  %82 = load ptr, ptr %81, align 8
  %83 = getelementptr inbounds i8, ptr %82, i64 16
  %84 = load ptr, ptr %83, align 8
  %85 = getelementptr ptr, ptr %2, i64 %80
  %86 = load ptr, ptr %85, align 8
  %87 = getelementptr inbounds i8, ptr %86, i64 16
  %88 = load ptr, ptr %87, align 8
  %89 = getelementptr %struct.step, ptr %1, i64 %78, i32 8
  %90 = load i64, ptr %89, align 8
  %91 = getelementptr i8, ptr %84, i64 %90
  %92 = icmp ugt ptr %91, %88
  br i1 %92, label %93, label %98

93:
  %94 = getelementptr %struct.step, ptr %1, i64 %80, i32 8
  %95 = load i64, ptr %94, align 8
  %96 = getelementptr i8, ptr %88, i64 %95
  %97 = icmp ugt ptr %96, %84
  br i1 %97, label %101, label %98

98:
  %99 = add nuw i64 %76, 1
  %100 = icmp eq i64 %99, %73
  br i1 %100, label %101, label %75

101:
  %102 = phi i1 [ true, %71 ], [ false, %93 ], [ true, %98 ], [ false, %52 ], [ false, %48 ], [ false, %44 ], [ false, %39 ], [ false, %11 ]
  ret i1 %102
}

define internal fastcc void @hold(ptr %0, i64 %1) {
  %3 = icmp eq i64 %1, 0
  br i1 %3, label %4, label %5

4:
  ret void

5:
  %6 = phi i64 [ %9, %5 ], [ 0, %2 ]
  %7 = getelementptr ptr, ptr %0, i64 %6
  %8 = load ptr, ptr %7, align 8
  tail call void @Py_IncRef(ptr %8)
  %9 = add nuw i64 %6, 1
  %10 = icmp eq i64 %9, %1
  br i1 %10, label %4, label %5
}

define internal fastcc i1 @prepare_outputs(ptr %0, i1 %1) {
  %3 = getelementptr inbounds i8, ptr %0, i64 64
  %4 = getelementptr inbounds i8, ptr %0, i64 72
  %5 = load i64, ptr %4, align 8
  %6 = getelementptr i8, ptr %0, i64 %5
  %7 = load i64, ptr %3, align 8
  br i1 %1, label %12, label %8

8:
  %9 = getelementptr inbounds i8, ptr %0, i64 120
  %10 = load i64, ptr %9, align 8
  %11 = sub i64 %7, %10
  br label %12

12:
  %13 = phi i64 [ %11, %8 ], [ 0, %2 ]
  %14 = icmp eq i64 %13, %7
  br i1 %14, label %64, label %15

15:
  %16 = phi i64 [ %61, %60 ], [ %13, %12 ]
  %17 = getelementptr %struct.output, ptr %6, i64 %16
  %18 = getelementptr inbounds i8, ptr %17, i64 40
  %19 = load i64, ptr %18, align 8
  %20 = icmp eq i64 %19, 0
  br i1 %20, label %60, label %21

21:
  %22 = getelementptr i8, ptr %0, i64 %19
  %23 = getelementptr inbounds i8, ptr %17, i64 56
  %24 = load i64, ptr %23, align 8
  %25 = icmp eq i64 %24, 0
  br i1 %25, label %28, label %26

26:
  %27 = getelementptr i8, ptr %0, i64 %24
  br label %58

28:
  %29 = load ptr, ptr %17, align 8
  %30 = getelementptr inbounds i8, ptr %17, i64 8
  %31 = load ptr, ptr %30, align 8
  %32 = tail call fastcc i1 @may_be_written(ptr %0, ptr %17, ptr %29)
  br i1 %32, label %52, label %33

33:
  %34 = tail call fastcc i1 @may_be_written(ptr %0, ptr %17, ptr %31)
  br i1 %34, label %50, label %35

35:
  %36 = getelementptr inbounds i8, ptr %17, i64 16
  %37 = load ptr, ptr %36, align 8
  tail call void @Py_IncRef(ptr %37)
  %38 = load ptr, ptr @ndarray, align 8
  %39 = load ptr, ptr %36, align 8
  %40 = getelementptr inbounds i8, ptr %17, i64 24
  %41 = load i64, ptr %40, align 8
  %42 = trunc i64 %41 to i32
  %43 = getelementptr inbounds i8, ptr %17, i64 32
  %44 = load i64, ptr %43, align 8
  %45 = getelementptr i8, ptr %0, i64 %44
  %46 = tail call ptr @PyArray_NewFromDescr(ptr %38, ptr %39, i32 %42, ptr %45, ptr null, ptr null, i32 0, ptr null)
  %47 = icmp eq ptr %46, null
  br i1 %47, label %64, label %48

48:
  %49 = getelementptr inbounds i8, ptr %17, i64 48
  store ptr %31, ptr %49, align 8
  br label %50

50:
  %51 = phi ptr [ %46, %48 ], [ %31, %33 ]
  store ptr %29, ptr %30, align 8
  store ptr %51, ptr %17, align 8
  br label %52

52:
  %53 = phi ptr [ %29, %28 ], [ %51, %50 ]
  %54 = icmp eq ptr %53, null
  br i1 %54, label %64, label %55

55:
  %56 = getelementptr inbounds i8, ptr %53, i64 16
  %57 = load ptr, ptr %56, align 8
  br label %58

58:
  %59 = phi ptr [ %27, %26 ], [ %57, %55 ]
  store ptr %59, ptr %22, align 8
  br label %60

60:
  %61 = add i64 %16, 1
  %62 = load i64, ptr %3, align 8
  %63 = icmp eq i64 %61, %62
  br i1 %63, label %64, label %15

64:
  %65 = phi i1 [ true, %12 ], [ false, %35 ], [ false, %52 ], [ true, %60 ]
  ret i1 %65
}

define internal fastcc i64 @run(ptr %0) {
  %2 = getelementptr inbounds i8, ptr %0, i64 96
  %3 = load i64, ptr %2, align 8
  %4 = getelementptr i8, ptr %0, i64 %3
  %5 = getelementptr inbounds i8, ptr %0, i64 24
  %6 = load i64, ptr %5, align 8
  %7 = icmp eq i64 %6, 1
  br i1 %7, label %12, label %8

8:
  %9 = getelementptr inbounds i8, ptr %0, i64 16
  %10 = load ptr, ptr %9, align 8
  %11 = tail call i64 %10(ptr %4)
  br label %17

12:
  %13 = tail call ptr @PyEval_SaveThread()
  %14 = getelementptr inbounds i8, ptr %0, i64 16
  %15 = load ptr, ptr %14, align 8
  %16 = tail call i64 %15(ptr %4)
  tail call void @PyEval_RestoreThread(ptr %13)
  br label %17

17:
  %18 = phi i64 [ %11, %8 ], [ %16, %12 ]
  ret i64 %18
}

define internal fastcc i1 @guards_hold(ptr %0) nounwind {
  %2 = getelementptr inbounds i8, ptr %0, i64 120
  %3 = getelementptr inbounds i8, ptr %0, i64 128
  %4 = load i64, ptr %3, align 8
  %5 = getelementptr i8, ptr %0, i64 %4
  %6 = load i64, ptr %2, align 8
  %7 = icmp eq i64 %6, 0
  br i1 %7, label %48, label %11

8:
  %9 = add nuw i64 %12, 1
  %10 = icmp eq i64 %9, %6
  br i1 %10, label %48, label %11

11:
  %12 = phi i64 [ %9, %8 ], [ 0, %1 ]
  %13 = getelementptr %struct.guard, ptr %5, i64 %12
  %14 = getelementptr inbounds i8, ptr %13, i64 8
  %15 = load i64, ptr %14, align 8
  %16 = getelementptr i8, ptr %0, i64 %15
  %17 = load i64, ptr %13, align 8
  switch i64 %17, label %48 [
    i64 0, label %18
    i64 1, label %22
    i64 2, label %26
    i64 3, label %30
    i64 4, label %34
    i64 5, label %38
    i64 6, label %40
  ]

18:
  %19 = load i8, ptr %16, align 1
  %20 = icmp ne i8 %19, 0
  %21 = zext i1 %20 to i64
  br label %43

22:
  %23 = load i64, ptr %16, align 8
  %24 = icmp ne i64 %23, 0
  %25 = zext i1 %24 to i64
  br label %43

26:
  %27 = load i32, ptr %16, align 4
  %28 = icmp ne i32 %27, 0
  %29 = zext i1 %28 to i64
  br label %43

30:
  %31 = load double, ptr %16, align 8
  %32 = fcmp une double %31, 0.000000e+00
  %33 = zext i1 %32 to i64
  br label %43

34:
  %35 = load float, ptr %16, align 4
  %36 = fcmp une float %35, 0.000000e+00
  %37 = zext i1 %36 to i64
  br label %43

38:
  %39 = load i64, ptr %16, align 8
  br label %43

40:
  %41 = load i32, ptr %16, align 4
  %42 = sext i32 %41 to i64
  br label %43

43:
  %44 = phi i64 [ %42, %40 ], [ %39, %38 ], [ %37, %34 ], [ %33, %30 ], [ %29, %26 ], [ %25, %22 ], [ %21, %18 ]
  %45 = getelementptr inbounds i8, ptr %13, i64 16
  %46 = load i64, ptr %45, align 8
  %47 = icmp eq i64 %44, %46
  br i1 %47, label %8, label %48

48:
  %49 = phi i1 [ true, %1 ], [ true, %8 ], [ false, %43 ], [ false, %11 ]
  ret i1 %49
}

define internal fastcc void @leave(ptr %0, ptr %1, i64 %2) {
  tail call fastcc void @drop_outputs(ptr %0)
  %4 = getelementptr inbounds i8, ptr %0, i64 24
  %5 = load i64, ptr %4, align 8
  %6 = icmp eq i64 %5, 0
  br i1 %6, label %8, label %7

7:
  tail call fastcc void @let_go(ptr %1, i64 %2)
  br label %8

8:
  %9 = getelementptr inbounds i8, ptr %0, i64 184
  %10 = load ptr, ptr %9, align 8
  store i64 0, ptr %10, align 8
  store i64 0, ptr %0, align 8
  ret void
}

define internal fastcc ptr @make_result(ptr %0, ptr %1) {
  %3 = getelementptr inbounds i8, ptr %0, i64 80
  %4 = getelementptr inbounds i8, ptr %0, i64 88
  %5 = load i64, ptr %4, align 8
  %6 = getelementptr i8, ptr %0, i64 %5
  %7 = getelementptr inbounds i8, ptr %0, i64 72
  %8 = load i64, ptr %7, align 8
  %9 = getelementptr i8, ptr %0, i64 %8
  %10 = getelementptr inbounds i8, ptr %0, i64 104
  %11 = load i64, ptr %10, align 8
  %12 = getelementptr i8, ptr %0, i64 %11
  %13 = load i64, ptr %3, align 8
  %14 = icmp eq i64 %13, 0
  br i1 %14, label %141, label %15

15:
  %16 = phi ptr [ %131, %129 ], [ %12, %2 ]
  %17 = phi i64 [ %132, %129 ], [ 0, %2 ]
  %18 = getelementptr %struct.making, ptr %6, i64 %17
  %19 = getelementptr inbounds i8, ptr %18, i64 8
  %20 = load i64, ptr %19, align 8
  %21 = getelementptr inbounds i8, ptr %18, i64 16
  %22 = load ptr, ptr %21, align 8
  %23 = getelementptr i8, ptr %0, i64 %20
  %24 = sub i64 0, %20
  %25 = getelementptr ptr, ptr %16, i64 %24
  %26 = load i64, ptr %18, align 8
  %27 = ptrtoint ptr %22 to i64
  switch i64 %26, label %120 [
    i64 0, label %28
    i64 1, label %31
    i64 13, label %33
    i64 2, label %36
    i64 3, label %39
    i64 4, label %43
    i64 5, label %46
    i64 6, label %50
    i64 7, label %54
    i64 11, label %55
    i64 8, label %69
    i64 9, label %83
    i64 10, label %97
    i64 12, label %118
  ]

28:
  %29 = getelementptr %struct.output, ptr %9, i64 %20
  %30 = load ptr, ptr %29, align 8
  tail call void @Py_IncRef(ptr %30)
  br label %121

31:
  %32 = tail call ptr @PyArray_Scalar(ptr %23, ptr %22, ptr null)
  br label %121

33:
  %34 = tail call ptr @PyType_GenericAlloc(ptr %22, i64 0)
  %35 = icmp eq ptr %34, null
  br i1 %35, label %135, label %126

36:
  %37 = load double, ptr %23, align 8
  %38 = tail call ptr @PyFloat_FromDouble(double %37)
  br label %121

39:
  %40 = load float, ptr %23, align 4
  %41 = fpext float %40 to double
  %42 = tail call ptr @PyFloat_FromDouble(double %41)
  br label %121

43:
  %44 = load i64, ptr %23, align 8
  %45 = tail call ptr @PyLong_FromLongLong(i64 %44)
  br label %121

46:
  %47 = load i32, ptr %23, align 4
  %48 = sext i32 %47 to i64
  %49 = tail call ptr @PyLong_FromLongLong(i64 %48)
  br label %121

50:
  %51 = load i8, ptr %23, align 1
  %52 = zext i8 %51 to i64
  %53 = tail call ptr @PyBool_FromLong(i64 %52)
  br label %121

54:
  tail call void @Py_IncRef(ptr %22)
  br label %121

55:
  %56 = tail call ptr @PyTuple_New(i64 %27)
  %57 = icmp eq ptr %56, null
  %58 = icmp eq ptr %22, null
  %59 = or i1 %58, %57
  br i1 %59, label %121, label %60

60:
  %61 = phi i64 [ %67, %60 ], [ 0, %55 ]
  %62 = getelementptr i64, ptr %23, i64 %61
  %63 = load i64, ptr %62, align 8
  %64 = getelementptr ptr, ptr %1, i64 %63
  %65 = load ptr, ptr %64, align 8
  tail call void @Py_IncRef(ptr %65)
  %66 = tail call i32 @PyTuple_SetItem(ptr %56, i64 %61, ptr %65)
  %67 = add nuw i64 %61, 1
  %68 = icmp eq i64 %67, %27
  br i1 %68, label %121, label %60

69:
  %70 = tail call ptr @PyTuple_New(i64 %20)
  %71 = icmp eq ptr %70, null
  %72 = icmp eq i64 %20, 0
  %73 = or i1 %72, %71
  br i1 %73, label %81, label %74

74:
  %75 = phi i64 [ %79, %74 ], [ 0, %69 ]
  %76 = getelementptr ptr, ptr %25, i64 %75
  %77 = load ptr, ptr %76, align 8
  %78 = tail call i32 @PyTuple_SetItem(ptr %70, i64 %75, ptr %77)
  %79 = add nuw i64 %75, 1
  %80 = icmp eq i64 %79, %20
  br i1 %80, label %81, label %74

81:
  %82 = select i1 %71, ptr %16, ptr %25
  br label %121

83:
  %84 = tail call ptr @PyList_New(i64 %20)
  %85 = icmp eq ptr %84, null
  %86 = icmp eq i64 %20, 0
  %87 = or i1 %86, %85
  br i1 %87, label %95, label %88

88:
  %89 = phi i64 [ %93, %88 ], [ 0, %83 ]
  %90 = getelementptr ptr, ptr %25, i64 %89
  %91 = load ptr, ptr %90, align 8
  %92 = tail call i32 @PyList_SetItem(ptr %84, i64 %89, ptr %91)
  %93 = add nuw i64 %89, 1
  %94 = icmp eq i64 %93, %20
  br i1 %94, label %95, label %88

95:
  %96 = select i1 %85, ptr %16, ptr %25
  br label %121

97:
  %98 = tail call ptr @PyDict_New()
  %99 = icmp eq ptr %98, null
  br i1 %99, label %114, label %100

100:
  %101 = icmp eq i64 %20, 0
  br i1 %101, label %113, label %105

102:
  %103 = add nuw i64 %106, 1
  %104 = icmp eq i64 %103, %20
  br i1 %104, label %113, label %105

105:
  %106 = phi i64 [ %103, %102 ], [ 0, %100 ]
  %107 = tail call ptr @PyTuple_GetItem(ptr %22, i64 %106)
  %108 = getelementptr ptr, ptr %25, i64 %106
  %109 = load ptr, ptr %108, align 8
  %110 = tail call i32 @PyDict_SetItem(ptr %98, ptr %107, ptr %109)
  %111 = icmp eq i32 %110, 0
  br i1 %111, label %102, label %112

112:
  tail call void @Py_DecRef(ptr %98)
  br label %114

113:
  tail call fastcc void @let_go(ptr %25, i64 %20)
  br label %114

114:
  %115 = phi ptr [ %98, %113 ], [ null, %112 ], [ null, %97 ]
  %116 = icmp eq ptr %115, null
  %117 = select i1 %116, ptr %16, ptr %25
  br label %121

118:
  %119 = tail call ptr @PyObject_Vectorcall(ptr %22, ptr %25, i64 %20, ptr null)
  tail call fastcc void @let_go(ptr %25, i64 %20)
  br label %121

120:
  unreachable

121:
  %122 = phi ptr [ %25, %118 ], [ %16, %54 ], [ %16, %50 ], [ %16, %46 ], [ %16, %43 ], [ %16, %39 ], [ %16, %36 ], [ %16, %31 ], [ %16, %28 ], [ %82, %81 ], [ %96, %95 ], [ %117, %114 ], [ %16, %55 ], [ %16, %60 ]
  %123 = phi ptr [ %119, %118 ], [ %22, %54 ], [ %53, %50 ], [ %49, %46 ], [ %45, %43 ], [ %42, %39 ], [ %38, %36 ], [ %32, %31 ], [ %30, %28 ], [ %70, %81 ], [ %84, %95 ], [ %115, %114 ], [ %56, %55 ], [ %56, %60 ]
  %124 = icmp eq ptr %123, null
  br i1 %124, label %135, label %125

125:
  store ptr %123, ptr %122, align 8
  br label %129

126:
  %127 = load i64, ptr %23, align 8
  %128 = getelementptr inbounds i8, ptr %34, i64 16
  store i64 %127, ptr %128, align 8
  store ptr %34, ptr %16, align 8
  br label %129

129:
  %130 = phi ptr [ %122, %125 ], [ %16, %126 ]
  %131 = getelementptr i8, ptr %130, i64 8
  %132 = add i64 %17, 1
  %133 = load i64, ptr %3, align 8
  %134 = icmp eq i64 %132, %133
  br i1 %134, label %141, label %15

135:
  %136 = phi ptr [ %122, %121 ], [ %16, %33 ]
  %137 = ptrtoint ptr %136 to i64
  %138 = ptrtoint ptr %12 to i64
  %139 = sub i64 %137, %138
  %140 = ashr exact i64 %139, 3
  tail call fastcc void @let_go(ptr %12, i64 %140)
  br label %143

141:
  %142 = load ptr, ptr %12, align 8
  br label %143

143:
  %144 = phi ptr [ %142, %141 ], [ null, %135 ]
  ret ptr %144
}

declare void @Py_IncRef(ptr)

declare ptr @PyList_GetItem(ptr, i64)

declare ptr @PyDict_GetItemWithError(ptr, ptr)

declare ptr @PyErr_Occurred()

declare void @PyErr_Clear()

declare ptr @PyCell_Get(ptr)

declare void @Py_DecRef(ptr)

declare ptr @PyFunction_GetCode(ptr)

declare ptr @PyFunction_GetDefaults(ptr)

declare ptr @PyFunction_GetKwDefaults(ptr)

declare ptr @PyObject_GenericGetAttr(ptr, ptr)

declare ptr @PyObject_GenericGetDict(ptr, ptr)

declare i32 @PyDict_Next(ptr, ptr, ptr, ptr)

declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)

declare double @PyFloat_AsDouble(ptr)

declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)

declare i32 @PyObject_IsTrue(ptr)

declare void @PyArray_ScalarAsCtype(ptr, ptr)

declare i64 @PyList_Size(ptr)

declare i64 @PyDict_Size(ptr)

define internal fastcc i1 @may_be_written(ptr %0, ptr %1, ptr %2) nounwind {
  %4 = icmp eq ptr %2, null
  br i1 %4, label %51, label %5

5:
  %6 = load i64, ptr %2, align 8
  %7 = icmp ne i64 %6, 1
  %8 = getelementptr inbounds i8, ptr %2, i64 72
  %9 = load ptr, ptr %8, align 8
  %10 = icmp ne ptr %9, null
  %11 = or i1 %7, %10
  %12 = getelementptr inbounds i8, ptr %2, i64 48
  %13 = load ptr, ptr %12, align 8
  %14 = icmp ne ptr %13, null
  %15 = or i1 %11, %14
  %16 = getelementptr inbounds i8, ptr %2, i64 64
  %17 = load i32, ptr %16, align 8
  %18 = and i32 %17, 1285
  %19 = icmp ne i32 %18, 1285
  %20 = or i1 %15, %19
  %21 = getelementptr inbounds i8, ptr %2, i64 56
  %22 = load ptr, ptr %21, align 8
  %23 = getelementptr inbounds i8, ptr %1, i64 16
  %24 = load ptr, ptr %23, align 8
  %25 = icmp ne ptr %22, %24
  %26 = or i1 %20, %25
  %27 = getelementptr inbounds i8, ptr %2, i64 24
  %28 = load i32, ptr %27, align 8
  %29 = zext i32 %28 to i64
  %30 = getelementptr inbounds i8, ptr %1, i64 24
  %31 = load i64, ptr %30, align 8
  %32 = icmp ne i64 %31, %29
  %33 = or i1 %26, %32
  br i1 %33, label %51, label %34

34:
  %35 = getelementptr inbounds i8, ptr %2, i64 32
  %36 = load ptr, ptr %35, align 8
  %37 = getelementptr inbounds i8, ptr %1, i64 32
  %38 = load i64, ptr %37, align 8
  %39 = getelementptr i8, ptr %0, i64 %38
  %40 = icmp eq i32 %28, 0
  br i1 %40, label %51, label %41

41:
  %42 = phi i64 [ %48, %41 ], [ 0, %34 ]
  %43 = getelementptr i64, ptr %36, i64 %42
  %44 = load i64, ptr %43, align 8
  %45 = getelementptr i64, ptr %39, i64 %42
  %46 = load i64, ptr %45, align 8
  %47 = icmp eq i64 %44, %46
  %48 = add nuw i64 %42, 1
  %49 = icmp ne i64 %48, %29
  %50 = select i1 %47, i1 %49, i1 false
  br i1 %50, label %41, label %51

51:
  %52 = phi i1 [ false, %3 ], [ false, %5 ], [ true, %34 ], [ %47, %41 ]
  ret i1 %52
}

declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)

declare ptr @PyEval_SaveThread()

declare void @PyEval_RestoreThread(ptr)

define internal fastcc void @drop_outputs(ptr %0) {
  %2 = getelementptr inbounds i8, ptr %0, i64 64
  %3 = getelementptr inbounds i8, ptr %0, i64 72
  %4 = load i64, ptr %3, align 8
  %5 = getelementptr i8, ptr %0, i64 %4
  %6 = load i64, ptr %2, align 8
  %7 = icmp eq i64 %6, 0
  br i1 %7, label %8, label %9

8:
  ret void

9:
  %10 = phi i64 [ %18, %17 ], [ %6, %1 ]
  %11 = phi i64 [ %19, %17 ], [ 0, %1 ]
  %12 = getelementptr %struct.output, ptr %5, i64 %11, i32 6
  %13 = load ptr, ptr %12, align 8
  %14 = icmp eq ptr %13, null
  br i1 %14, label %17, label %15

15:
  store ptr null, ptr %12, align 8
  tail call void @Py_DecRef(ptr %13)
  %16 = load i64, ptr %2, align 8
  br label %17

17:
  %18 = phi i64 [ %16, %15 ], [ %10, %9 ]
  %19 = add i64 %11, 1
  %20 = icmp eq i64 %19, %18
  br i1 %20, label %8, label %9
}

define internal fastcc void @let_go(ptr %0, i64 %1) {
  %3 = icmp eq i64 %1, 0
  br i1 %3, label %4, label %5

4:
  ret void

5:
  %6 = phi i64 [ %9, %5 ], [ 0, %2 ]
  %7 = getelementptr ptr, ptr %0, i64 %6
  %8 = load ptr, ptr %7, align 8
  tail call void @Py_DecRef(ptr %8)
  %9 = add nuw i64 %6, 1
  %10 = icmp eq i64 %9, %1
  br i1 %10, label %4, label %5
}

declare ptr @PyArray_Scalar(ptr, ptr, ptr)

declare ptr @PyFloat_FromDouble(double)

declare ptr @PyLong_FromLongLong(i64)

declare ptr @PyBool_FromLong(i64)

declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)

declare ptr @PyType_GenericAlloc(ptr, i64)

declare ptr @PyTuple_New(i64)

declare i32 @PyTuple_SetItem(ptr, i64, ptr)

declare ptr @PyList_New(i64)

declare i32 @PyList_SetItem(ptr, i64, ptr)

declare ptr @PyDict_New()

declare i32 @PyDict_SetItem(ptr, ptr, ptr)

declare ptr @PyType_GetSlot(ptr, i32)
