/* template_tests.c: Jinja's tests ("x is string"). */
#include "tokenizer/template_builtins.h"
#include "tokenizer/template_render.h"

typedef smoe_status test_fn(tr *r, tv in, tv arg, bool *out);

static smoe_status remainder_is(tr *r, tv in, tv by, int64_t want, bool *out)
{
    tv rest = {0};
    TRY(tr_arith(r, OP_MOD, in, by, &rest));
    return tr_equal(r, rest, tv_int(want), out);
}

static smoe_status t_odd(tr *r, tv in, tv arg, bool *out)
{
    (void)arg;
    return remainder_is(r, in, tv_int(2), 1, out);
}

static smoe_status t_even(tr *r, tv in, tv arg, bool *out)
{
    (void)arg;
    return remainder_is(r, in, tv_int(2), 0, out);
}

static smoe_status t_divisibleby(tr *r, tv in, tv arg, bool *out)
{
    return remainder_is(r, in, arg, 0, out);
}

static smoe_status t_lower(tr *r, tv in, tv arg, bool *out)
{
    slice s = {0};
    (void)arg;
    TRY(tr_str(r, in, &s));
    *out = tr_is_case(s, false);
    return SMOE_OK;
}

static smoe_status t_upper(tr *r, tv in, tv arg, bool *out)
{
    slice s = {0};
    (void)arg;
    TRY(tr_str(r, in, &s));
    *out = tr_is_case(s, true);
    return SMOE_OK;
}

static smoe_status t_sameas(tr *r, tv in, tv arg, bool *out)
{
    bool is_constant = in.kind <= TV_BOOL || arg.kind <= TV_BOOL;
    if (!is_constant && in.kind == arg.kind &&
        (in.kind == TV_INT || in.kind == TV_FLOAT || in.kind == TV_STR || in.kind == TV_TUPLE)) {
        return tr_unsupported(
            r, "sameas of two values of type %s is not supported; use ==", tv_type_name(in));
    }
    *out = in.kind == arg.kind && (in.kind == TV_BOOL   ? in.u.b == arg.u.b
                                   : in.kind == TV_NONE ? true
                                                        : in.u.list == arg.u.list);
    return SMOE_OK;
}

#define COMPARISON(name, op)                                                                       \
    static smoe_status name(tr *r, tv in, tv arg, bool *out)                                       \
    {                                                                                              \
        return tr_compare(r, op, in, arg, out);                                                    \
    }
COMPARISON(t_eq, OP_EQ)
COMPARISON(t_ne, OP_NE)
COMPARISON(t_lt, OP_LT)
COMPARISON(t_le, OP_LE)
COMPARISON(t_gt, OP_GT)
COMPARISON(t_ge, OP_GE)
COMPARISON(t_in, OP_IN)

#define PREDICATE(name, condition)                                                                 \
    static smoe_status name(tr *r, tv in, tv arg, bool *out)                                       \
    {                                                                                              \
        (void)r;                                                                                   \
        (void)arg;                                                                                 \
        *out = (condition);                                                                        \
        return SMOE_OK;                                                                            \
    }
PREDICATE(t_defined, in.kind != TV_UNDEFINED)
PREDICATE(t_undefined, in.kind == TV_UNDEFINED)
PREDICATE(t_none, in.kind == TV_NONE)
PREDICATE(t_boolean, in.kind == TV_BOOL)
PREDICATE(t_true, in.kind == TV_BOOL && in.u.b)
PREDICATE(t_false, in.kind == TV_BOOL && !in.u.b)
PREDICATE(t_integer, in.kind == TV_INT)
PREDICATE(t_float, in.kind == TV_FLOAT)
PREDICATE(t_number, in.kind == TV_INT || in.kind == TV_FLOAT || in.kind == TV_BOOL)
PREDICATE(t_string, in.kind == TV_STR)
PREDICATE(t_mapping, in.kind == TV_DICT)
PREDICATE(t_iterable, tv_is_iterable(in))
PREDICATE(t_sequence, in.kind == TV_UNDEFINED || (in.kind >= TV_STR && in.kind <= TV_RANGE))
PREDICATE(t_callable, in.kind == TV_UNDEFINED || in.kind == TV_MACRO || in.kind == TV_METHOD ||
                          in.kind == TV_FUNC || in.kind == TV_JOINER || in.kind == TV_LOOP)
PREDICATE(t_escaped, in.is_markup)

static const struct {
    const char *name;
    test_fn *fn;
    bool has_arg;
} tests[] = {
    {"odd", t_odd, false},
    {"even", t_even, false},
    {"divisibleby", t_divisibleby, true},
    {"defined", t_defined, false},
    {"undefined", t_undefined, false},
    {"none", t_none, false},
    {"boolean", t_boolean, false},
    {"true", t_true, false},
    {"false", t_false, false},
    {"integer", t_integer, false},
    {"float", t_float, false},
    {"number", t_number, false},
    {"string", t_string, false},
    {"mapping", t_mapping, false},
    {"iterable", t_iterable, false},
    {"sequence", t_sequence, false},
    {"callable", t_callable, false},
    {"escaped", t_escaped, false},
    {"lower", t_lower, false},
    {"upper", t_upper, false},
    {"sameas", t_sameas, true},
    {"in", t_in, true},
    {"eq", t_eq, true},
    {"equalto", t_eq, true},
    {"==", t_eq, true},
    {"ne", t_ne, true},
    {"!=", t_ne, true},
    {"lt", t_lt, true},
    {"lessthan", t_lt, true},
    {"<", t_lt, true},
    {"le", t_le, true},
    {"<=", t_le, true},
    {"gt", t_gt, true},
    {"greaterthan", t_gt, true},
    {">", t_gt, true},
    {"ge", t_ge, true},
    {">=", t_ge, true},
};

int template_test_find(slice name)
{
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        if (slice_is(name, tests[i].name)) {
            return (int)i;
        }
    }
    return -1;
}

smoe_status tr_call_test(tr *r, uint32_t id, tv in, const tr_args *args, bool *out)
{
    tv arg = {0};
    TRY(tr_spend(r, 1));
    TRY(tr_bind(r, args, tests[id].name, NULL, tests[id].has_arg, tests[id].has_arg, &arg));
    return tests[id].fn(r, in, arg, out);
}
