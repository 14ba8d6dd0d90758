; Made of entry.c by `python -m tools.ir`: clang 19.1.7, digest 12f8e6260050c71c804036e7373da6b9.
%struct.table = type { ptr, ptr, i64 }
%struct.held = type { ptr, [2 x i64] }
%struct.step = type { %union.anon, i32, i32, %union.anon.1, %union.anon.2, ptr, i64, i64, i64 }
%union.anon = type { i64 }
%union.anon.1 = type { i64 }
%union.anon.2 = type { ptr }
%struct.watch = type { ptr, ptr, i64, i64, i64, i64, ptr }
%struct.pair = type { i64, i64 }
%struct.question = type { ptr, i64, ptr, i64, ptr }
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

define range(i64 -2147483648, 2147483648) i64 @launch_graph(ptr %0) {
  %2 = alloca ptr, align 8
  %3 = load ptr, ptr %0, align 8
  %4 = getelementptr inbounds i8, ptr %3, i64 24
  %5 = load ptr, ptr %4, align 8
  %6 = call i32 %5(ptr %2)
  %7 = icmp eq i32 %6, 0
  br i1 %7, label %8, label %21

8:
  %9 = load ptr, ptr %2, align 8
  %10 = getelementptr inbounds i8, ptr %3, i64 32
  %11 = load ptr, ptr %10, align 8
  %12 = icmp eq ptr %9, %11
  br i1 %12, label %13, label %21

13:
  %14 = load ptr, ptr %3, align 8
  %15 = getelementptr inbounds i8, ptr %3, i64 8
  %16 = load ptr, ptr %15, align 8
  %17 = getelementptr inbounds i8, ptr %3, i64 16
  %18 = load ptr, ptr %17, align 8
  %19 = call i32 %14(ptr %16, ptr %18)
  %20 = sext i32 %19 to i64
  br label %21

21:
  %22 = phi i64 [ %20, %13 ], [ 1, %8 ], [ 1, %1 ]
  ret i64 %22
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
  br i1 %14, label %15, label %427

15:
  %16 = icmp eq ptr %3, null
  br i1 %16, label %24, label %17

17:
  %18 = tail call i64 @PyTuple_Size(ptr %3)
  %19 = icmp eq i64 %18, 1
  br i1 %19, label %20, label %427

20:
  %21 = tail call ptr @PyTuple_GetItem(ptr %3, i64 0)
  %22 = load ptr, ptr @out_name, align 8
  %23 = icmp eq ptr %21, %22
  br i1 %23, label %24, label %427

24:
  %25 = load ptr, ptr %11, align 8
  %26 = icmp eq ptr %25, null
  br i1 %26, label %427, label %27

27:
  %28 = phi ptr [ %423, %421 ], [ %25, %24 ]
  %29 = getelementptr inbounds i8, ptr %28, i64 16
  %30 = load ptr, ptr %29, align 8
  %31 = load i64, ptr %30, align 8
  %32 = getelementptr inbounds i8, ptr %30, i64 184
  %33 = load ptr, ptr %32, align 8
  %34 = load i64, ptr %33, align 8
  %35 = or i64 %34, %31
  %36 = icmp eq i64 %35, 0
  br i1 %36, label %37, label %421

37:
  %38 = getelementptr inbounds i8, ptr %30, i64 32
  %39 = load i64, ptr %38, align 8
  %40 = icmp eq i64 %39, %9
  br i1 %40, label %41, label %421

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
  br i1 %52, label %53, label %421

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
  br i1 %80, label %81, label %421

81:
  %82 = getelementptr inbounds i8, ptr %75, i64 40
  %83 = load ptr, ptr %82, align 8
  %84 = icmp eq ptr %83, null
  br i1 %84, label %85, label %421

85:
  %86 = getelementptr inbounds i8, ptr %77, i64 8
  %87 = load i32, ptr %86, align 8
  %88 = and i32 %87, 16777215
  %89 = zext nneg i32 %88 to i64
  %90 = getelementptr inbounds i8, ptr %74, i64 16
  %91 = load i64, ptr %90, align 8
  %92 = icmp eq i64 %91, %89
  br i1 %92, label %69, label %421

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
  br i1 %119, label %120, label %421

120:
  %121 = icmp eq i64 %62, 0
  br i1 %121, label %386, label %122

122:
  %123 = phi i64 [ %383, %382 ], [ 0, %120 ]
  %124 = getelementptr %struct.step, ptr %57, i64 %123
  %125 = load i64, ptr %124, align 8
  %126 = icmp eq i64 %125, 4294967296
  %127 = trunc i64 %125 to i32
  %128 = getelementptr inbounds i8, ptr %124, i64 16
  br i1 %126, label %129, label %179

129:
  %130 = load i64, ptr %128, align 8
  %131 = getelementptr ptr, ptr %1, i64 %130
  %132 = load ptr, ptr %131, align 8
  %133 = getelementptr ptr, ptr %60, i64 %123
  store ptr %132, ptr %133, align 8
  %134 = getelementptr inbounds i8, ptr %132, i64 8
  %135 = load ptr, ptr %134, align 8
  %136 = load ptr, ptr @ndarray, align 8
  %137 = icmp eq ptr %135, %136
  br i1 %137, label %138, label %385

138:
  %139 = getelementptr inbounds i8, ptr %132, i64 56
  %140 = load ptr, ptr %139, align 8
  %141 = getelementptr inbounds i8, ptr %124, i64 32
  %142 = load ptr, ptr %141, align 8
  %143 = icmp ne ptr %140, %142
  %144 = getelementptr inbounds i8, ptr %132, i64 24
  %145 = load i32, ptr %144, align 8
  %146 = getelementptr inbounds i8, ptr %124, i64 12
  %147 = load i32, ptr %146, align 4
  %148 = icmp ne i32 %145, %147
  %149 = or i1 %143, %148
  %150 = getelementptr inbounds i8, ptr %132, i64 64
  %151 = load i32, ptr %150, align 8
  %152 = and i32 %151, 257
  %153 = icmp ne i32 %152, 257
  %154 = or i1 %149, %153
  br i1 %154, label %385, label %155

155:
  %156 = getelementptr inbounds i8, ptr %132, i64 32
  %157 = load ptr, ptr %156, align 8
  %158 = getelementptr inbounds i8, ptr %124, i64 40
  %159 = load i64, ptr %158, align 8
  %160 = getelementptr i8, ptr %30, i64 %159
  %161 = sext i32 %145 to i64
  %162 = icmp eq i32 %145, 0
  br i1 %162, label %173, label %166

163:
  %164 = add nuw i64 %167, 1
  %165 = icmp eq i64 %164, %161
  br i1 %165, label %173, label %166

166:
  %167 = phi i64 [ %164, %163 ], [ 0, %155 ]
  %168 = getelementptr i64, ptr %157, i64 %167
  %169 = load i64, ptr %168, align 8
  %170 = getelementptr i64, ptr %160, i64 %167
  %171 = load i64, ptr %170, align 8
  %172 = icmp eq i64 %169, %171
  br i1 %172, label %163, label %385

173:
  %174 = getelementptr inbounds i8, ptr %132, i64 16
  %175 = load ptr, ptr %174, align 8
  %176 = getelementptr inbounds i8, ptr %124, i64 48
  %177 = load i64, ptr %176, align 8
  %178 = getelementptr i8, ptr %30, i64 %177
  store ptr %175, ptr %178, align 8
  br label %382

179:
  %180 = load ptr, ptr %128, align 8
  %181 = getelementptr inbounds i8, ptr %124, i64 8
  %182 = load i32, ptr %181, align 8
  %183 = zext i32 %182 to i64
  %184 = getelementptr ptr, ptr %60, i64 %183
  %185 = ptrtoint ptr %180 to i64
  switch i32 %127, label %385 [
    i32 0, label %186
    i32 1, label %274
    i32 2, label %189
    i32 3, label %192
    i32 4, label %195
    i32 13, label %195
    i32 5, label %206
    i32 17, label %206
    i32 6, label %207
    i32 18, label %207
    i32 7, label %227
    i32 8, label %231
    i32 9, label %233
    i32 10, label %235
    i32 14, label %237
    i32 11, label %253
    i32 15, label %256
    i32 12, label %264
    i32 16, label %262
  ]

186:
  %187 = getelementptr ptr, ptr %1, i64 %185
  %188 = load ptr, ptr %187, align 8
  br label %274

189:
  %190 = load ptr, ptr %184, align 8
  %191 = call ptr @PyTuple_GetItem(ptr %190, i64 %185)
  br label %274

192:
  %193 = load ptr, ptr %184, align 8
  %194 = call ptr @PyList_GetItem(ptr %193, i64 %185)
  br label %274

195:
  %196 = icmp eq i32 %127, 13
  %197 = getelementptr inbounds i8, ptr %124, i64 24
  %198 = select i1 %196, ptr %197, ptr %184
  %199 = load ptr, ptr %198, align 8
  %200 = call ptr @PyDict_GetItemWithError(ptr %199, ptr %180)
  %201 = icmp eq ptr %200, null
  br i1 %201, label %202, label %274

202:
  %203 = call ptr @PyErr_Occurred()
  %204 = icmp eq ptr %203, null
  br i1 %204, label %274, label %205

205:
  call void @PyErr_Clear()
  br label %385

206:
  store i64 0, ptr %8, align 8
  br label %207

207:
  %208 = load ptr, ptr %184, align 8
  %209 = call i32 @PyDict_Next(ptr %208, ptr %8, ptr %6, ptr %7)
  %210 = icmp eq i32 %209, 0
  br i1 %210, label %270, label %211

211:
  %212 = load ptr, ptr %6, align 8
  %213 = load ptr, ptr %128, align 8
  %214 = icmp eq ptr %212, %213
  br i1 %214, label %271, label %215

215:
  %216 = load i32, ptr %124, align 8
  %217 = icmp slt i32 %216, 17
  br i1 %217, label %270, label %218

218:
  %219 = getelementptr inbounds i8, ptr %212, i64 8
  %220 = load ptr, ptr %219, align 8
  %221 = getelementptr inbounds i8, ptr %213, i64 8
  %222 = load ptr, ptr %221, align 8
  %223 = icmp eq ptr %220, %222
  br i1 %223, label %224, label %270

224:
  %225 = call i32 @PyObject_RichCompareBool(ptr %212, ptr %213, i32 2)
  %226 = icmp eq i32 %225, 1
  br i1 %226, label %271, label %270

227:
  %228 = call ptr @PyCell_Get(ptr %180)
  %229 = icmp eq ptr %228, null
  br i1 %229, label %274, label %230

230:
  call void @Py_DecRef(ptr %228)
  br label %274

231:
  %232 = call ptr @PyFunction_GetCode(ptr %180)
  br label %274

233:
  %234 = call ptr @PyFunction_GetDefaults(ptr %180)
  br label %274

235:
  %236 = call ptr @PyFunction_GetKwDefaults(ptr %180)
  br label %274

237:
  %238 = call ptr @PyFunction_GetCode(ptr %180)
  %239 = call ptr @PyFunction_GetDefaults(ptr %180)
  %240 = call ptr @PyFunction_GetKwDefaults(ptr %180)
  %241 = getelementptr inbounds i8, ptr %124, i64 24
  %242 = load ptr, ptr %241, align 8
  %243 = icmp eq ptr %238, %242
  %244 = getelementptr inbounds i8, ptr %124, i64 32
  %245 = load ptr, ptr %244, align 8
  %246 = icmp eq ptr %239, %245
  %247 = and i1 %243, %246
  %248 = ptrtoint ptr %240 to i64
  %249 = getelementptr inbounds i8, ptr %124, i64 40
  %250 = load i64, ptr %249, align 8
  %251 = icmp eq i64 %250, %248
  %252 = and i1 %247, %251
  br i1 %252, label %274, label %385

253:
  %254 = getelementptr inbounds i8, ptr %180, i64 8
  %255 = load ptr, ptr %254, align 8
  br label %274

256:
  %257 = load ptr, ptr %184, align 8
  %258 = call ptr @PyObject_GenericGetAttr(ptr %257, ptr %180)
  %259 = icmp eq ptr %258, null
  br i1 %259, label %261, label %260

260:
  call void @Py_DecRef(ptr %258)
  br label %274

261:
  call void @PyErr_Clear()
  br label %385

262:
  %263 = load ptr, ptr %184, align 8
  br label %264

264:
  %265 = phi ptr [ %263, %262 ], [ %180, %179 ]
  %266 = call ptr @PyObject_GenericGetDict(ptr %265, ptr null)
  %267 = icmp eq ptr %266, null
  br i1 %267, label %269, label %268

268:
  call void @Py_DecRef(ptr %266)
  br label %274

269:
  call void @PyErr_Clear()
  br label %385

270:
  br label %385

271:
  %272 = load ptr, ptr %7, align 8
  %273 = icmp eq ptr %272, null
  br i1 %273, label %385, label %274

274:
  %275 = phi ptr [ %272, %271 ], [ %180, %237 ], [ %258, %260 ], [ %266, %268 ], [ %188, %186 ], [ %191, %189 ], [ %194, %192 ], [ %200, %195 ], [ null, %202 ], [ %228, %230 ], [ null, %227 ], [ %232, %231 ], [ %234, %233 ], [ %236, %235 ], [ %255, %253 ], [ %180, %179 ]
  %276 = getelementptr ptr, ptr %60, i64 %123
  store ptr %275, ptr %276, align 8
  %277 = getelementptr inbounds i8, ptr %124, i64 4
  %278 = load i32, ptr %277, align 4
  %279 = icmp eq i32 %278, 0
  br i1 %279, label %280, label %285

280:
  %281 = getelementptr inbounds i8, ptr %124, i64 32
  %282 = load ptr, ptr %281, align 8
  %283 = icmp eq ptr %282, %275
  %284 = freeze i1 %283
  br i1 %284, label %382, label %385

285:
  %286 = icmp eq ptr %275, null
  br i1 %286, label %385, label %287

287:
  %288 = icmp eq i32 %278, 9
  br i1 %288, label %382, label %289

289:
  %290 = getelementptr inbounds i8, ptr %124, i64 48
  %291 = load i64, ptr %290, align 8
  %292 = getelementptr i8, ptr %30, i64 %291
  %293 = and i32 %278, -2
  %294 = icmp eq i32 %293, 10
  %295 = getelementptr inbounds i8, ptr %275, i64 8
  %296 = load ptr, ptr %295, align 8
  br i1 %294, label %297, label %308

297:
  %298 = getelementptr inbounds i8, ptr %124, i64 32
  %299 = load ptr, ptr %298, align 8
  %300 = icmp eq ptr %296, %299
  br i1 %300, label %301, label %308

301:
  %302 = call double @PyFloat_AsDouble(ptr %275)
  %303 = load i32, ptr %277, align 4
  %304 = icmp eq i32 %303, 10
  br i1 %304, label %305, label %306

305:
  store double %302, ptr %292, align 8
  br label %382

306:
  %307 = fptrunc double %302 to float
  store float %307, ptr %292, align 4
  br label %382

308:
  %309 = getelementptr inbounds i8, ptr %124, i64 24
  %310 = load ptr, ptr %309, align 8
  %311 = icmp eq ptr %296, %310
  br i1 %311, label %312, label %385

312:
  switch i32 %278, label %385 [
    i32 1, label %313
    i32 12, label %313
    i32 2, label %353
    i32 3, label %377
    i32 4, label %355
    i32 5, label %358
    i32 10, label %358
    i32 11, label %358
    i32 6, label %359
    i32 7, label %365
    i32 8, label %371
    i32 13, label %382
  ]

313:
  %314 = icmp eq i32 %278, 12
  %315 = getelementptr inbounds i8, ptr %275, i64 56
  %316 = load ptr, ptr %315, align 8
  %317 = getelementptr inbounds i8, ptr %124, i64 32
  %318 = load ptr, ptr %317, align 8
  %319 = icmp ne ptr %316, %318
  %320 = getelementptr inbounds i8, ptr %275, i64 24
  %321 = load i32, ptr %320, align 8
  %322 = getelementptr inbounds i8, ptr %124, i64 12
  %323 = load i32, ptr %322, align 4
  %324 = icmp ne i32 %321, %323
  %325 = or i1 %319, %324
  %326 = getelementptr inbounds i8, ptr %275, i64 64
  %327 = load i32, ptr %326, align 8
  %328 = select i1 %314, i32 -1282, i32 -258
  %329 = or i32 %327, %328
  %330 = icmp ne i32 %329, -1
  %331 = or i1 %325, %330
  br i1 %331, label %385, label %332

332:
  %333 = getelementptr inbounds i8, ptr %275, i64 32
  %334 = load ptr, ptr %333, align 8
  %335 = getelementptr inbounds i8, ptr %124, i64 40
  %336 = load i64, ptr %335, align 8
  %337 = getelementptr i8, ptr %30, i64 %336
  %338 = sext i32 %321 to i64
  %339 = icmp eq i32 %321, 0
  br i1 %339, label %350, label %343

340:
  %341 = add nuw i64 %344, 1
  %342 = icmp eq i64 %341, %338
  br i1 %342, label %350, label %343

343:
  %344 = phi i64 [ %341, %340 ], [ 0, %332 ]
  %345 = getelementptr i64, ptr %334, i64 %344
  %346 = load i64, ptr %345, align 8
  %347 = getelementptr i64, ptr %337, i64 %344
  %348 = load i64, ptr %347, align 8
  %349 = icmp eq i64 %346, %348
  br i1 %349, label %340, label %385

350:
  %351 = getelementptr inbounds i8, ptr %275, i64 16
  %352 = load ptr, ptr %351, align 8
  store ptr %352, ptr %292, align 8
  br label %382

353:
  %354 = call double @PyFloat_AsDouble(ptr %275)
  store double %354, ptr %292, align 8
  br label %382

355:
  %356 = call i32 @PyObject_IsTrue(ptr %275)
  %357 = trunc i32 %356 to i8
  store i8 %357, ptr %292, align 1
  br label %382

358:
  call void @PyArray_ScalarAsCtype(ptr %275, ptr %292)
  br label %382

359:
  %360 = call i64 @PyTuple_Size(ptr %275)
  %361 = getelementptr inbounds i8, ptr %124, i64 40
  %362 = load i64, ptr %361, align 8
  %363 = icmp eq i64 %360, %362
  %364 = freeze i1 %363
  br i1 %364, label %382, label %385

365:
  %366 = call i64 @PyList_Size(ptr %275)
  %367 = getelementptr inbounds i8, ptr %124, i64 40
  %368 = load i64, ptr %367, align 8
  %369 = icmp eq i64 %366, %368
  %370 = freeze i1 %369
  br i1 %370, label %382, label %385

371:
  %372 = call i64 @PyDict_Size(ptr %275)
  %373 = getelementptr inbounds i8, ptr %124, i64 40
  %374 = load i64, ptr %373, align 8
  %375 = icmp eq i64 %372, %374
  %376 = freeze i1 %375
  br i1 %376, label %382, label %385

377:
  %378 = call i64 @PyLong_AsLongLongAndOverflow(ptr %275, ptr %5)
  store i64 %378, ptr %292, align 8
  %379 = load i32, ptr %5, align 4
  %380 = freeze i32 %379
  %381 = icmp eq i32 %380, 0
  br i1 %381, label %382, label %385

382:
  %383 = add nuw i64 %123, 1
  %384 = icmp eq i64 %383, %62
  br i1 %384, label %386, label %122

385:
  br label %421

386:
  %387 = call fastcc i1 @arrays_are_right(ptr %30, ptr %57, ptr %60, i1 %16)
  br i1 %387, label %388, label %421

388:
  store i64 1, ptr %30, align 8
  %389 = load ptr, ptr %32, align 8
  store i64 1, ptr %389, align 8
  %390 = getelementptr inbounds i8, ptr %30, i64 24
  %391 = load i64, ptr %390, align 8
  %392 = icmp eq i64 %391, 0
  br i1 %392, label %394, label %393

393:
  call fastcc void @hold(ptr %60, i64 %62)
  br label %394

394:
  %395 = getelementptr inbounds i8, ptr %30, i64 224
  %396 = load i64, ptr %395, align 8
  %397 = icmp eq i64 %396, 0
  br i1 %397, label %401, label %398

398:
  %399 = call fastcc i1 @answers_are_right(ptr %30, ptr %60)
  br i1 %399, label %401, label %400

400:
  call fastcc void @leave(ptr %30, ptr %60, i64 %62)
  br label %421

401:
  %402 = call fastcc i1 @prepare_outputs(ptr %30, i1 %16)
  br i1 %402, label %403, label %425

403:
  %404 = call fastcc i64 @run(ptr %30)
  %405 = icmp eq i64 %404, 0
  br i1 %405, label %406, label %408

406:
  %407 = call fastcc i1 @guards_hold(ptr %30)
  br i1 %407, label %409, label %408

408:
  call fastcc void @leave(ptr %30, ptr %60, i64 %62)
  br label %421

409:
  %410 = icmp sgt i64 %43, 0
  br i1 %410, label %411, label %414

411:
  %412 = getelementptr inbounds i8, ptr %30, i64 112
  %413 = add nsw i64 %43, -1
  store i64 %413, ptr %412, align 8
  br label %414

414:
  %415 = getelementptr inbounds i8, ptr %11, i64 8
  store ptr %30, ptr %415, align 8
  br i1 %16, label %416, label %418

416:
  %417 = call fastcc ptr @make_result(ptr %30, ptr %60)
  br label %425

418:
  %419 = getelementptr ptr, ptr %1, i64 %9
  %420 = load ptr, ptr %419, align 8
  call void @Py_IncRef(ptr %420)
  br label %425

421:
  %422 = getelementptr inbounds i8, ptr %30, i64 8
  %423 = load ptr, ptr %422, align 8
  %424 = icmp eq ptr %423, null
  br i1 %424, label %427, label %27

425:
  %426 = phi ptr [ %417, %416 ], [ %420, %418 ], [ null, %401 ]
  call fastcc void @leave(ptr %30, ptr %60, i64 %62)
  br label %429

427:
  %428 = call fastcc ptr @call_in_python(ptr %0, ptr %1, i64 %9, ptr %3)
  br label %429

429:
  %430 = phi ptr [ %428, %427 ], [ %426, %425 ]
  ret ptr %430
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

define internal fastcc i1 @answers_are_right(ptr %0, ptr %1) {
  %3 = alloca ptr, align 8
  %4 = getelementptr inbounds i8, ptr %0, i64 224
  %5 = getelementptr inbounds i8, ptr %0, i64 232
  %6 = load i64, ptr %5, align 8
  %7 = getelementptr i8, ptr %0, i64 %6
  %8 = load i64, ptr %4, align 8
  %9 = icmp eq i64 %8, 0
  br i1 %9, label %46, label %10

10:
  %11 = getelementptr inbounds i8, ptr %0, i64 112
  br label %16

12:
  %13 = add i64 %17, 1
  %14 = load i64, ptr %4, align 8
  %15 = icmp eq i64 %13, %14
  br i1 %15, label %46, label %16

16:
  %17 = phi i64 [ 0, %10 ], [ %13, %12 ]
  %18 = load i64, ptr %11, align 8
  %19 = icmp eq i64 %18, 0
  br i1 %19, label %50, label %20

20:
  %21 = getelementptr %struct.question, ptr %7, i64 %17
  %22 = getelementptr inbounds i8, ptr %21, i64 16
  %23 = load ptr, ptr %22, align 8
  %24 = icmp eq ptr %23, null
  br i1 %24, label %25, label %30

25:
  %26 = getelementptr inbounds i8, ptr %21, i64 24
  %27 = load i64, ptr %26, align 8
  %28 = getelementptr ptr, ptr %1, i64 %27
  %29 = load ptr, ptr %28, align 8
  br label %30

30:
  %31 = phi ptr [ %29, %25 ], [ %23, %20 ]
  store ptr %31, ptr %3, align 8
  %32 = load ptr, ptr %21, align 8
  %33 = getelementptr inbounds i8, ptr %21, i64 8
  %34 = load i64, ptr %33, align 8
  %35 = call ptr @PyObject_Vectorcall(ptr %32, ptr %3, i64 %34, ptr null)
  %36 = icmp eq ptr %35, null
  br i1 %36, label %37, label %38

37:
  call void @Py_DecRef(ptr null)
  br label %43

38:
  %39 = getelementptr inbounds i8, ptr %21, i64 32
  %40 = load ptr, ptr %39, align 8
  %41 = call i32 @PyObject_RichCompareBool(ptr %35, ptr %40, i32 2)
  call void @Py_DecRef(ptr %35)
  %42 = icmp slt i32 %41, 0
  br i1 %42, label %43, label %44

43:
  call void @PyErr_Clear()
  br label %50

44:
  %45 = icmp eq i32 %41, 1
  br i1 %45, label %12, label %50

46:
  %47 = getelementptr inbounds i8, ptr %0, i64 112
  %48 = load i64, ptr %47, align 8
  %49 = icmp ne i64 %48, 0
  br label %50

50:
  %51 = phi i1 [ %49, %46 ], [ false, %43 ], [ false, %16 ], [ false, %44 ]
  ret i1 %51
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

declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)

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

declare ptr @PyArray_Scalar(ptr, ptr, ptr)

declare ptr @PyFloat_FromDouble(double)

declare ptr @PyLong_FromLongLong(i64)

declare ptr @PyBool_FromLong(i64)

declare ptr @PyType_GenericAlloc(ptr, i64)

declare ptr @PyTuple_New(i64)

declare i32 @PyTuple_SetItem(ptr, i64, ptr)

declare ptr @PyList_New(i64)

declare i32 @PyList_SetItem(ptr, i64, ptr)

declare ptr @PyDict_New()

declare i32 @PyDict_SetItem(ptr, ptr, ptr)

declare ptr @PyType_GetSlot(ptr, i32)
