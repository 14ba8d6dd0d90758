// The vectorcall of every callable of the native tier: how a native program is called from Python.
//
// The code is the same for all programs. What differs is data: a frame (frames.py) says how to fetch and check each thing that
// a program reads, where its results go and what the caller gets. A frame is made of 64-bit words in one piece; what is inside it is
// referred to by its offset in bytes, so that a copy of it is a frame too.
//
// A check that does not hold goes on to the next frame, and after the last one to the callable's __call__, in Python, which is
// always right. Nothing has been changed by then but words that every call writes before it reads them.
//
// Objects are read by structure only where no function of the API tells, and where offsets.py has seen that they are laid out
// so. Reference counts are changed and exceptions raised by functions of the API alone.
//
// What is loaded is entry.ll, which `python -m tools.ir` makes of this file.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int64_t word;

// Of functions that are called from several places, or of which most calls need no more than a look: one large function takes LLVM
// longer than several small ones.
#define APART static __attribute__((noinline))

// --- objects, as offsets.py looks whether they are ------------------------------------------------------------------------
typedef struct object {
    word references;
    struct object *type;
} object;

// A number of NumPy's in float64.
typedef struct {
    object head;
    word value;
} number;

typedef struct {
    object head;
    char *data;
    int32_t dimensions;
    word *shape;
    word *strides;
    object *base;
    object *dtype;
    int32_t flags;
    object *weak_references;
} array;

typedef struct {
    object head;
    word unread[2];
    struct {
        word unread;
        uint32_t layout; // 24 bits of it: size of the table, and the kind of its entries
    } *table;
    void *values; // of an instance that shares its names with others of its class
} dict;

enum { C_CONTIGUOUS = 1, OWNS_DATA = 4, ALIGNED = 0x100, WRITEABLE = 0x400 };

// --- frames, as templates.py and frames.py write them ---------------------------------------------------------------------
#define WORDS(type, count) _Static_assert(sizeof(type) == sizeof(word) * (count), "templates.py has another " #type)

// How many of something there are, and where.
typedef struct {
    word count;
    word at;
} list;

typedef struct frame {
    word busy;    // 0, or a run is going on in it, or it is closed for ever
    array *next;  // the object that holds the next frame, or null
    word (*program)(void *table); // gives zero where it could compute its results
    word mode;    // 0, or one of the modes below
    word arguments;
    list steps;
    word objects_at; // one for each step
    list outputs;
    list makings;
    word table_at; // of the program
    word stack_at; // of what has been made
    word runs;     // left; below zero there is no end of them
    list guards;
    list watches;
    list pairs;
    word out_steps; // behind the others: they fetch what `out` has, for results to be written into
    word out_pairs; // behind the others: of those arrays
    word *lock;     // not zero while a run is on in the scratch memory, which frames may share
    list tables;
    list helds;
    list questions;
} frame;
WORDS(frame, 30);

// The program runs without the interpreter's lock; Python makes what is returned.
enum { RELEASES = 1, CALLS = 2 };

// A dict, its table, and how this is laid out: the names among the words held are in it.
typedef struct {
    dict *dict;
    void *table;
    word layout;
} table;
WORDS(table, 3);

// Two words, one behind the other, and what they have to hold: key and value of a name, code and defaults of a function.
typedef struct {
    word *at;
    word expected[2];
} held;
WORDS(held, 3);

enum fetch {
    FETCH_ARGUMENT,
    FETCH_CONSTANT,
    FETCH_TUPLE_ITEM,
    FETCH_LIST_ITEM,
    FETCH_DICT_ITEM,
    FETCH_FIRST_DICT_ITEM,
    FETCH_NEXT_DICT_ITEM,
    FETCH_CELL,
    FETCH_CODE,
    FETCH_DEFAULTS,
    FETCH_KEYWORD_DEFAULTS,
    FETCH_TYPE,
    FETCH_ATTRIBUTES,
    FETCH_ENTRY,
    FETCH_FUNCTION,
    FETCH_SLOT,
    FETCH_ATTRIBUTES_OF,
    FETCH_FIRST_DICT_ITEM_BY_VALUE,
    FETCH_NEXT_DICT_ITEM_BY_VALUE,
};

enum check {
    CHECK_IDENTITY,
    CHECK_ARRAY,
    CHECK_FLOAT,
    CHECK_INT,
    CHECK_BOOL,
    CHECK_SCALAR,
    CHECK_TUPLE,
    CHECK_LIST,
    CHECK_DICT,
    CHECK_ANYTHING,
    CHECK_DOUBLE_OR_FLOAT,
    CHECK_SINGLE_OR_FLOAT,
    CHECK_WRITTEN,
    CHECK_TYPE,
};

// One thing fetched, and checked to be what the program was made for.
typedef struct {
    union {
        struct {
            int32_t fetch;
            int32_t check;
        };
        word both;
    };
    uint32_t parent;    // the step that fetched what it is part of
    int32_t dimensions; // of an array
    union {
        word position;
        object *what;
    };
    union {
        object *type; // the type it has to have
        object *dict; // of an entry
        object *code; // of a function
    };
    object *expected; // the very object; of an array, the dtype; of a function, the defaults
    word detail;      // of an array: where its shape is; of a container: its length; of a function, the defaults of keywords
    word target_at;   // where the array's address or the number goes
    word bytes;       // of the array
} step;
WORDS(step, 8);

// One result. An array has memory of NumPy's; the last two that were returned are kept, to be written again when nobody else
// refers to them.
typedef struct {
    array *first; // tried first
    array *second;
    object *dtype;
    word dimensions;
    word shape_at;
    word target_at; // where its address goes; zero where a step has put it there
    array *old;     // no longer kept, to be let go when the run is over
    word number_at; // of a number: where it is
} output;
WORDS(output, 8);

enum make {
    MAKE_ARRAY,
    MAKE_SCALAR,
    MAKE_DOUBLE,
    MAKE_FLOAT,
    MAKE_LONG,
    MAKE_INT,
    MAKE_BOOL,
    MAKE_CONSTANT,
    MAKE_TUPLE,
    MAKE_LIST,
    MAKE_DICT,
    MAKE_VALUES,
    MAKE_CALL,
    MAKE_NUMPY_DOUBLE,
};

// One step of making what is returned, on a stack.
typedef struct {
    word kind;
    word detail; // number of the output, offset of a number, or length of a container
    union {
        object *taken; // a dtype, a constant, a tuple of keys
        word count;
    };
} making;
WORDS(making, 3);

// An array that the program reads without being given it, and what some of its elements have to be.
typedef struct {
    array *array;
    char *data;
    word item;  // bytes of an element
    word count; // elements looked at, without the last one of all
    word step;  // bytes from one of them to the next
    word last;  // bytes from the first element to the last one of all
    char *held; // what they have to be, one behind the other
} watch;
WORDS(watch, 7);

// Two arrays among the objects fetched, by the numbers of their steps.
typedef struct {
    word a;
    word b;
} pair;
WORDS(pair, 2);

// A number that the program computes beside its results, and what it has to be.
typedef struct {
    word kind;
    word at;
    word expected;
} guard;
WORDS(guard, 3);

// What a function written in C says of an object, or of no object, and what it has to say.
typedef struct {
    object *function;
    word arguments; // 0 or 1
    object *what;   // or null: what was fetched by this step
    word step;
    object *expected;
} question;
WORDS(question, 5);

enum { TRUTH_OF_BYTE, TRUTH_OF_LONG, TRUTH_OF_INT, TRUTH_OF_DOUBLE, TRUTH_OF_FLOAT, LONG, INT };

// --- functions of CPython and NumPy ---------------------------------------------------------------------------------------
word PyTuple_Size(object *);
object *PyTuple_GetItem(object *, word);
object *PyTuple_New(word);
int PyTuple_SetItem(object *, word, object *);
word PyList_Size(object *);
object *PyList_GetItem(object *, word);
object *PyList_New(word);
int PyList_SetItem(object *, word, object *);
word PyDict_Size(object *);
object *PyDict_GetItemWithError(object *, object *);
int PyDict_Next(object *, word *, object **, object **);
object *PyDict_New(void);
int PyDict_SetItem(object *, object *, object *);
int PyObject_RichCompareBool(object *, object *, int);
object *PyCell_Get(object *);
object *PyFunction_GetCode(object *);
object *PyFunction_GetDefaults(object *);
object *PyFunction_GetKwDefaults(object *);
object *PyObject_GenericGetDict(object *, void *);
object *PyObject_GenericGetAttr(object *, object *);
double PyFloat_AsDouble(object *);
object *PyFloat_FromDouble(double);
word PyLong_AsLongLongAndOverflow(object *, int *);
object *PyLong_FromLongLong(word);
int PyObject_IsTrue(object *);
object *PyObject_Vectorcall(object *, object **, word, object *);
object *PyBool_FromLong(word);
void *PyType_GetSlot(object *, int);
object *PyType_GenericAlloc(object *, word);
void Py_IncRef(object *);
void Py_DecRef(object *);
object *PyErr_Occurred(void);
void PyErr_Clear(void);
void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *);
void PyArray_ScalarAsCtype(object *, void *);
object *PyArray_Scalar(void *, object *, object *);
object *PyArray_NewFromDescr(object *, object *, int, word *, word *, void *, int, object *);

enum { PY_EQ = 2, PY_TP_CALL = 50 };

static object *ndarray;
static const word *suspensions;
static object *out_name;
static word frame_offset;

// Before the first call: NumPy's array type, which new arrays are made of; a word that is not zero while every call has to go
// to __call__; the name `out`; and where callables have the reference to their first frame, behind which the latest one goes.
void initialise(object *ndarray_, const word *suspensions_, object *out_name_, word frame_offset_)
{
    ndarray = ndarray_;
    suspensions = suspensions_;
    out_name = out_name_;
    frame_offset = frame_offset_;
}

static inline void *at(const void *begin, word offset)
{
    return (char *)begin + offset;
}

APART void hold(object **objects, word count)
{
    for (word k = 0; k != count; k++)
        Py_IncRef(objects[k]); // of null nothing
}

APART void let_go(object **objects, word count)
{
    for (word k = 0; k != count; k++)
        Py_DecRef(objects[k]); // of null nothing
}

// --- what the program reads -----------------------------------------------------------------------------------------------
// Tables come before the words held: what is in another one must not be read.
static inline bool words_hold(const frame *frame)
{
    const table *tables = at(frame, frame->tables.at);
    for (word k = 0; k != frame->tables.count; k++) {
        const dict *dict = tables[k].dict;
        if (dict->table != tables[k].table || dict->values)
            return false;
        if ((dict->table->layout & 0xffffff) != tables[k].layout) // another one of another size may have come to the same place
            return false;
    }
    const held *helds = at(frame, frame->helds.at);
    word differing = 0; // one branch for all
    for (word k = 0; k != frame->helds.count; k++) {
        const held *held = &helds[k];
        differing |= (held->at[0] ^ held->expected[0]) | (held->at[1] ^ held->expected[1]);
    }
    return !differing;
}

static inline bool shape_is(const word *shape, const word *expected, word dimensions)
{
    for (word axis = 0; axis != dimensions; axis++)
        if (shape[axis] != expected[axis])
            return false;
    return true;
}

static inline bool take_array(const frame *frame, const step *step, const array *array, int32_t flags)
{
    // one branch for all three
    if ((array->dtype != step->expected) | (array->dimensions != step->dimensions) | ((array->flags & flags) != flags))
        return false;
    if (!shape_is(array->shape, at(frame, step->detail), array->dimensions))
        return false;
    *(char **)at(frame, step->target_at) = array->data;
    return true;
}

// The next item of a dict in its own order, one step after the other; null unless its key is the one expected.
static inline object *next_item(object *dict, word *position, const step *step)
{
    object *key, *value;
    if (!PyDict_Next(dict, position, &key, &value))
        return NULL;
    if (key == step->what)
        return value;
    if (step->fetch < FETCH_FIRST_DICT_ITEM_BY_VALUE) // texts that are made anew for each dict are other objects
        return NULL;
    if (key->type != step->what->type || PyObject_RichCompareBool(key, step->what, PY_EQ) != 1)
        return NULL;
    return value;
}

// Of something that its owner goes on referring to; null with no exception set where there is nothing.
static inline object *borrowed(object *new)
{
    if (new)
        Py_DecRef(new);
    else
        PyErr_Clear();
    return new;
}

// False where a miss is certain.
static inline bool fetch(const step *step, object **objects, object *const *args, word *position, object **found)
{
    object *what = step->what;
    object **parent = &objects[step->parent];
    switch (step->fetch) {
    case FETCH_ARGUMENT:
        *found = args[step->position];
        return true;
    case FETCH_CONSTANT:
        *found = what;
        return true;
    case FETCH_TUPLE_ITEM:
        *found = PyTuple_GetItem(*parent, step->position);
        return true;
    case FETCH_LIST_ITEM:
        *found = PyList_GetItem(*parent, step->position);
        return true;
    case FETCH_DICT_ITEM:
    case FETCH_ENTRY: // null where there is none, which may be what is expected
        *found = PyDict_GetItemWithError(step->fetch == FETCH_ENTRY ? step->dict : *parent, what);
        if (!*found && PyErr_Occurred()) {
            PyErr_Clear();
            return false;
        }
        return true;
    case FETCH_FIRST_DICT_ITEM:
    case FETCH_FIRST_DICT_ITEM_BY_VALUE:
        *position = 0;
        // fall through
    case FETCH_NEXT_DICT_ITEM:
    case FETCH_NEXT_DICT_ITEM_BY_VALUE:
        *found = next_item(*parent, position, step);
        return *found;
    case FETCH_CELL: // it goes on referring to its value
        *found = PyCell_Get(what);
        if (*found)
            Py_DecRef(*found);
        return true;
    case FETCH_CODE:
        *found = PyFunction_GetCode(what);
        return true;
    case FETCH_DEFAULTS:
        *found = PyFunction_GetDefaults(what);
        return true;
    case FETCH_KEYWORD_DEFAULTS:
        *found = PyFunction_GetKwDefaults(what);
        return true;
    case FETCH_FUNCTION: { // all that a function has for itself, where that is no container
        object *code = PyFunction_GetCode(what);
        object *defaults = PyFunction_GetDefaults(what);
        object *keyword_defaults = PyFunction_GetKwDefaults(what);
        *found = what;
        return (code == step->code) & (defaults == step->expected) & ((word)keyword_defaults == step->detail);
    }
    case FETCH_TYPE:
        *found = what->type;
        return true;
    case FETCH_SLOT: // of a class whose slots are all that their names mean
        *found = borrowed(PyObject_GenericGetAttr(*parent, what));
        return *found;
    case FETCH_ATTRIBUTES:
    case FETCH_ATTRIBUTES_OF:
        *found = borrowed(PyObject_GenericGetDict(step->fetch == FETCH_ATTRIBUTES ? what : *parent, NULL));
        return *found;
    default:
        return false;
    }
}

// Whether what was fetched is what is expected; an array's address or a number is put where the program reads it.
static inline bool check(const frame *frame, const step *step, object *object)
{
    if (step->check == CHECK_IDENTITY)
        return object == step->expected;
    if (!object)
        return false;
    if (step->check == CHECK_ANYTHING)
        return true;
    void *target = at(frame, step->target_at);
    if ((step->check == CHECK_DOUBLE_OR_FLOAT || step->check == CHECK_SINGLE_OR_FLOAT) && object->type == step->expected) {
        double value = PyFloat_AsDouble(object);
        if (step->check == CHECK_DOUBLE_OR_FLOAT)
            *(double *)target = value;
        else
            *(float *)target = (float)value;
        return true;
    }
    if (object->type != step->type) // exactly this type: a subclass may do anything
        return false;
    switch (step->check) {
    case CHECK_ARRAY:
    case CHECK_WRITTEN: {
        int32_t writeable = step->check == CHECK_WRITTEN ? WRITEABLE : 0;
        return take_array(frame, step, (array *)object, C_CONTIGUOUS | ALIGNED | writeable);
    }
    case CHECK_FLOAT: // of exact floats and ints these functions raise nothing
        *(double *)target = PyFloat_AsDouble(object);
        return true;
    case CHECK_INT: {
        int overflow;
        *(word *)target = PyLong_AsLongLongAndOverflow(object, &overflow);
        return !overflow;
    }
    case CHECK_BOOL:
        *(int8_t *)target = (int8_t)PyObject_IsTrue(object);
        return true;
    case CHECK_SCALAR:
    case CHECK_DOUBLE_OR_FLOAT:
    case CHECK_SINGLE_OR_FLOAT:
        PyArray_ScalarAsCtype(object, target);
        return true;
    case CHECK_TUPLE:
        return PyTuple_Size(object) == step->detail;
    case CHECK_LIST:
        return PyList_Size(object) == step->detail;
    case CHECK_DICT:
        return PyDict_Size(object) == step->detail;
    case CHECK_TYPE:
        return true;
    default:
        return false;
    }
}

static inline bool fetch_all(const frame *frame, const step *steps, object **objects, object *const *args, word count)
{
    word position; // in a dict whose items are fetched
    for (word k = 0; k != count; k++) {
        const step *step = &steps[k];
        if (step->both == (FETCH_ARGUMENT | (word)CHECK_ARRAY << 32)) { // most are; these are not asked what they are: 1.5 ns less for each
            object *array_ = args[step->position];
            objects[k] = array_;
            if (array_->type != ndarray || !take_array(frame, step, (array *)array_, C_CONTIGUOUS | ALIGNED))
                return false;
            continue;
        }
        object *found;
        if (!fetch(step, objects, args, &position, &found))
            return false;
        objects[k] = found;
        if (!check(frame, step, found))
            return false;
    }
    return true;
}

static inline bool element_is(const char *now, const char *held, word item)
{
    switch (item) {
    case 8: {
        int64_t a, b;
        __builtin_memcpy(&a, now, 8);
        __builtin_memcpy(&b, held, 8);
        return a == b;
    }
    case 4: {
        int32_t a, b;
        __builtin_memcpy(&a, now, 4);
        __builtin_memcpy(&b, held, 4);
        return a == b;
    }
    case 1:
        return *now == *held;
    default:
        return false;
    }
}

// Whether the arrays that are watched hold what they held, and none overlap that may not.
APART bool arrays_are_right(const frame *frame, const step *steps, object *const *objects, bool plain)
{
    const watch *watches = at(frame, frame->watches.at);
    for (word k = 0; k != frame->watches.count; k++) {
        const watch *watch = &watches[k];
        if (watch->array->data != watch->data)
            return false;
        for (word j = 0; j <= watch->count; j++) {
            const char *now = watch->data + (j == watch->count ? watch->last : j * watch->step);
            if (!element_is(now, watch->held + j * watch->item, watch->item))
                return false;
        }
    }
    const pair *pairs = at(frame, frame->pairs.at);
    word count = frame->pairs.count + (plain ? 0 : frame->out_pairs);
    for (word k = 0; k != count; k++) {
        word a = pairs[k].a, b = pairs[k].b;
        const char *a_begin = ((array *)objects[a])->data, *b_begin = ((array *)objects[b])->data;
        if (a_begin + steps[a].bytes > b_begin && b_begin + steps[b].bytes > a_begin)
            return false;
    }
    return true;
}

// Whether everything has the answer that it had. Code of others may run meanwhile, where garbage is collected; a run inside of an answer goes
// through Python, which may end what this frame is for, and then what the questions are about may be gone.
APART bool answers_are_right(const frame *frame, object **objects)
{
    const question *questions = at(frame, frame->questions.at);
    for (word k = 0; k != frame->questions.count; k++) {
        if (!frame->runs)
            return false;
        const question *question = &questions[k];
        object *what = question->what ? question->what : objects[question->step];
        object *answer = PyObject_Vectorcall(question->function, &what, question->arguments, NULL);
        int is_right = answer ? PyObject_RichCompareBool(answer, question->expected, PY_EQ) : -1;
        Py_DecRef(answer); // of null nothing
        if (is_right < 0)
            PyErr_Clear();
        if (is_right != 1)
            return false;
    }
    return frame->runs;
}

// Whether the program saw what the function saw when it was recorded.
static inline bool guards_hold(const frame *frame)
{
    const guard *guards = at(frame, frame->guards.at);
    for (word k = 0; k != frame->guards.count; k++) {
        const void *number = at(frame, guards[k].at);
        word seen;
        switch (guards[k].kind) {
        case TRUTH_OF_BYTE:
            seen = *(int8_t *)number != 0;
            break;
        case TRUTH_OF_LONG:
            seen = *(int64_t *)number != 0;
            break;
        case TRUTH_OF_INT:
            seen = *(int32_t *)number != 0;
            break;
        case TRUTH_OF_DOUBLE:
            seen = *(double *)number != 0; // NaN is true
            break;
        case TRUTH_OF_FLOAT:
            seen = *(float *)number != 0;
            break;
        case LONG:
            seen = *(int64_t *)number;
            break;
        case INT:
            seen = *(int32_t *)number;
            break;
        default:
            return false;
        }
        if (seen != guards[k].expected)
            return false;
    }
    return true;
}

// --- memory for the results -----------------------------------------------------------------------------------------------
// Whether an array of ours is referred to by its frame alone, and whoever had it left it as it was made.
APART bool may_be_written(const frame *frame, const output *output, const array *array)
{
    const int32_t flags = C_CONTIGUOUS | OWNS_DATA | ALIGNED | WRITEABLE;
    if (!array)
        return false;
    // One branch for all. With a weak reference the caller may come back for it.
    if ((array->head.references != 1) | (array->weak_references != NULL) | (array->base != NULL) | ((array->flags & flags) != flags) |
        (array->dtype != output->dtype) | ((uint32_t)array->dimensions != output->dimensions))
        return false;
    return shape_is(array->shape, at(frame, output->shape_at), output->dimensions);
}

// Null with an exception set where there is no memory.
static inline array *array_to_write(const frame *frame, output *output)
{
    array *first = output->first, *second = output->second;
    if (may_be_written(frame, output, first))
        return first;
    if (may_be_written(frame, output, second)) {
        output->second = first;
        output->first = second;
        return second;
    }
    Py_IncRef(output->dtype); // the new array takes this reference
    array *new = (array *)PyArray_NewFromDescr(
        ndarray, output->dtype, (int)output->dimensions, at(frame, output->shape_at), NULL, NULL, 0, NULL);
    if (new) {
        output->old = second;
        output->second = first;
        output->first = new;
    }
    return new;
}

// False with an exception set.
static inline bool prepare_outputs(const frame *frame, bool plain)
{
    output *outputs = at(frame, frame->outputs.at);
    word given = plain ? 0 : frame->outputs.count - frame->guards.count; // those that `out` has
    for (word k = given; k != frame->outputs.count; k++) {
        output *output = &outputs[k];
        if (!output->target_at)
            continue;
        void **target = at(frame, output->target_at);
        if (output->number_at) {
            *target = at(frame, output->number_at);
            continue;
        }
        array *array = array_to_write(frame, output);
        if (!array)
            return false;
        *target = array->data;
    }
    return true;
}

// Let go of the arrays that are no longer kept: last, because what refers to them may run code of its own.
APART void drop_outputs(const frame *frame)
{
    output *outputs = at(frame, frame->outputs.at);
    for (word k = 0; k != frame->outputs.count; k++) {
        array *old = outputs[k].old;
        if (old) {
            outputs[k].old = NULL;
            Py_DecRef(&old->head);
        }
    }
}

// --- what is returned -----------------------------------------------------------------------------------------------------
// What was fetched, by the numbers of the steps; it is held.
static inline object *make_values(const word *numbers, word count, object *const *objects)
{
    object *tuple = PyTuple_New(count);
    if (tuple)
        for (word k = 0; k != count; k++) {
            object *value = objects[numbers[k]];
            Py_IncRef(value);
            PyTuple_SetItem(tuple, k, value);
        }
    return tuple;
}

static inline object *make_tuple(object **parts, word count)
{
    object *tuple = PyTuple_New(count);
    if (tuple)
        for (word k = 0; k != count; k++)
            PyTuple_SetItem(tuple, k, parts[k]); // takes the reference
    return tuple;
}

static inline object *make_list(object **parts, word count)
{
    object *list = PyList_New(count);
    if (list)
        for (word k = 0; k != count; k++)
            PyList_SetItem(list, k, parts[k]); // takes the reference
    return list;
}

static inline object *make_dict(object *keys, object **parts, word count)
{
    object *dict = PyDict_New();
    if (!dict)
        return NULL;
    for (word k = 0; k != count; k++)
        if (PyDict_SetItem(dict, PyTuple_GetItem(keys, k), parts[k])) {
            Py_DecRef(dict);
            return NULL;
        }
    let_go(parts, count); // it has references of its own
    return dict;
}

// What PyArray_Scalar does for this dtype, without its questions: 8 ns less.
static inline object *make_numpy_double(object *type, const word *value)
{
    number *made = (number *)PyType_GenericAlloc(type, 0);
    if (made)
        made->value = *value;
    return &made->head;
}

// A new reference, or null with an exception set.
static inline object *make_result(const frame *frame, object **objects)
{
    const making *makings = at(frame, frame->makings.at);
    const output *outputs = at(frame, frame->outputs.at);
    object **stack = at(frame, frame->stack_at);
    object **top = stack; // the place of what is made next
    for (word k = 0; k != frame->makings.count; k++) {
        const making *making = &makings[k];
        word detail = making->detail;
        object *taken = making->taken;
        void *number = at(frame, detail);
        object **parts = top - detail;
        object *made;
        switch (making->kind) {
        case MAKE_ARRAY:
            made = &outputs[detail].first->head;
            Py_IncRef(made);
            break;
        case MAKE_SCALAR:
            made = PyArray_Scalar(number, taken, NULL);
            break;
        case MAKE_NUMPY_DOUBLE:
            made = make_numpy_double(taken, number);
            break;
        case MAKE_DOUBLE:
            made = PyFloat_FromDouble(*(double *)number);
            break;
        case MAKE_FLOAT:
            made = PyFloat_FromDouble(*(float *)number);
            break;
        case MAKE_LONG:
            made = PyLong_FromLongLong(*(int64_t *)number);
            break;
        case MAKE_INT:
            made = PyLong_FromLongLong(*(int32_t *)number);
            break;
        case MAKE_BOOL:
            made = PyBool_FromLong(*(uint8_t *)number);
            break;
        case MAKE_CONSTANT:
            made = taken;
            Py_IncRef(made);
            break;
        case MAKE_VALUES:
            made = make_values(number, making->count, objects);
            break;
        case MAKE_TUPLE:
            made = make_tuple(parts, detail);
            if (made)
                top = parts;
            break;
        case MAKE_LIST:
            made = make_list(parts, detail);
            if (made)
                top = parts;
            break;
        case MAKE_DICT:
            made = make_dict(taken, parts, detail);
            if (made)
                top = parts;
            break;
        case MAKE_CALL: // of the last things made, all of them arguments
            made = PyObject_Vectorcall(taken, parts, detail, NULL);
            let_go(parts, detail);
            top = parts;
            break;
        default: // templates.py makes no such making
            __builtin_unreachable();
        }
        if (!made) {
            let_go(stack, top - stack);
            return NULL;
        }
        *top++ = made;
    }
    return *stack;
}

// --- the run --------------------------------------------------------------------------------------------------------------
static inline word run(const frame *frame)
{
    void *table = at(frame, frame->table_at);
    if (frame->mode != RELEASES)
        return frame->program(table);
    void *thread = PyEval_SaveThread();
    word status = frame->program(table);
    PyEval_RestoreThread(thread);
    return status;
}

// A graph of a device, which stands in the scratch memory: what launches it, where, and the context that has to be current.
typedef struct {
    int (*launch)(void *graph, void *stream);
    void *graph;
    void *stream;
    int (*current)(void **context);
    void *context;
} launch;

// The program of a plan on a device. Zero where the graph was put on the stream; else nothing was, and Python says why.
word launch_graph(launch *const *table)
{
    const launch *launch = *table;
    void *context;
    if (launch->current(&context) || context != launch->context)
        return 1;
    return launch->launch(launch->graph, launch->stream);
}

static inline void leave(frame *frame, object **objects, word count)
{
    drop_outputs(frame);
    if (frame->mode)
        let_go(objects, count);
    *frame->lock = 0;
    frame->busy = 0;
}

typedef struct {
    const array *holder; // of the words of the first frame, or null
    frame *latest;       // that ran
} native_fields;

// False where the call is for another frame; else the result, or null with an exception set.
static inline bool try_frame(frame *frame, native_fields *fields, object **args, word nargs, bool plain, object **result)
{
    if (frame->busy | *frame->lock)
        return false;
    if (frame->arguments != nargs)
        return false;
    word runs = frame->runs;
    word out_steps = plain ? 0 : frame->out_steps;
    if (!runs || (!plain && !out_steps))
        return false;
    const step *steps = at(frame, frame->steps.at);
    object **objects = at(frame, frame->objects_at);
    word count = frame->steps.count + out_steps;
    if (!words_hold(frame) || !fetch_all(frame, steps, objects, args, count))
        return false;
    if (!arrays_are_right(frame, steps, objects, plain))
        return false;

    frame->busy = 1;
    *frame->lock = 1;
    if (frame->mode) // others may run meanwhile, and let go of what the caller does not hold for us
        hold(objects, count);
    if (frame->questions.count && !answers_are_right(frame, objects)) {
        leave(frame, objects, count);
        return false;
    }
    *result = NULL;
    if (prepare_outputs(frame, plain)) {
        if (run(frame) || !guards_hold(frame)) { // these values are for another program
            leave(frame, objects, count);
            return false;
        }
        if (runs > 0)
            frame->runs = runs - 1;
        fields->latest = frame;
        if (plain) {
            *result = make_result(frame, objects);
        } else { // comes behind the arguments by position
            *result = args[nargs];
            Py_IncRef(*result);
        }
    }
    leave(frame, objects, count);
    return true;
}

// The type's own tp_call, which is the __call__ written in Python, with a tuple and a dict.
APART object *call_in_python(object *self, object **args, word nargs, object *names)
{
    object *tuple = PyTuple_New(nargs);
    if (!tuple)
        return NULL;
    for (word k = 0; k != nargs; k++) {
        Py_IncRef(args[k]);
        PyTuple_SetItem(tuple, k, args[k]);
    }
    object *dict = NULL, *result = NULL;
    if (names) {
        dict = PyDict_New();
        if (!dict)
            goto end;
        word count = PyTuple_Size(names);
        for (word k = 0; k != count; k++)
            if (PyDict_SetItem(dict, PyTuple_GetItem(names, k), args[nargs + k]))
                goto end;
    }
    object *(*call)(object *, object *, object *) = PyType_GetSlot(self->type, PY_TP_CALL);
    result = call(self, tuple, dict);
end:
    Py_DecRef(tuple);
    Py_DecRef(dict); // of null nothing
    return result;
}

object *entry(object *self, object **args, word nargs_and_flag, object *names)
{
    word nargs = nargs_and_flag & INT64_MAX; // the highest bit says that the word before the arguments may be written
    native_fields *fields = at(self, frame_offset);
    // of keywords, out alone is taken
    if (!*suspensions && (!names || (PyTuple_Size(names) == 1 && PyTuple_GetItem(names, 0) == out_name)))
        for (const array *holder = fields->holder; holder;) {
            frame *frame = (void *)holder->data;
            object *result;
            if (try_frame(frame, fields, args, nargs, !names, &result))
                return result;
            holder = frame->next;
        }
    return call_in_python(self, args, nargs, names);
}
