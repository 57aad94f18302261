/* template_value.h: the values of a template: Python's, as far as a chat template can see them.
 *
 * The one idea: a value is three words, passed by copy. Everything it points to lies in the arena
 * of the render (or of the template, for constants) and never changes once built, except
 * namespaces, iterators and loops. So there is no reference counting and no cleanup on any path. */
#ifndef TOKENIZER_TEMPLATE_VALUE_H
#define TOKENIZER_TEMPLATE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum tv_kind {
    TV_MISSING, /* no value at all: an argument not given, a name not bound */
    TV_UNDEFINED,
    TV_NONE,
    TV_BOOL,
    TV_INT, /* 64 bits; what does not fit is an error */
    TV_FLOAT,
    TV_STR,
    TV_LIST,
    TV_TUPLE,
    TV_DICT,
    TV_RANGE,
    TV_VIEW, /* dict.keys(), values(), items() */
    TV_ITER, /* Python's generators and iterators: always true, no length, consumed once */
    TV_NAMESPACE,
    TV_LOOP,
    TV_MACRO,
    TV_METHOD, /* a method bound to its object */
    TV_FUNC,   /* a global function */
    TV_CYCLER,
    TV_JOINER,
};

typedef struct tv_undef tv_undef;
typedef struct tv_list tv_list;
typedef struct tv_dict tv_dict;
typedef struct tv_range tv_range;
typedef struct tv_view tv_view;
typedef struct tv_iter tv_iter;
typedef struct tv_loop tv_loop;
typedef struct tv_macro tv_macro;
typedef struct tv_method tv_method;
typedef struct tv_cycler tv_cycler;
typedef struct tv_joiner tv_joiner;

typedef struct tv {
    uint8_t kind;
    bool is_markup; /* a string that went through safe or escape (see the operators) */
    union {
        bool b;
        int64_t i;
        double f;
        slice s; /* valid UTF-8 */
        const tv_undef *undef;
        tv_list *list; /* also tuples */
        tv_dict *dict; /* also namespaces */
        tv_range *range;
        tv_view *view;
        tv_iter *iter;
        tv_loop *loop;
        tv_macro *macro;
        tv_method *method;
        tv_cycler *cycler;
        tv_joiner *joiner;
        int func; /* in the table of template_functions.c */
    } u;
} tv;

struct tv_undef {
    const char *hint;  /* the whole message, or NULL: built from the rest */
    const char *owner; /* "dict object", or NULL: a variable */
    slice name;
    bool is_unsafe; /* the sandbox hides it */
};

struct tv_list {
    tv *items;
    size_t n;
};

typedef struct tv_pair {
    tv key, value;
} tv_pair;

struct tv_dict {
    tv_pair *items; /* in insertion order */
    size_t n, cap;
};

struct tv_range {
    int64_t start, stop, step;
    size_t n;
};

enum tv_view_kind { TV_KEYS, TV_VALUES, TV_ITEMS };

struct tv_view {
    tv_dict *dict;
    enum tv_view_kind what;
};

struct tv_iter {
    const tv *items;
    size_t n, at;
    const char *what; /* "generator", "list_reverseiterator": for messages */
};

struct tv_cycler {
    tv *items;
    size_t n, at;
};

struct tv_joiner {
    tv separator;
    bool used;
};

struct tv_method {
    tv self;
    int id; /* in the table of template_methods.c */
};

static inline tv tv_none(void)
{
    return (tv){.kind = TV_NONE};
}

static inline tv tv_bool(bool b)
{
    return (tv){.kind = TV_BOOL, .u.b = b};
}

static inline tv tv_int(int64_t i)
{
    return (tv){.kind = TV_INT, .u.i = i};
}

static inline tv tv_float(double f)
{
    return (tv){.kind = TV_FLOAT, .u.f = f};
}

static inline tv tv_str(slice s)
{
    return (tv){.kind = TV_STR, .u.s = s};
}

static inline tv tv_cstr(const char *s)
{
    return tv_str(slice_from(s));
}

static inline bool tv_is_str(tv v)
{
    return v.kind == TV_STR;
}

/* An int or a bool, which Python counts as one. */
static inline bool tv_as_int(tv v, int64_t *out)
{
    if (v.kind != TV_INT && v.kind != TV_BOOL) {
        return false;
    }
    *out = v.kind == TV_INT ? v.u.i : v.u.b;
    return true;
}

static inline bool tv_as_number(tv v, double *out)
{
    int64_t i = 0;
    if (v.kind == TV_FLOAT) {
        *out = v.u.f;
        return true;
    }
    if (!tv_as_int(v, &i)) {
        return false;
    }
    *out = (double)i;
    return true;
}

/* Python's name of the type: "str", "dict", "NoneType", ... */
const char *tv_type_name(tv v);
bool tv_truth(tv v);

#endif
