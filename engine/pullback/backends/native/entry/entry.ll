; How a native program is called from Python: the vectorcall of every callable of the native tier.
;
; The code is the same for all programs. What differs is data: a frame (frames.py) says how to fetch and check each thing that
; a program reads, where its results go and what the caller gets. A frame is made of 64-bit words in one piece; what is inside it is
; referred to by its offset in bytes, so that a copy of it is a frame too.
;
; A check that does not hold goes on to the next frame, and after the last one to the callable's __call__, in Python, which is
; always right. Nothing has been changed by then but words that every call writes before it reads them.
;
; Objects are read by structure only where no function of the API tells, and where offsets.py has seen that they are laid out
; so. Reference counts are changed and exceptions raised by functions of the API alone.

; reference count, type
%Object = type { i64, ptr }
; reference count, type, value: a number of NumPy's in float64
%Number = type { i64, ptr, i64 }
; reference count, type, data, dimensions, shape, strides, base, dtype, flags, weak references
%Array = type { i64, ptr, ptr, i32, ptr, ptr, ptr, ptr, i32, ptr }

%Frame = type {
  i64, ;  0 busy: 0, or a run is going on in it, or it is closed for ever
  ptr, ;  1 the object that holds the next frame, or null
  ptr, ;  2 the program: i64 (ptr table), which gives zero where it could compute its results
  i64, ;  3 0; 1, the program runs without the interpreter's lock; 2, Python makes what is returned
  i64, ;  4 number of arguments
  i64, ;  5 steps: how many
  i64, ;  6        where
  i64, ;  7 objects, one for each step: where
  i64, ;  8 outputs: how many
  i64, ;  9          where
  i64, ; 10 makings: how many
  i64, ; 11          where
  i64, ; 12 table of the program: where
  i64, ; 13 stack of what has been made: where
  i64, ; 14 runs left; below zero there is no end of them
  i64, ; 15 guards: how many
  i64, ; 16         where
  i64, ; 17 watches: how many
  i64, ; 18          where
  i64, ; 19 overlaps that may not be: how many pairs
  i64, ; 20                           where
  i64, ; 21 steps behind the others that fetch what `out` has, for results to be written into: how many
  i64, ; 22 pairs behind the others that are of those arrays: how many
  ptr, ; 23 a word that is not zero while a run is on in the scratch memory, which frames may share
  i64, ; 24 dicts whose tables have to be what they were: how many
  i64, ; 25                                               where
  i64, ; 26 words that have to hold what they held, in pairs: how many
  i64  ; 27                                                   where
}

; A dict, its table, and how this is laid out: the names among the words held are in it.
%Dict = type { ptr, ptr, i64 }

; Two words, one behind the other, and what they have to hold: key and value of a name, code and defaults of a function.
%Held = type { ptr, i64, i64 }

; One thing fetched, and checked to be what the program was made for.
%Step = type {
  i32, ; 0 how it is fetched
  i32, ; 1 how it is checked
  i32, ; 2 the step that fetched what it is part of
  i32, ; 3 of an array: dimensions
  i64, ; 4 what to fetch: a position, or an object
  ptr, ; 5 the type it has to have; of an entry, the dict it is in; of a function, the code
  ptr, ; 6 the object it has to be; of an array, the dtype; of a function, the defaults
  i64, ; 7 of an array: where its shape is written; of a container: its length; of a function, the defaults of keywords
  i64, ; 8 where the array's address or the number goes
  i64  ; 9 bytes of the array
}

; One result. An array has memory of NumPy's; the last two that were returned are kept, to be written again when nobody else
; refers to them.
%Output = type {
  ptr, ; 0 the array to try first
  ptr, ; 1 the one after it
  ptr, ; 2 dtype
  i64, ; 3 dimensions
  i64, ; 4 shape: where
  i64, ; 5 where its address goes; zero where a step has put it there
  ptr, ; 6 an array that is no longer kept, to be let go when the run is over
  i64  ; 7 of a number: where it is
}

; One step of making what is returned, on a stack.
%Making = type {
  i64, ; 0 what is made
  i64, ; 1 number of the output, offset of a number, or length of a container
  ptr  ; 2 an object it takes: a dtype, a constant, a tuple of keys
}

; An array that the program reads without being given it, and what some of its elements have to be.
%Watch = type {
  ptr, ; 0 the array
  ptr, ; 1 where its elements have to begin
  i64, ; 2 bytes of an element
  i64, ; 3 elements looked at, without the last one of all
  i64, ; 4 bytes from one of them to the next
  i64, ; 5 bytes from the first element to the last one of all
  ptr  ; 6 what they have to be, one behind the other
}

; Two arrays among the objects fetched, by the numbers of their steps.
%Pair = type { i64, i64 }

; A number that the program computes beside its results, and what it has to be.
%Guard = type {
  i64, ; 0 how it is looked at
  i64, ; 1 where it is
  i64  ; 2 what has to be seen
}

declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare i64 @PyList_Size(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare ptr @PyList_New(i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare i64 @PyDict_Size(ptr)
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare i32 @PyDict_Next(ptr, ptr, ptr, ptr)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)
declare ptr @PyDict_New()
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare ptr @PyCell_Get(ptr)
declare ptr @PyFunction_GetCode(ptr)
declare ptr @PyFunction_GetDefaults(ptr)
declare ptr @PyFunction_GetKwDefaults(ptr)
declare ptr @PyObject_GenericGetDict(ptr, ptr)
declare ptr @PyObject_GenericGetAttr(ptr, ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyFloat_FromDouble(double)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare ptr @PyLong_FromLongLong(i64)
declare i32 @PyObject_IsTrue(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyBool_FromLong(i64)
declare ptr @PyType_GetSlot(ptr, i32)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @PyArray_ScalarAsCtype(ptr, ptr)
declare ptr @PyArray_Scalar(ptr, ptr, ptr)
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)

@ndarray = internal global ptr null
@suspensions = internal global ptr null
@out = internal global ptr null

; Before the first call: NumPy's array type, which new arrays are made of; a word that is not zero while every call has to go
; to __call__; and the name `out`.
define void @initialise(ptr %ndarray, ptr %suspensions, ptr %out) {
  store ptr %ndarray, ptr @ndarray
  store ptr %suspensions, ptr @suspensions
  store ptr %out, ptr @out
  ret void
}

define ptr @entry(ptr %self, ptr %args, i64 %nargsf, ptr %kwnames) {
start:
  %key = alloca ptr
  %value = alloca ptr
  %position = alloca i64
  %overflow = alloca i32
  %nargs = and i64 %nargsf, 9223372036854775807 ; the highest bit says that the word before the arguments may be written
  %field = getelementptr i8, ptr %self, i64 FRAME_OFFSET
  %first = load ptr, ptr %field
  %unbound = icmp eq ptr %first, null
  %suspensions.at = load ptr, ptr @suspensions
  %suspensions = load i64, ptr %suspensions.at
  %off = icmp ne i64 %suspensions, 0
  %through.python = or i1 %unbound, %off
  br i1 %through.python, label %slow, label %keywords
keywords:
  %plain = icmp eq ptr %kwnames, null
  br i1 %plain, label %try, label %keyword
keyword: ; out alone is taken
  %kwnames.size = call i64 @PyTuple_Size(ptr %kwnames)
  %kwnames.one = icmp eq i64 %kwnames.size, 1
  br i1 %kwnames.one, label %keyword.name, label %slow
keyword.name:
  %kwname = call ptr @PyTuple_GetItem(ptr %kwnames, i64 0)
  %out.name = load ptr, ptr @out
  %is.out = icmp eq ptr %kwname, %out.name
  br i1 %is.out, label %try, label %slow

; --- one frame after another -------------------------------------------------------------------------------------------
try:
  %holder = phi ptr [ %first, %keywords ], [ %first, %keyword.name ], [ %next, %miss ]
  %frame.at = getelementptr %Array, ptr %holder, i64 0, i32 2
  %frame = load ptr, ptr %frame.at
  %busy.at = getelementptr %Frame, ptr %frame, i64 0, i32 0
  %busy = load i64, ptr %busy.at
  %lock.at = getelementptr %Frame, ptr %frame, i64 0, i32 23
  %lock = load ptr, ptr %lock.at
  %locked = load i64, ptr %lock
  %occupied = or i64 %busy, %locked
  %taken = icmp ne i64 %occupied, 0
  br i1 %taken, label %miss, label %idle
idle:
  %arity.at = getelementptr %Frame, ptr %frame, i64 0, i32 4
  %arity = load i64, ptr %arity.at
  %fits = icmp eq i64 %arity, %nargs
  br i1 %fits, label %counted, label %miss
counted:
  %runs.at = getelementptr %Frame, ptr %frame, i64 0, i32 14
  %runs = load i64, ptr %runs.at
  %spent = icmp eq i64 %runs, 0
  %outs.at = getelementptr %Frame, ptr %frame, i64 0, i32 21
  %outs.all = load i64, ptr %outs.at
  %outs = select i1 %plain, i64 0, i64 %outs.all
  %outs.none = icmp eq i64 %outs, 0
  %outs.missing = xor i1 %plain, %outs.none ; without `out` there are none either
  %unfit = or i1 %spent, %outs.missing
  br i1 %unfit, label %miss, label %fetching

miss:
  %next.at = getelementptr %Frame, ptr %frame, i64 0, i32 1
  %next = load ptr, ptr %next.at
  %last = icmp eq ptr %next, null
  br i1 %last, label %slow, label %try

slow:
  %answer = call ptr @call_in_python(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)
  ret ptr %answer

; --- what the program reads --------------------------------------------------------------------------------------------
fetching:
  %steps.count.at = getelementptr %Frame, ptr %frame, i64 0, i32 5
  %steps.plain = load i64, ptr %steps.count.at
  %steps.count = add i64 %steps.plain, %outs
  %steps.offset.at = getelementptr %Frame, ptr %frame, i64 0, i32 6
  %steps.offset = load i64, ptr %steps.offset.at
  %steps = getelementptr i8, ptr %frame, i64 %steps.offset
  %objects.offset.at = getelementptr %Frame, ptr %frame, i64 0, i32 7
  %objects.offset = load i64, ptr %objects.offset.at
  %objects = getelementptr i8, ptr %frame, i64 %objects.offset
  %dicts.count.at = getelementptr %Frame, ptr %frame, i64 0, i32 24
  %dicts.count = load i64, ptr %dicts.count.at
  %dicts.offset.at = getelementptr %Frame, ptr %frame, i64 0, i32 25
  %dicts.offset = load i64, ptr %dicts.offset.at
  %dicts = getelementptr i8, ptr %frame, i64 %dicts.offset
  br label %dict

dict: ; first the tables: what is in another one must not be read
  %d = phi i64 [ 0, %fetching ], [ %d.next, %dict.same ]
  %dicts.all = icmp eq i64 %d, %dicts.count
  br i1 %dicts.all, label %held, label %dict.table
dict.table:
  %dict.at.word = getelementptr %Dict, ptr %dicts, i64 %d, i32 0
  %dict.object = load ptr, ptr %dict.at.word
  %dict.table.at = getelementptr i8, ptr %dict.object, i64 32
  %dict.table.now = load ptr, ptr %dict.table.at
  %dict.values.at = getelementptr i8, ptr %dict.object, i64 40
  %dict.values = load ptr, ptr %dict.values.at
  %dict.expected.at = getelementptr %Dict, ptr %dicts, i64 %d, i32 1
  %dict.expected = load ptr, ptr %dict.expected.at
  %dict.table.same = icmp eq ptr %dict.table.now, %dict.expected
  %dict.whole = icmp eq ptr %dict.values, null
  %dict.readable = and i1 %dict.table.same, %dict.whole
  br i1 %dict.readable, label %dict.layout, label %miss
dict.layout: ; another table of another size may have come to the same place
  %dict.layout.at = getelementptr i8, ptr %dict.table.now, i64 8
  %dict.layout.now = load i32, ptr %dict.layout.at
  %dict.layout.low = and i32 %dict.layout.now, 16777215
  %dict.layout.wide = zext i32 %dict.layout.low to i64
  %dict.layout.expected.at = getelementptr %Dict, ptr %dicts, i64 %d, i32 2
  %dict.layout.expected = load i64, ptr %dict.layout.expected.at
  %dict.layout.same = icmp eq i64 %dict.layout.wide, %dict.layout.expected
  br i1 %dict.layout.same, label %dict.same, label %miss
dict.same:
  %d.next = add i64 %d, 1
  br label %dict

held: ; then the words, all of them: one branch less for each
  %held.count.at = getelementptr %Frame, ptr %frame, i64 0, i32 26
  %held.count = load i64, ptr %held.count.at
  %held.offset.at = getelementptr %Frame, ptr %frame, i64 0, i32 27
  %held.offset = load i64, ptr %held.offset.at
  %helds = getelementptr i8, ptr %frame, i64 %held.offset
  br label %held.each
held.each:
  %h = phi i64 [ 0, %held ], [ %h.next, %held.look ]
  %differing = phi i64 [ 0, %held ], [ %differing.next, %held.look ]
  %held.all = icmp eq i64 %h, %held.count
  br i1 %held.all, label %held.done, label %held.look
held.look:
  %held.at.word = getelementptr %Held, ptr %helds, i64 %h, i32 0
  %held.at = load ptr, ptr %held.at.word
  %held.first.now = load i64, ptr %held.at
  %held.second.at = getelementptr i64, ptr %held.at, i64 1
  %held.second.now = load i64, ptr %held.second.at
  %held.first.at = getelementptr %Held, ptr %helds, i64 %h, i32 1
  %held.first = load i64, ptr %held.first.at
  %held.second.word = getelementptr %Held, ptr %helds, i64 %h, i32 2
  %held.second = load i64, ptr %held.second.word
  %held.first.differs = xor i64 %held.first.now, %held.first
  %held.second.differs = xor i64 %held.second.now, %held.second
  %held.differs = or i64 %held.first.differs, %held.second.differs
  %differing.next = or i64 %differing, %held.differs
  %h.next = add i64 %h, 1
  br label %held.each
held.done:
  %held.same = icmp eq i64 %differing, 0
  br i1 %held.same, label %step, label %miss

step:
  %k = phi i64 [ 0, %held.done ], [ %k.next, %checked ]
  %fetched.all = icmp eq i64 %k, %steps.count
  br i1 %fetched.all, label %guarded, label %fetch

fetch: ; most are arguments that have to be arrays, fetch 0 and check 1: these are not asked what they are: 1.5 ns less for each
  %fetch.at = getelementptr %Step, ptr %steps, i64 %k, i32 0
  %both = load i64, ptr %fetch.at
  %is.array.argument = icmp eq i64 %both, 4294967296
  br i1 %is.array.argument, label %array.argument, label %fetch.how
array.argument:
  %array.what.at = getelementptr %Step, ptr %steps, i64 %k, i32 4
  %array.what = load i64, ptr %array.what.at
  %array.argument.at = getelementptr ptr, ptr %args, i64 %array.what
  %array = load ptr, ptr %array.argument.at
  %array.place = getelementptr ptr, ptr %objects, i64 %k
  store ptr %array, ptr %array.place
  %array.type.at = getelementptr %Object, ptr %array, i64 0, i32 1
  %array.type = load ptr, ptr %array.type.at
  %ndarray = load ptr, ptr @ndarray
  %array.exact = icmp eq ptr %array.type, %ndarray
  br i1 %array.exact, label %array.expect, label %miss
array.expect:
  %array.dtype.at = getelementptr %Step, ptr %steps, i64 %k, i32 6
  %array.dtype = load ptr, ptr %array.dtype.at
  %array.shape.at = getelementptr %Step, ptr %steps, i64 %k, i32 7
  %array.shape = load i64, ptr %array.shape.at
  %array.target.at = getelementptr %Step, ptr %steps, i64 %k, i32 8
  %array.target.offset = load i64, ptr %array.target.at
  %array.target = getelementptr i8, ptr %frame, i64 %array.target.offset
  br label %check.array

fetch.how:
  %how = load i32, ptr %fetch.at
  %parent.at = getelementptr %Step, ptr %steps, i64 %k, i32 2
  %parent.number = load i32, ptr %parent.at
  %parent.index = zext i32 %parent.number to i64
  %parent.place = getelementptr ptr, ptr %objects, i64 %parent.index
  %what.at = getelementptr %Step, ptr %steps, i64 %k, i32 4
  %what = load i64, ptr %what.at
  %what.object = inttoptr i64 %what to ptr
  switch i32 %how, label %miss [
    i32 0, label %fetch.argument
    i32 1, label %fetch.constant
    i32 2, label %fetch.tuple
    i32 3, label %fetch.list
    i32 4, label %fetch.dict
    i32 5, label %fetch.first
    i32 6, label %fetch.next
    i32 7, label %fetch.cell
    i32 8, label %fetch.code
    i32 9, label %fetch.defaults
    i32 10, label %fetch.kwdefaults
    i32 11, label %fetch.type
    i32 12, label %fetch.attributes
    i32 13, label %fetch.entry
    i32 14, label %fetch.function
    i32 15, label %fetch.slot
    i32 16, label %fetch.attributes.of
    i32 17, label %fetch.first
    i32 18, label %fetch.next
  ]
fetch.argument:
  %argument.at = getelementptr ptr, ptr %args, i64 %what
  %argument = load ptr, ptr %argument.at
  br label %fetched
fetch.constant:
  br label %fetched
fetch.tuple:
  %tuple.parent = load ptr, ptr %parent.place
  %tuple.item = call ptr @PyTuple_GetItem(ptr %tuple.parent, i64 %what)
  br label %fetched
fetch.list:
  %list.parent = load ptr, ptr %parent.place
  %list.item = call ptr @PyList_GetItem(ptr %list.parent, i64 %what)
  br label %fetched
fetch.entry:
  %entry.dict.at = getelementptr %Step, ptr %steps, i64 %k, i32 5
  br label %fetch.item
fetch.dict:
  br label %fetch.item
fetch.item: ; null where there is none, which may be what is expected
  %dict.at = phi ptr [ %entry.dict.at, %fetch.entry ], [ %parent.place, %fetch.dict ]
  %dict.parent = load ptr, ptr %dict.at
  %dict.item = call ptr @PyDict_GetItemWithError(ptr %dict.parent, ptr %what.object)
  %dict.none = icmp eq ptr %dict.item, null
  br i1 %dict.none, label %fetch.dict.none, label %fetched
fetch.dict.none:
  %dict.error = call ptr @PyErr_Occurred()
  %dict.failed = icmp ne ptr %dict.error, null
  br i1 %dict.failed, label %fetch.dict.failed, label %fetched
fetch.dict.failed:
  call void @PyErr_Clear()
  br label %miss
fetch.first: ; the items of a dict in its own order, one step after the other
  store i64 0, ptr %position
  br label %fetch.next
fetch.next:
  %next.parent = load ptr, ptr %parent.place
  %next.there = call i32 @PyDict_Next(ptr %next.parent, ptr %position, ptr %key, ptr %value)
  %next.key = load ptr, ptr %key
  %next.value = load ptr, ptr %value
  %next.more = icmp ne i32 %next.there, 0
  br i1 %next.more, label %next.found, label %miss
next.found:
  %next.same = icmp eq ptr %next.key, %what.object
  br i1 %next.same, label %fetched, label %next.other
next.other: ; texts that are made anew for each dict are other objects
  %next.by.value = icmp ugt i32 %how, 16
  br i1 %next.by.value, label %next.types, label %miss
next.types:
  %next.type.at = getelementptr %Object, ptr %next.key, i64 0, i32 1
  %next.type = load ptr, ptr %next.type.at
  %what.type.at = getelementptr %Object, ptr %what.object, i64 0, i32 1
  %what.type = load ptr, ptr %what.type.at
  %next.alike = icmp eq ptr %next.type, %what.type
  br i1 %next.alike, label %next.compare, label %miss
next.compare:
  %next.compared = call i32 @PyObject_RichCompareBool(ptr %next.key, ptr %what.object, i32 2)
  %next.equal = icmp eq i32 %next.compared, 1
  br i1 %next.equal, label %fetched, label %miss
fetch.cell: ; the cell goes on referring to it
  %cell.value = call ptr @PyCell_Get(ptr %what.object)
  %cell.empty = icmp eq ptr %cell.value, null
  br i1 %cell.empty, label %fetched, label %fetch.cell.full
fetch.cell.full:
  call void @Py_DecRef(ptr %cell.value)
  br label %fetched
fetch.code:
  %code = call ptr @PyFunction_GetCode(ptr %what.object)
  br label %fetched
fetch.defaults:
  %defaults = call ptr @PyFunction_GetDefaults(ptr %what.object)
  br label %fetched
fetch.kwdefaults:
  %kwdefaults = call ptr @PyFunction_GetKwDefaults(ptr %what.object)
  br label %fetched
fetch.function: ; all that a function has for itself, where that is no container
  %function.code = call ptr @PyFunction_GetCode(ptr %what.object)
  %function.defaults = call ptr @PyFunction_GetDefaults(ptr %what.object)
  %function.kwdefaults = call ptr @PyFunction_GetKwDefaults(ptr %what.object)
  %function.code.at = getelementptr %Step, ptr %steps, i64 %k, i32 5
  %function.code.expected = load ptr, ptr %function.code.at
  %function.defaults.at = getelementptr %Step, ptr %steps, i64 %k, i32 6
  %function.defaults.expected = load ptr, ptr %function.defaults.at
  %function.kwdefaults.at = getelementptr %Step, ptr %steps, i64 %k, i32 7
  %function.kwdefaults.expected = load ptr, ptr %function.kwdefaults.at
  %function.code.same = icmp eq ptr %function.code, %function.code.expected
  %function.defaults.same = icmp eq ptr %function.defaults, %function.defaults.expected
  %function.kwdefaults.same = icmp eq ptr %function.kwdefaults, %function.kwdefaults.expected
  %function.and0 = and i1 %function.code.same, %function.defaults.same
  %function.and1 = and i1 %function.and0, %function.kwdefaults.same
  br i1 %function.and1, label %fetched, label %miss
fetch.type:
  %class.at = getelementptr %Object, ptr %what.object, i64 0, i32 1
  %class = load ptr, ptr %class.at
  br label %fetched
fetch.slot: ; of a class whose slots are all that their names mean; the object goes on referring to it
  %slot.parent = load ptr, ptr %parent.place
  %slot = call ptr @PyObject_GenericGetAttr(ptr %slot.parent, ptr %what.object)
  %slot.none = icmp eq ptr %slot, null
  br i1 %slot.none, label %fetch.attributes.failed, label %fetch.slot.there
fetch.slot.there:
  call void @Py_DecRef(ptr %slot)
  br label %fetched
fetch.attributes.of:
  %attributes.parent = load ptr, ptr %parent.place
  br label %fetch.attributes.found
fetch.attributes:
  br label %fetch.attributes.found
fetch.attributes.found: ; the object goes on referring to them
  %attributes.owner = phi ptr [ %attributes.parent, %fetch.attributes.of ], [ %what.object, %fetch.attributes ]
  %attributes = call ptr @PyObject_GenericGetDict(ptr %attributes.owner, ptr null)
  %attributes.none = icmp eq ptr %attributes, null
  br i1 %attributes.none, label %fetch.attributes.failed, label %fetch.attributes.there
fetch.attributes.failed:
  call void @PyErr_Clear()
  br label %miss
fetch.attributes.there:
  call void @Py_DecRef(ptr %attributes)
  br label %fetched

fetched:
  %object = phi ptr [ %argument, %fetch.argument ], [ %what.object, %fetch.constant ], [ %tuple.item, %fetch.tuple ],
                    [ %list.item, %fetch.list ], [ %dict.item, %fetch.item ], [ null, %fetch.dict.none ],
                    [ %next.value, %next.found ], [ %next.value, %next.compare ], [ null, %fetch.cell ], [ %cell.value, %fetch.cell.full ],
                    [ %code, %fetch.code ], [ %defaults, %fetch.defaults ], [ %kwdefaults, %fetch.kwdefaults ], [ %what.object, %fetch.function ],
                    [ %class, %fetch.type ], [ %attributes, %fetch.attributes.there ], [ %slot, %fetch.slot.there ]
  %object.place = getelementptr ptr, ptr %objects, i64 %k
  store ptr %object, ptr %object.place
  %check.at = getelementptr %Step, ptr %steps, i64 %k, i32 1
  %check = load i32, ptr %check.at
  %expected.at = getelementptr %Step, ptr %steps, i64 %k, i32 6
  %expected = load ptr, ptr %expected.at
  %is.expected = icmp eq ptr %object, %expected
  %by.identity = icmp eq i32 %check, 0
  br i1 %by.identity, label %check.identity, label %check.presence
check.identity:
  br i1 %is.expected, label %checked, label %miss
check.presence:
  %absent = icmp eq ptr %object, null
  br i1 %absent, label %miss, label %check.anything
check.anything:
  %any = icmp eq i32 %check, 9
  br i1 %any, label %checked, label %check.alternatives
check.alternatives:
  %check.pair = and i32 %check, -2
  %alternatives = icmp eq i32 %check.pair, 10
  br i1 %alternatives, label %check.cotangent, label %check.type
check.type: ; exactly this type: a subclass may do anything
  %type.at = getelementptr %Object, ptr %object, i64 0, i32 1
  %type = load ptr, ptr %type.at
  %type.expected.at = getelementptr %Step, ptr %steps, i64 %k, i32 5
  %type.expected = load ptr, ptr %type.expected.at
  %type.right = icmp eq ptr %type, %type.expected
  br i1 %type.right, label %check.kind, label %miss
check.kind:
  %detail.at = getelementptr %Step, ptr %steps, i64 %k, i32 7
  %detail = load i64, ptr %detail.at
  %target.at = getelementptr %Step, ptr %steps, i64 %k, i32 8
  %target.offset = load i64, ptr %target.at
  %target = getelementptr i8, ptr %frame, i64 %target.offset
  switch i32 %check, label %miss [
    i32 1, label %check.array.any
    i32 2, label %check.float
    i32 3, label %check.int
    i32 4, label %check.bool
    i32 5, label %check.scalar
    i32 6, label %check.tuple
    i32 7, label %check.list
    i32 8, label %check.dict
    i32 12, label %check.array.any
    i32 13, label %checked
  ]
check.cotangent: ; a float, or a number of the dtype itself
  %cotangent.type.at = getelementptr %Object, ptr %object, i64 0, i32 1
  %cotangent.type = load ptr, ptr %cotangent.type.at
  %cotangent.float = icmp eq ptr %cotangent.type, %expected
  %cotangent.at = getelementptr %Step, ptr %steps, i64 %k, i32 8
  %cotangent.offset = load i64, ptr %cotangent.at
  %cotangent.target = getelementptr i8, ptr %frame, i64 %cotangent.offset
  br i1 %cotangent.float, label %cotangent.convert, label %cotangent.scalar
cotangent.convert:
  %cotangent.value = call double @PyFloat_AsDouble(ptr %object)
  %cotangent.double = icmp eq i32 %check, 10
  br i1 %cotangent.double, label %cotangent.store, label %cotangent.narrow
cotangent.store:
  store double %cotangent.value, ptr %cotangent.target
  br label %checked
cotangent.narrow:
  %cotangent.narrowed = fptrunc double %cotangent.value to float
  store float %cotangent.narrowed, ptr %cotangent.target
  br label %checked
cotangent.scalar:
  %cotangent.scalar.at = getelementptr %Step, ptr %steps, i64 %k, i32 5
  %cotangent.scalar.type = load ptr, ptr %cotangent.scalar.at
  %cotangent.right = icmp eq ptr %cotangent.type, %cotangent.scalar.type
  br i1 %cotangent.right, label %cotangent.read, label %miss
cotangent.read:
  call void @PyArray_ScalarAsCtype(ptr %object, ptr %cotangent.target)
  br label %checked

check.array.any:
  %is.written = icmp eq i32 %check, 12
  %flags.any = select i1 %is.written, i32 1281, i32 257 ; C contiguous and aligned; writeable
  br label %check.array
check.array:
  %tested = phi ptr [ %array, %array.expect ], [ %object, %check.array.any ]
  %dtype.expected = phi ptr [ %array.dtype, %array.expect ], [ %expected, %check.array.any ]
  %flags.mask = phi i32 [ 257, %array.expect ], [ %flags.any, %check.array.any ]
  %shape.offset = phi i64 [ %array.shape, %array.expect ], [ %detail, %check.array.any ]
  %data.target = phi ptr [ %array.target, %array.expect ], [ %target, %check.array.any ]
  %dtype.at = getelementptr %Array, ptr %tested, i64 0, i32 7
  %dtype = load ptr, ptr %dtype.at
  %dtype.right = icmp eq ptr %dtype, %dtype.expected
  %ndim.at = getelementptr %Array, ptr %tested, i64 0, i32 3
  %ndim = load i32, ptr %ndim.at
  %ndim.expected.at = getelementptr %Step, ptr %steps, i64 %k, i32 3
  %ndim.expected = load i32, ptr %ndim.expected.at
  %ndim.right = icmp eq i32 %ndim, %ndim.expected
  %flags.at = getelementptr %Array, ptr %tested, i64 0, i32 8
  %flags = load i32, ptr %flags.at
  %flags.needed = and i32 %flags, %flags.mask
  %flags.right = icmp eq i32 %flags.needed, %flags.mask
  %array.and0 = and i1 %dtype.right, %ndim.right
  %array.and1 = and i1 %array.and0, %flags.right
  br i1 %array.and1, label %check.shape, label %miss
check.shape:
  %shape.at = getelementptr %Array, ptr %tested, i64 0, i32 4
  %shape = load ptr, ptr %shape.at
  %shape.expected = getelementptr i8, ptr %frame, i64 %shape.offset
  %rank = zext i32 %ndim to i64
  br label %check.axis
check.axis:
  %axis = phi i64 [ 0, %check.shape ], [ %axis.next, %check.extent ]
  %shape.right = icmp eq i64 %axis, %rank
  br i1 %shape.right, label %array.right, label %check.extent
check.extent:
  %extent.at = getelementptr i64, ptr %shape, i64 %axis
  %extent = load i64, ptr %extent.at
  %extent.expected.at = getelementptr i64, ptr %shape.expected, i64 %axis
  %extent.expected = load i64, ptr %extent.expected.at
  %axis.next = add i64 %axis, 1
  %extent.right = icmp eq i64 %extent, %extent.expected
  br i1 %extent.right, label %check.axis, label %miss
array.right:
  %data.at = getelementptr %Array, ptr %tested, i64 0, i32 2
  %data = load ptr, ptr %data.at
  store ptr %data, ptr %data.target
  br label %checked

check.float: ; of exact floats and ints these functions raise nothing
  %float = call double @PyFloat_AsDouble(ptr %object)
  store double %float, ptr %target
  br label %checked
check.int:
  %int = call i64 @PyLong_AsLongLongAndOverflow(ptr %object, ptr %overflow)
  %overflown = load i32, ptr %overflow
  store i64 %int, ptr %target
  %int.right = icmp eq i32 %overflown, 0
  br i1 %int.right, label %checked, label %miss
check.bool:
  %truth = call i32 @PyObject_IsTrue(ptr %object)
  %truth.byte = trunc i32 %truth to i8
  store i8 %truth.byte, ptr %target
  br label %checked
check.scalar:
  call void @PyArray_ScalarAsCtype(ptr %object, ptr %target)
  br label %checked
check.tuple:
  %tuple.length = call i64 @PyTuple_Size(ptr %object)
  %tuple.right = icmp eq i64 %tuple.length, %detail
  br i1 %tuple.right, label %checked, label %miss
check.list:
  %list.length = call i64 @PyList_Size(ptr %object)
  %list.right = icmp eq i64 %list.length, %detail
  br i1 %list.right, label %checked, label %miss
check.dict:
  %dict.length = call i64 @PyDict_Size(ptr %object)
  %dict.right = icmp eq i64 %dict.length, %detail
  br i1 %dict.right, label %checked, label %miss

checked:
  %k.next = add i64 %k, 1
  br label %step

; --- the run -----------------------------------------------------------------------------------------------------------
guarded:
  %arrays.right = call i1 @arrays_are_right(ptr %frame, ptr %steps, ptr %objects, i1 %plain)
  br i1 %arrays.right, label %running, label %miss
running:
  store i64 1, ptr %busy.at
  store i64 1, ptr %lock
  %alone.at = getelementptr %Frame, ptr %frame, i64 0, i32 3
  %alone = load i64, ptr %alone.at
  %unwatched = icmp ne i64 %alone, 0 ; others may run meanwhile, and let go of what the caller does not hold for us
  br i1 %unwatched, label %holding, label %preparing
holding:
  call void @hold(ptr %objects, i64 %steps.count)
  br label %preparing
preparing:
  %memory = call i32 @prepare_outputs(ptr %frame, i1 %plain)
  %prepared = icmp eq i32 %memory, 0
  br i1 %prepared, label %run, label %over
run:
  %program.at = getelementptr %Frame, ptr %frame, i64 0, i32 2
  %program = load ptr, ptr %program.at
  %table.offset.at = getelementptr %Frame, ptr %frame, i64 0, i32 12
  %table.offset = load i64, ptr %table.offset.at
  %table = getelementptr i8, ptr %frame, i64 %table.offset
  %long = icmp eq i64 %alone, 1
  br i1 %long, label %run.alone, label %run.held
run.held:
  %status.held = call i64 %program(ptr %table)
  br label %ran
run.alone:
  %thread = call ptr @PyEval_SaveThread()
  %status.alone = call i64 %program(ptr %table)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %ran
ran:
  %status = phi i64 [ %status.held, %run.held ], [ %status.alone, %run.alone ]
  %computed = icmp eq i64 %status, 0
  br i1 %computed, label %computed.all, label %declined
computed.all:
  %as.seen = call i1 @guards_hold(ptr %frame)
  br i1 %as.seen, label %made, label %declined
declined: ; these values are for another program
  call void @drop_outputs(ptr %frame)
  br i1 %unwatched, label %declined.let.go, label %declined.over
declined.let.go:
  call void @let_go(ptr %objects, i64 %steps.count)
  br label %declined.over
declined.over:
  store i64 0, ptr %lock
  store i64 0, ptr %busy.at
  br label %miss
made:
  %runs.counted = icmp sgt i64 %runs, 0
  %runs.less = sub i64 %runs, 1
  %runs.left = select i1 %runs.counted, i64 %runs.less, i64 %runs
  store i64 %runs.left, ptr %runs.at
  %latest.at = getelementptr i8, ptr %field, i64 8
  store ptr %frame, ptr %latest.at
  br i1 %plain, label %make, label %give.out
make:
  %result = call ptr @make_result(ptr %frame, ptr %objects)
  br label %over
give.out: ; comes behind the arguments by position
  %out.at = getelementptr ptr, ptr %args, i64 %nargs
  %out.given = load ptr, ptr %out.at
  call void @Py_IncRef(ptr %out.given)
  br label %over
over:
  %returned = phi ptr [ null, %preparing ], [ %result, %make ], [ %out.given, %give.out ]
  call void @drop_outputs(ptr %frame)
  br i1 %unwatched, label %let.go, label %leave
let.go:
  call void @let_go(ptr %objects, i64 %steps.count)
  br label %leave
leave:
  store i64 0, ptr %lock
  store i64 0, ptr %busy.at
  ret ptr %returned
}

; --- memory for the results --------------------------------------------------------------------------------------------
; Zero, or -1 with an exception set.
define internal i32 @prepare_outputs(ptr %frame, i1 %plain) {
start:
  %guards.at = getelementptr %Frame, ptr %frame, i64 0, i32 15
  %guards = load i64, ptr %guards.at
  %count.at = getelementptr %Frame, ptr %frame, i64 0, i32 8
  %count = load i64, ptr %count.at
  %outputs.offset.at = getelementptr %Frame, ptr %frame, i64 0, i32 9
  %outputs.offset = load i64, ptr %outputs.offset.at
  %outputs = getelementptr i8, ptr %frame, i64 %outputs.offset
  %results = sub i64 %count, %guards
  %given = select i1 %plain, i64 0, i64 %results ; those that `out` has
  br label %each
each:
  %k = phi i64 [ %given, %start ], [ %k.next, %prepared ]
  %all = icmp eq i64 %k, %count
  br i1 %all, label %done, label %output
output:
  %output.at = getelementptr %Output, ptr %outputs, i64 %k
  %target.at = getelementptr %Output, ptr %output.at, i64 0, i32 5
  %target.offset = load i64, ptr %target.at
  %target = getelementptr i8, ptr %frame, i64 %target.offset
  %put = icmp eq i64 %target.offset, 0
  br i1 %put, label %prepared, label %own
own:
  %number.at = getelementptr %Output, ptr %output.at, i64 0, i32 7
  %number.offset = load i64, ptr %number.at
  %is.array = icmp eq i64 %number.offset, 0
  br i1 %is.array, label %array, label %number
number:
  %number.place = getelementptr i8, ptr %frame, i64 %number.offset
  store ptr %number.place, ptr %target
  br label %prepared
array:
  %first = load ptr, ptr %output.at
  %first.free = call i1 @may_be_written(ptr %frame, ptr %output.at, ptr %first)
  br i1 %first.free, label %chosen, label %earlier
earlier:
  %second.at = getelementptr %Output, ptr %output.at, i64 0, i32 1
  %second = load ptr, ptr %second.at
  %second.free = call i1 @may_be_written(ptr %frame, ptr %output.at, ptr %second)
  br i1 %second.free, label %swapped, label %fresh
swapped:
  store ptr %first, ptr %second.at
  store ptr %second, ptr %output.at
  br label %chosen
fresh:
  %dtype.at = getelementptr %Output, ptr %output.at, i64 0, i32 2
  %dtype = load ptr, ptr %dtype.at
  %ndim.at = getelementptr %Output, ptr %output.at, i64 0, i32 3
  %ndim.long = load i64, ptr %ndim.at
  %ndim = trunc i64 %ndim.long to i32
  %shape.offset.at = getelementptr %Output, ptr %output.at, i64 0, i32 4
  %shape.offset = load i64, ptr %shape.offset.at
  %shape = getelementptr i8, ptr %frame, i64 %shape.offset
  %type = load ptr, ptr @ndarray
  call void @Py_IncRef(ptr %dtype) ; the new array takes this reference
  %new = call ptr @PyArray_NewFromDescr(ptr %type, ptr %dtype, i32 %ndim, ptr %shape, ptr null, ptr null, i32 0, ptr null)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %error, label %placed
placed:
  %old.at = getelementptr %Output, ptr %output.at, i64 0, i32 6
  store ptr %second, ptr %old.at
  store ptr %first, ptr %second.at
  store ptr %new, ptr %output.at
  br label %chosen
chosen:
  %chosen.array = phi ptr [ %first, %array ], [ %second, %swapped ], [ %new, %placed ]
  %data.at = getelementptr %Array, ptr %chosen.array, i64 0, i32 2
  %data = load ptr, ptr %data.at
  store ptr %data, ptr %target
  br label %prepared
prepared:
  %k.next = add i64 %k, 1
  br label %each
done:
  ret i32 0
error:
  ret i32 -1
}

; Whether an array of ours is referred to by its frame alone, and whoever had it left it as it was made.
define internal i1 @may_be_written(ptr %frame, ptr %output, ptr %array) {
start:
  %none = icmp eq ptr %array, null
  br i1 %none, label %no, label %there
there:
  %references = load i64, ptr %array
  %alone = icmp eq i64 %references, 1
  %weak.at = getelementptr %Array, ptr %array, i64 0, i32 9
  %weak = load ptr, ptr %weak.at
  %unseen = icmp eq ptr %weak, null ; else the caller may come back for it
  %base.at = getelementptr %Array, ptr %array, i64 0, i32 6
  %base = load ptr, ptr %base.at
  %own = icmp eq ptr %base, null
  %flags.at = getelementptr %Array, ptr %array, i64 0, i32 8
  %flags = load i32, ptr %flags.at
  %flags.needed = and i32 %flags, 1285 ; C contiguous, owns its data, aligned, writeable
  %flags.right = icmp eq i32 %flags.needed, 1285
  %dtype.at = getelementptr %Array, ptr %array, i64 0, i32 7
  %dtype = load ptr, ptr %dtype.at
  %dtype.expected.at = getelementptr %Output, ptr %output, i64 0, i32 2
  %dtype.expected = load ptr, ptr %dtype.expected.at
  %dtype.right = icmp eq ptr %dtype, %dtype.expected
  %ndim.at = getelementptr %Array, ptr %array, i64 0, i32 3
  %ndim = load i32, ptr %ndim.at
  %rank = zext i32 %ndim to i64
  %ndim.expected.at = getelementptr %Output, ptr %output, i64 0, i32 3
  %ndim.expected = load i64, ptr %ndim.expected.at
  %ndim.right = icmp eq i64 %rank, %ndim.expected
  %and0 = and i1 %alone, %unseen
  %and1 = and i1 %and0, %own
  %and2 = and i1 %and1, %flags.right
  %and3 = and i1 %and2, %dtype.right
  %and4 = and i1 %and3, %ndim.right
  br i1 %and4, label %sized, label %no
sized:
  %shape.at = getelementptr %Array, ptr %array, i64 0, i32 4
  %shape = load ptr, ptr %shape.at
  %shape.offset.at = getelementptr %Output, ptr %output, i64 0, i32 4
  %shape.offset = load i64, ptr %shape.offset.at
  %shape.expected = getelementptr i8, ptr %frame, i64 %shape.offset
  br label %axes
axes:
  %axis = phi i64 [ 0, %sized ], [ %axis.next, %extents ]
  %all = icmp eq i64 %axis, %rank
  br i1 %all, label %yes, label %extents
extents:
  %extent.at = getelementptr i64, ptr %shape, i64 %axis
  %extent = load i64, ptr %extent.at
  %extent.expected.at = getelementptr i64, ptr %shape.expected, i64 %axis
  %extent.expected = load i64, ptr %extent.expected.at
  %axis.next = add i64 %axis, 1
  %same = icmp eq i64 %extent, %extent.expected
  br i1 %same, label %axes, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; Let go of the arrays that are no longer kept: last, because what refers to them may run code of its own.
define internal void @drop_outputs(ptr %frame) {
start:
  %count.at = getelementptr %Frame, ptr %frame, i64 0, i32 8
  %count = load i64, ptr %count.at
  %outputs.offset.at = getelementptr %Frame, ptr %frame, i64 0, i32 9
  %outputs.offset = load i64, ptr %outputs.offset.at
  %outputs = getelementptr i8, ptr %frame, i64 %outputs.offset
  br label %each
each:
  %k = phi i64 [ 0, %start ], [ %k.next, %dropped ]
  %all = icmp eq i64 %k, %count
  br i1 %all, label %done, label %output
output:
  %old.at = getelementptr %Output, ptr %outputs, i64 %k, i32 6
  %old = load ptr, ptr %old.at
  %none = icmp eq ptr %old, null
  br i1 %none, label %dropped, label %drop
drop:
  store ptr null, ptr %old.at
  call void @Py_DecRef(ptr %old)
  br label %dropped
dropped:
  %k.next = add i64 %k, 1
  br label %each
done:
  ret void
}

define internal void @hold(ptr %objects, i64 %count) {
start:
  br label %each
each:
  %k = phi i64 [ 0, %start ], [ %k.next, %object ]
  %all = icmp eq i64 %k, %count
  br i1 %all, label %done, label %object
object:
  %at = getelementptr ptr, ptr %objects, i64 %k
  %one = load ptr, ptr %at
  call void @Py_IncRef(ptr %one) ; of null nothing
  %k.next = add i64 %k, 1
  br label %each
done:
  ret void
}

define internal void @let_go(ptr %objects, i64 %count) {
start:
  br label %each
each:
  %k = phi i64 [ 0, %start ], [ %k.next, %object ]
  %all = icmp eq i64 %k, %count
  br i1 %all, label %done, label %object
object:
  %at = getelementptr ptr, ptr %objects, i64 %k
  %one = load ptr, ptr %at
  call void @Py_DecRef(ptr %one) ; of null nothing
  %k.next = add i64 %k, 1
  br label %each
done:
  ret void
}

; Whether the arrays that are watched hold what they held, and none overlap that may not.
define internal i1 @arrays_are_right(ptr %frame, ptr %steps, ptr %objects, i1 %plain) {
start:
  %watches.count.at = getelementptr %Frame, ptr %frame, i64 0, i32 17
  %watches.count = load i64, ptr %watches.count.at
  %watches.offset.at = getelementptr %Frame, ptr %frame, i64 0, i32 18
  %watches.offset = load i64, ptr %watches.offset.at
  %watches = getelementptr i8, ptr %frame, i64 %watches.offset
  br label %watching
watching:
  %k = phi i64 [ 0, %start ], [ %k.next, %watched ]
  %watched.all = icmp eq i64 %k, %watches.count
  br i1 %watched.all, label %pairs.start, label %watch
watch:
  %array.at = getelementptr %Watch, ptr %watches, i64 %k, i32 0
  %array = load ptr, ptr %array.at
  %data.at = getelementptr %Array, ptr %array, i64 0, i32 2
  %data = load ptr, ptr %data.at
  %data.expected.at = getelementptr %Watch, ptr %watches, i64 %k, i32 1
  %data.expected = load ptr, ptr %data.expected.at
  %item.at = getelementptr %Watch, ptr %watches, i64 %k, i32 2
  %item = load i64, ptr %item.at
  %count.at = getelementptr %Watch, ptr %watches, i64 %k, i32 3
  %count = load i64, ptr %count.at
  %step.at = getelementptr %Watch, ptr %watches, i64 %k, i32 4
  %step = load i64, ptr %step.at
  %last.at = getelementptr %Watch, ptr %watches, i64 %k, i32 5
  %last.offset = load i64, ptr %last.at
  %held.at = getelementptr %Watch, ptr %watches, i64 %k, i32 6
  %held = load ptr, ptr %held.at
  %data.right = icmp eq ptr %data, %data.expected
  br i1 %data.right, label %elements, label %no
elements:
  %j = phi i64 [ 0, %watch ], [ %j.next, %element ]
  %j.last = icmp eq i64 %j, %count
  %j.offset = mul i64 %j, %step
  %offset = select i1 %j.last, i64 %last.offset, i64 %j.offset
  %element.at = getelementptr i8, ptr %data, i64 %offset
  %held.offset = mul i64 %j, %item
  %held.element.at = getelementptr i8, ptr %held, i64 %held.offset
  switch i64 %item, label %no [
    i64 8, label %long
    i64 4, label %int
    i64 1, label %byte
  ]
long:
  %long.now = load i64, ptr %element.at, align 1
  %long.held = load i64, ptr %held.element.at, align 1
  %long.same = icmp eq i64 %long.now, %long.held
  br label %element
int:
  %int.now = load i32, ptr %element.at, align 1
  %int.held = load i32, ptr %held.element.at, align 1
  %int.same = icmp eq i32 %int.now, %int.held
  br label %element
byte:
  %byte.now = load i8, ptr %element.at
  %byte.held = load i8, ptr %held.element.at
  %byte.same = icmp eq i8 %byte.now, %byte.held
  br label %element
element:
  %same = phi i1 [ %long.same, %long ], [ %int.same, %int ], [ %byte.same, %byte ]
  %j.next = add i64 %j, 1
  %more = icmp ult i64 %j, %count
  %on = and i1 %same, %more
  br i1 %on, label %elements, label %compared
compared:
  br i1 %same, label %watched, label %no
watched:
  %k.next = add i64 %k, 1
  br label %watching

pairs.start:
  %pairs.count.at = getelementptr %Frame, ptr %frame, i64 0, i32 19
  %pairs.plain = load i64, ptr %pairs.count.at
  %pairs.out.at = getelementptr %Frame, ptr %frame, i64 0, i32 22
  %pairs.out = load i64, ptr %pairs.out.at
  %pairs.more = select i1 %plain, i64 0, i64 %pairs.out
  %pairs.count = add i64 %pairs.plain, %pairs.more
  %pairs.offset.at = getelementptr %Frame, ptr %frame, i64 0, i32 20
  %pairs.offset = load i64, ptr %pairs.offset.at
  %pairs = getelementptr i8, ptr %frame, i64 %pairs.offset
  br label %pairing
pairing:
  %p = phi i64 [ 0, %pairs.start ], [ %p.next, %apart ]
  %paired.all = icmp eq i64 %p, %pairs.count
  br i1 %paired.all, label %yes, label %pair
pair:
  %a.at = getelementptr %Pair, ptr %pairs, i64 %p, i32 0
  %a = load i64, ptr %a.at
  %b.at = getelementptr %Pair, ptr %pairs, i64 %p, i32 1
  %b = load i64, ptr %b.at
  %a.begin = call ptr @begin_of(ptr %objects, i64 %a)
  %b.begin = call ptr @begin_of(ptr %objects, i64 %b)
  %a.bytes.at = getelementptr %Step, ptr %steps, i64 %a, i32 9
  %a.bytes = load i64, ptr %a.bytes.at
  %b.bytes.at = getelementptr %Step, ptr %steps, i64 %b, i32 9
  %b.bytes = load i64, ptr %b.bytes.at
  %a.end = getelementptr i8, ptr %a.begin, i64 %a.bytes
  %b.end = getelementptr i8, ptr %b.begin, i64 %b.bytes
  %a.first = icmp ule ptr %a.end, %b.begin
  %b.first = icmp ule ptr %b.end, %a.begin
  %disjoint = or i1 %a.first, %b.first
  br i1 %disjoint, label %apart, label %no
apart:
  %p.next = add i64 %p, 1
  br label %pairing
yes:
  ret i1 true
no:
  ret i1 false
}

define internal ptr @begin_of(ptr %objects, i64 %k) {
  %object.at = getelementptr ptr, ptr %objects, i64 %k
  %object = load ptr, ptr %object.at
  %data.at = getelementptr %Array, ptr %object, i64 0, i32 2
  %data = load ptr, ptr %data.at
  ret ptr %data
}

; Whether the program saw what the function saw when it was recorded.
define internal i1 @guards_hold(ptr %frame) {
start:
  %count.at = getelementptr %Frame, ptr %frame, i64 0, i32 15
  %count = load i64, ptr %count.at
  %guards.offset.at = getelementptr %Frame, ptr %frame, i64 0, i32 16
  %guards.offset = load i64, ptr %guards.offset.at
  %guards = getelementptr i8, ptr %frame, i64 %guards.offset
  br label %each
each:
  %k = phi i64 [ 0, %start ], [ %k.next, %looked ]
  %all = icmp eq i64 %k, %count
  br i1 %all, label %yes, label %guard
guard:
  %kind.at = getelementptr %Guard, ptr %guards, i64 %k, i32 0
  %kind = load i64, ptr %kind.at
  %offset.at = getelementptr %Guard, ptr %guards, i64 %k, i32 1
  %offset = load i64, ptr %offset.at
  %at = getelementptr i8, ptr %frame, i64 %offset
  %expected.at = getelementptr %Guard, ptr %guards, i64 %k, i32 2
  %expected = load i64, ptr %expected.at
  switch i64 %kind, label %no [
    i64 0, label %truth.byte
    i64 1, label %truth.long
    i64 2, label %truth.int
    i64 3, label %truth.double
    i64 4, label %truth.float
    i64 5, label %long
    i64 6, label %int
  ]
truth.byte:
  %byte = load i8, ptr %at
  %byte.true = icmp ne i8 %byte, 0
  br label %truth
truth.long:
  %long.number = load i64, ptr %at
  %long.true = icmp ne i64 %long.number, 0
  br label %truth
truth.int:
  %int.number = load i32, ptr %at
  %int.true = icmp ne i32 %int.number, 0
  br label %truth
truth.double:
  %double.number = load double, ptr %at
  %double.true = fcmp une double %double.number, 0.0 ; NaN is true
  br label %truth
truth.float:
  %float.number = load float, ptr %at
  %float.true = fcmp une float %float.number, 0.0
  br label %truth
truth:
  %true = phi i1 [ %byte.true, %truth.byte ], [ %long.true, %truth.long ], [ %int.true, %truth.int ],
                 [ %double.true, %truth.double ], [ %float.true, %truth.float ]
  %true.wide = zext i1 %true to i64
  br label %compare
long:
  %long.value = load i64, ptr %at
  br label %compare
int:
  %int.value = load i32, ptr %at
  %int.wide = sext i32 %int.value to i64
  br label %compare
compare:
  %seen = phi i64 [ %true.wide, %truth ], [ %long.value, %long ], [ %int.wide, %int ]
  %same = icmp eq i64 %seen, %expected
  br i1 %same, label %looked, label %no
looked:
  %k.next = add i64 %k, 1
  br label %each
yes:
  ret i1 true
no:
  ret i1 false
}

; --- what is returned --------------------------------------------------------------------------------------------------
; A new reference, or null with an exception set.
define internal ptr @make_result(ptr %frame, ptr %objects) {
start:
  %count.at = getelementptr %Frame, ptr %frame, i64 0, i32 10
  %count = load i64, ptr %count.at
  %makings.offset.at = getelementptr %Frame, ptr %frame, i64 0, i32 11
  %makings.offset = load i64, ptr %makings.offset.at
  %makings = getelementptr i8, ptr %frame, i64 %makings.offset
  %outputs.offset.at = getelementptr %Frame, ptr %frame, i64 0, i32 9
  %outputs.offset = load i64, ptr %outputs.offset.at
  %outputs = getelementptr i8, ptr %frame, i64 %outputs.offset
  %stack.offset.at = getelementptr %Frame, ptr %frame, i64 0, i32 13
  %stack.offset = load i64, ptr %stack.offset.at
  %stack = getelementptr i8, ptr %frame, i64 %stack.offset
  br label %each
each:
  %k = phi i64 [ 0, %start ], [ %k.next, %pushed ]
  %height = phi i64 [ 0, %start ], [ %height.next, %pushed ]
  %all = icmp eq i64 %k, %count
  br i1 %all, label %done, label %making
making:
  %kind.at = getelementptr %Making, ptr %makings, i64 %k, i32 0
  %kind = load i64, ptr %kind.at
  %detail.at = getelementptr %Making, ptr %makings, i64 %k, i32 1
  %detail = load i64, ptr %detail.at
  %taken.at = getelementptr %Making, ptr %makings, i64 %k, i32 2
  %taken = load ptr, ptr %taken.at
  %number = getelementptr i8, ptr %frame, i64 %detail
  %below = sub i64 %height, %detail
  %parts = getelementptr ptr, ptr %stack, i64 %below
  switch i64 %kind, label %unknown [
    i64 0, label %array
    i64 1, label %scalar
    i64 2, label %double
    i64 3, label %float
    i64 4, label %long
    i64 5, label %int
    i64 6, label %bool
    i64 7, label %constant
    i64 8, label %tuple
    i64 9, label %list
    i64 10, label %dict
    i64 11, label %values
    i64 12, label %called
    i64 13, label %numpy.double
  ]
array:
  %array.at = getelementptr %Output, ptr %outputs, i64 %detail, i32 0
  %array.object = load ptr, ptr %array.at
  call void @Py_IncRef(ptr %array.object)
  br label %made
scalar:
  %scalar.object = call ptr @PyArray_Scalar(ptr %number, ptr %taken, ptr null)
  br label %made
numpy.double: ; what PyArray_Scalar does for this dtype, without its questions: 8 ns less
  %numpy.double.object = call ptr @PyType_GenericAlloc(ptr %taken, i64 0)
  %numpy.double.failed = icmp eq ptr %numpy.double.object, null
  br i1 %numpy.double.failed, label %failed, label %numpy.double.there
numpy.double.there:
  %numpy.double.value = load i64, ptr %number
  %numpy.double.at = getelementptr %Number, ptr %numpy.double.object, i64 0, i32 2
  store i64 %numpy.double.value, ptr %numpy.double.at
  br label %made
double:
  %double.value = load double, ptr %number
  %double.object = call ptr @PyFloat_FromDouble(double %double.value)
  br label %made
float:
  %float.value = load float, ptr %number
  %float.wide = fpext float %float.value to double
  %float.object = call ptr @PyFloat_FromDouble(double %float.wide)
  br label %made
long:
  %long.value = load i64, ptr %number
  %long.object = call ptr @PyLong_FromLongLong(i64 %long.value)
  br label %made
int:
  %int.value = load i32, ptr %number
  %int.wide = sext i32 %int.value to i64
  %int.object = call ptr @PyLong_FromLongLong(i64 %int.wide)
  br label %made
bool:
  %bool.value = load i8, ptr %number
  %bool.wide = zext i8 %bool.value to i64
  %bool.object = call ptr @PyBool_FromLong(i64 %bool.wide)
  br label %made
constant:
  call void @Py_IncRef(ptr %taken)
  br label %made
tuple:
  %tuple.new = call ptr @PyTuple_New(i64 %detail)
  %tuple.failed = icmp eq ptr %tuple.new, null
  br i1 %tuple.failed, label %failed, label %tuple.each
tuple.each:
  %tuple.k = phi i64 [ 0, %tuple ], [ %tuple.k.next, %tuple.item ]
  %tuple.full = icmp eq i64 %tuple.k, %detail
  br i1 %tuple.full, label %contained, label %tuple.item
tuple.item: ; takes the reference
  %tuple.part.at = getelementptr ptr, ptr %parts, i64 %tuple.k
  %tuple.part = load ptr, ptr %tuple.part.at
  %tuple.set = call i32 @PyTuple_SetItem(ptr %tuple.new, i64 %tuple.k, ptr %tuple.part)
  %tuple.k.next = add i64 %tuple.k, 1
  br label %tuple.each
list:
  %list.new = call ptr @PyList_New(i64 %detail)
  %list.failed = icmp eq ptr %list.new, null
  br i1 %list.failed, label %failed, label %list.each
list.each:
  %list.k = phi i64 [ 0, %list ], [ %list.k.next, %list.item ]
  %list.full = icmp eq i64 %list.k, %detail
  br i1 %list.full, label %contained, label %list.item
list.item: ; takes the reference
  %list.part.at = getelementptr ptr, ptr %parts, i64 %list.k
  %list.part = load ptr, ptr %list.part.at
  %list.set = call i32 @PyList_SetItem(ptr %list.new, i64 %list.k, ptr %list.part)
  %list.k.next = add i64 %list.k, 1
  br label %list.each
dict:
  %dict.new = call ptr @PyDict_New()
  %dict.failed = icmp eq ptr %dict.new, null
  br i1 %dict.failed, label %failed, label %dict.each
dict.each:
  %dict.k = phi i64 [ 0, %dict ], [ %dict.k.next, %dict.item ]
  %dict.full = icmp eq i64 %dict.k, %detail
  br i1 %dict.full, label %dict.release, label %dict.item
dict.item:
  %dict.key = call ptr @PyTuple_GetItem(ptr %taken, i64 %dict.k)
  %dict.part.at = getelementptr ptr, ptr %parts, i64 %dict.k
  %dict.part = load ptr, ptr %dict.part.at
  %dict.set = call i32 @PyDict_SetItem(ptr %dict.new, ptr %dict.key, ptr %dict.part)
  %dict.k.next = add i64 %dict.k, 1
  %dict.bad = icmp ne i32 %dict.set, 0
  br i1 %dict.bad, label %dict.drop, label %dict.each
dict.drop:
  call void @Py_DecRef(ptr %dict.new)
  br label %failed
dict.release: ; it has references of its own
  call void @let_go(ptr %parts, i64 %detail)
  br label %contained
values: ; what was fetched, by the numbers of the steps; it is held
  %values.count = ptrtoint ptr %taken to i64
  %values.new = call ptr @PyTuple_New(i64 %values.count)
  %values.failed = icmp eq ptr %values.new, null
  br i1 %values.failed, label %failed, label %values.each
values.each:
  %values.k = phi i64 [ 0, %values ], [ %values.k.next, %values.item ]
  %values.full = icmp eq i64 %values.k, %values.count
  br i1 %values.full, label %made, label %values.item
values.item:
  %values.step.at = getelementptr i64, ptr %number, i64 %values.k
  %values.step = load i64, ptr %values.step.at
  %values.object.at = getelementptr ptr, ptr %objects, i64 %values.step
  %values.object = load ptr, ptr %values.object.at
  call void @Py_IncRef(ptr %values.object)
  %values.set = call i32 @PyTuple_SetItem(ptr %values.new, i64 %values.k, ptr %values.object)
  %values.k.next = add i64 %values.k, 1
  br label %values.each
called: ; of the last things made, all of them arguments
  %called.object = call ptr @PyObject_Vectorcall(ptr %taken, ptr %parts, i64 %detail, ptr null)
  call void @let_go(ptr %parts, i64 %detail)
  %called.failed = icmp eq ptr %called.object, null
  br i1 %called.failed, label %failed.below, label %contained
contained:
  %container = phi ptr [ %tuple.new, %tuple.each ], [ %list.new, %list.each ], [ %dict.new, %dict.release ],
                       [ %called.object, %called ]
  store ptr %container, ptr %parts
  %height.contained = add i64 %below, 1
  br label %pushed
made:
  %object = phi ptr [ %array.object, %array ], [ %scalar.object, %scalar ],
                    [ %numpy.double.object, %numpy.double.there ], [ %double.object, %double ],
                    [ %float.object, %float ], [ %long.object, %long ], [ %int.object, %int ], [ %bool.object, %bool ],
                    [ %taken, %constant ], [ %values.new, %values.each ]
  %missing = icmp eq ptr %object, null
  br i1 %missing, label %failed, label %push
push:
  %top = getelementptr ptr, ptr %stack, i64 %height
  store ptr %object, ptr %top
  %height.made = add i64 %height, 1
  br label %pushed
pushed:
  %height.next = phi i64 [ %height.contained, %contained ], [ %height.made, %push ]
  %k.next = add i64 %k, 1
  br label %each
done:
  %result = load ptr, ptr %stack
  ret ptr %result
unknown: ; frames.py makes no such making
  unreachable
failed.below:
  call void @let_go(ptr %stack, i64 %below)
  ret ptr null
failed:
  call void @let_go(ptr %stack, i64 %height)
  ret ptr null
}

; --- the slow path -----------------------------------------------------------------------------------------------------
; The type's own tp_call, which is the __call__ written in Python, with a tuple and a dict.
define internal ptr @call_in_python(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {
start:
  %tuple = call ptr @PyTuple_New(i64 %nargs)
  %tuple.failed = icmp eq ptr %tuple, null
  br i1 %tuple.failed, label %error, label %arguments
arguments:
  %k = phi i64 [ 0, %start ], [ %k.next, %argument ]
  %all = icmp eq i64 %k, %nargs
  br i1 %all, label %keywords, label %argument
argument:
  %at = getelementptr ptr, ptr %args, i64 %k
  %one = load ptr, ptr %at
  call void @Py_IncRef(ptr %one)
  %set = call i32 @PyTuple_SetItem(ptr %tuple, i64 %k, ptr %one)
  %k.next = add i64 %k, 1
  br label %arguments
keywords:
  %none = icmp eq ptr %kwnames, null
  br i1 %none, label %call, label %names
names:
  %dict = call ptr @PyDict_New()
  %dict.failed = icmp eq ptr %dict, null
  br i1 %dict.failed, label %error.tuple, label %named
named:
  %count = call i64 @PyTuple_Size(ptr %kwnames)
  %values = getelementptr ptr, ptr %args, i64 %nargs
  br label %items
items:
  %j = phi i64 [ 0, %named ], [ %j.next, %item ]
  %named.all = icmp eq i64 %j, %count
  br i1 %named.all, label %call, label %item
item:
  %name = call ptr @PyTuple_GetItem(ptr %kwnames, i64 %j)
  %value.at = getelementptr ptr, ptr %values, i64 %j
  %value = load ptr, ptr %value.at
  %stored = call i32 @PyDict_SetItem(ptr %dict, ptr %name, ptr %value)
  %j.next = add i64 %j, 1
  %bad = icmp ne i32 %stored, 0
  br i1 %bad, label %error.both, label %items
call:
  %by.name = phi ptr [ null, %keywords ], [ %dict, %items ]
  %type.at = getelementptr %Object, ptr %self, i64 0, i32 1
  %type = load ptr, ptr %type.at
  %tp_call = call ptr @PyType_GetSlot(ptr %type, i32 50) ; Py_tp_call
  %result = call ptr %tp_call(ptr %self, ptr %tuple, ptr %by.name)
  call void @Py_DecRef(ptr %tuple)
  call void @Py_DecRef(ptr %by.name) ; of null nothing
  ret ptr %result
error.both:
  call void @Py_DecRef(ptr %dict)
  br label %error.tuple
error.tuple:
  call void @Py_DecRef(ptr %tuple)
  br label %error
error:
  ret ptr null
}
