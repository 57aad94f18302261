/* template_ops.c: Python's operators on values. Integers that leave 64 bits are an error, never a
 * wrapped number. */
#include <math.h>

#include "tokenizer/template_render.h"
#include "tokenizer/template_text.h"

static const char *op_text(enum tn_op op)
{
    static const char *const texts[] = {
        "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
    return texts[op];
}

static smoe_status bad_operands(tr *r, enum tn_op op, tv a, tv b)
{
    if (a.kind == TV_UNDEFINED || b.kind == TV_UNDEFINED) {
        return tr_undefined_error(r, a.kind == TV_UNDEFINED ? a : b);
    }
    return tr_fail(r, "unsupported operand types for %s: '%s' and '%s'", op_text(op),
                   tv_type_name(a), tv_type_name(b));
}

static smoe_status overflow(tr *r)
{
    return tr_unsupported(r, "an integer does not fit 64 bits");
}

static smoe_status int_power(tr *r, int64_t base, int64_t exponent, tv *out)
{
    if (exponent < 0) {
        if (base == 0) {
            return tr_fail(r, "0 cannot be raised to a negative power");
        }
        *out = tv_float(pow((double)base, (double)exponent));
        return SMOE_OK;
    }
    int64_t result = 1;
    if (base == 0 || base == 1 || base == -1) {
        result = exponent == 0 ? 1 : base == -1 && exponent % 2 == 0 ? 1 : base;
        exponent = 0;
    }
    for (; exponent > 0; exponent--) {
        if (__builtin_mul_overflow(result, base, &result)) {
            return overflow(r);
        }
    }
    *out = tv_int(result);
    return SMOE_OK;
}

static smoe_status int_arith(tr *r, enum tn_op op, int64_t a, int64_t b, tv *out)
{
    int64_t result = 0;
    bool overflows = false;
    switch (op) {
    case OP_ADD:
        overflows = __builtin_add_overflow(a, b, &result);
        break;
    case OP_SUB:
        overflows = __builtin_sub_overflow(a, b, &result);
        break;
    case OP_MUL:
        overflows = __builtin_mul_overflow(a, b, &result);
        break;
    case OP_POW:
        return int_power(r, a, b, out);
    default:
        if (b == 0) {
            return tr_fail(r, "division by zero");
        }
        if (op == OP_DIV) {
            *out = tv_float((double)a / (double)b);
            return SMOE_OK;
        }
        if (b == -1) { /* INT64_MIN / -1 traps */
            overflows = op == OP_FLOORDIV && __builtin_sub_overflow((int64_t)0, a, &result);
        } else {
            bool is_inexact = a % b != 0 && (a < 0) != (b < 0);
            result = op == OP_FLOORDIV ? a / b - is_inexact : a % b + (is_inexact ? b : 0);
        }
    }
    *out = tv_int(result);
    return overflows ? overflow(r) : SMOE_OK;
}

/* Floor division and modulo as Python defines them: the remainder has the sign of the divisor. */
static void float_divmod(double a, double b, double *quotient, double *remainder)
{
    double mod = fmod(a, b), div = (a - mod) / b;
    if (mod != 0) {
        if ((b < 0) != (mod < 0)) {
            mod += b;
            div -= 1;
        }
    } else {
        mod = copysign(0.0, b);
    }
    double floored = div != 0 ? floor(div) : copysign(0.0, a / b);
    *quotient = div != 0 && div - floored > 0.5 ? floored + 1 : floored;
    *remainder = mod;
}

static smoe_status float_arith(tr *r, enum tn_op op, double a, double b, tv *out)
{
    double result = 0, other = 0;
    switch (op) {
    case OP_ADD:
        result = a + b;
        break;
    case OP_SUB:
        result = a - b;
        break;
    case OP_MUL:
        result = a * b;
        break;
    case OP_POW:
        if (a == 0 && b < 0) {
            return tr_fail(r, "0.0 cannot be raised to a negative power");
        }
        if (a < 0 && b != floor(b)) {
            return tr_unsupported(r, "complex numbers are not supported");
        }
        result = pow(a, b);
        if (isinf(result) && isfinite(a) && isfinite(b)) {
            return tr_fail(r, "a power is too large for a float");
        }
        break;
    default:
        if (b == 0) {
            return tr_fail(r, "float division by zero");
        }
        if (op == OP_DIV) {
            result = a / b;
        } else if (op == OP_FLOORDIV) {
            float_divmod(a, b, &result, &other);
        } else {
            float_divmod(a, b, &other, &result);
        }
    }
    *out = tv_float(result);
    return SMOE_OK;
}

static smoe_status concat(tr *r, tv a, tv b, tv *out)
{
    if (a.kind != TV_STR) {
        size_t n = a.u.list->n, m = b.u.list->n;
        TRY(tr_list_new(r, a.kind, NULL, n + m, out));
        memcpy(out->u.list->items, a.u.list->items, n * sizeof(tv));
        memcpy(out->u.list->items + n, b.u.list->items, m * sizeof(tv));
        return SMOE_OK;
    }
    /* A text that went through safe or escape escapes what is added to it. */
    bool is_markup = a.is_markup || b.is_markup;
    buf text;
    tr_text_begin(&text);
    smoe_status status = is_markup && !a.is_markup ? tr_put_escaped(r, &text, a.u.s)
                                                   : tr_put(r, &text, a.u.s);
    if (status == SMOE_OK) {
        status = is_markup && !b.is_markup ? tr_put_escaped(r, &text, b.u.s)
                                           : tr_put(r, &text, b.u.s);
    }
    TRY(tr_text_end(r, &text, status, out));
    out->is_markup = is_markup;
    return SMOE_OK;
}

static smoe_status repeat(tr *r, tv v, int64_t n, tv *out)
{
    n = n < 0 ? 0 : n;
    if (v.kind == TV_STR) {
        buf text;
        smoe_status status = SMOE_OK;
        if (v.u.s.len && (uint64_t)n > TR_MAX_OUTPUT_BYTES / v.u.s.len) {
            return tr_fail(r, "a text grows beyond %d MiB", TR_MAX_OUTPUT_BYTES >> 20);
        }
        tr_text_begin(&text);
        for (int64_t i = 0; i < n && v.u.s.len && status == SMOE_OK; i++) {
            status = tr_put(r, &text, v.u.s);
        }
        TRY(tr_text_end(r, &text, status, out));
        out->is_markup = v.is_markup;
        return SMOE_OK;
    }
    size_t len = v.u.list->n, total = 0;
    if (__builtin_mul_overflow(len, (size_t)n, &total)) {
        total = SIZE_MAX / 2; /* refused by the allocation */
    }
    TRY(tr_list_new(r, v.kind, NULL, total, out));
    for (size_t i = 0; i < total; i++) {
        out->u.list->items[i] = v.u.list->items[i % len];
    }
    return SMOE_OK;
}

static bool is_sequence(tv v)
{
    return v.kind == TV_STR || v.kind == TV_LIST || v.kind == TV_TUPLE;
}

smoe_status tr_arith(tr *r, enum tn_op op, tv a, tv b, tv *out)
{
    int64_t i = 0, j = 0;
    double x = 0, y = 0;
    bool a_is_int = tv_as_int(a, &i), b_is_int = tv_as_int(b, &j);
    if (a_is_int && b_is_int) {
        return int_arith(r, op, i, j, out);
    }
    if (tv_as_number(a, &x) && tv_as_number(b, &y)) {
        return float_arith(r, op, x, y, out);
    }
    if (op == OP_ADD && is_sequence(a) && a.kind == b.kind) {
        return concat(r, a, b, out);
    }
    if (op == OP_MUL && is_sequence(a) && b_is_int) {
        return repeat(r, a, j, out);
    }
    if (op == OP_MUL && is_sequence(b) && a_is_int) {
        return repeat(r, b, i, out);
    }
    if (op == OP_MOD && tv_is_str(a)) {
        return tr_percent_format(r, a.u.s, b, out);
    }
    return bad_operands(r, op, a, b);
}

smoe_status tr_negate(tr *r, tv v, bool is_minus, tv *out)
{
    int64_t i = 0;
    if (v.kind == TV_FLOAT) {
        *out = tv_float(is_minus ? -v.u.f : v.u.f);
        return SMOE_OK;
    }
    if (tv_as_int(v, &i)) {
        return int_arith(r, is_minus ? OP_SUB : OP_ADD, 0, i, out);
    }
    return v.kind == TV_UNDEFINED ? tr_undefined_error(r, v)
                                  : tr_fail(r, "bad operand type for unary %c: '%s'",
                                            is_minus ? '-' : '+', tv_type_name(v));
}

enum { UNORDERED = 2 };

/* -1, 0, 1, or UNORDERED for NaN; exact, also where an int is no double. */
static int compare_int_float(int64_t i, double f)
{
    if (isnan(f)) {
        return UNORDERED;
    }
    if (f >= 0x1p63) {
        return -1;
    }
    if (f < -0x1p63) {
        return 1;
    }
    int64_t whole = (int64_t)f;
    double rest = f - (double)whole;
    return i != whole ? (i < whole ? -1 : 1) : rest > 0 ? -1 : rest < 0 ? 1 : 0;
}

static int compare_numbers(tv a, tv b)
{
    int64_t i = 0, j = 0;
    bool a_is_int = tv_as_int(a, &i), b_is_int = tv_as_int(b, &j);
    if (a_is_int && b_is_int) {
        return i < j ? -1 : i > j;
    }
    if (a_is_int) {
        return compare_int_float(i, b.u.f);
    }
    if (b_is_int) {
        int c = compare_int_float(j, a.u.f);
        return c == UNORDERED ? c : -c;
    }
    return a.u.f < b.u.f ? -1 : a.u.f > b.u.f ? 1 : a.u.f == b.u.f ? 0 : UNORDERED;
}

static bool is_number(tv v)
{
    return v.kind == TV_INT || v.kind == TV_BOOL || v.kind == TV_FLOAT;
}

static smoe_status equal_dicts(tr *r, const tv_dict *a, const tv_dict *b, bool *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; i < a->n && *out; i++) {
        tv other = {0};
        TRY(tr_dict_get(r, b, a->items[i].key, &other));
        *out = other.kind != TV_MISSING;
        if (*out) {
            TRY(tr_equal(r, a->items[i].value, other, out));
        }
    }
    return SMOE_OK;
}

static smoe_status equal_lists(tr *r, const tv_list *a, const tv_list *b, bool *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; i < a->n && *out; i++) {
        TRY(tr_equal(r, a->items[i], b->items[i], out));
    }
    return SMOE_OK;
}

static smoe_status too_deep(tr *r)
{
    return tr_fail(r, "a value is nested more than %d levels deep", TR_MAX_VALUE_DEPTH);
}

smoe_status tr_equal(tr *r, tv a, tv b, bool *out)
{
    TRY(tr_spend(r, 1));
    *out = false;
    if (is_number(a) && is_number(b)) {
        *out = compare_numbers(a, b) == 0;
        return SMOE_OK;
    }
    if (a.kind != b.kind) {
        return SMOE_OK;
    }
    smoe_status status = SMOE_OK;
    if (r->value_depth++ == TR_MAX_VALUE_DEPTH) {
        return too_deep(r);
    }
    switch (a.kind) {
    case TV_UNDEFINED:
    case TV_NONE:
        *out = true;
        break;
    case TV_STR:
        status = tr_spend(r, a.u.s.len == b.u.s.len ? a.u.s.len / 64 : 0);
        *out = slice_eq(a.u.s, b.u.s);
        break;
    case TV_LIST:
    case TV_TUPLE:
        status = equal_lists(r, a.u.list, b.u.list, out);
        break;
    case TV_DICT:
        status = equal_dicts(r, a.u.dict, b.u.dict, out);
        break;
    case TV_FUNC:
        *out = a.u.func == b.u.func;
        break;
    case TV_RANGE:
        *out = a.u.range->n == b.u.range->n &&
               (a.u.range->n == 0 || (a.u.range->start == b.u.range->start &&
                                      (a.u.range->n == 1 || a.u.range->step == b.u.range->step)));
        break;
    case TV_VIEW:
    case TV_METHOD:
        status = tr_unsupported(r, "comparing two values of type '%s' is not supported",
                                tv_type_name(a));
        break;
    default:
        *out = a.u.iter == b.u.iter; /* the same object */
        break;
    }
    r->value_depth--;
    return status;
}

static int compare_texts(slice a, slice b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.data, b.data, n) : 0; /* UTF-8 sorts like its code points */
    return c < 0 ? -1 : c > 0 ? 1 : a.len < b.len ? -1 : a.len > b.len;
}

static smoe_status order(tr *r, enum tn_op op, tv a, tv b, bool *out);

static smoe_status order_lists(tr *r, enum tn_op op, tv a, tv b, bool *out)
{
    size_t n = a.u.list->n < b.u.list->n ? a.u.list->n : b.u.list->n;
    for (size_t i = 0; i < n; i++) {
        bool equal = false;
        TRY(tr_equal(r, a.u.list->items[i], b.u.list->items[i], &equal));
        if (!equal) {
            return order(r, op, a.u.list->items[i], b.u.list->items[i], out);
        }
    }
    return order(r, op, tv_int((int64_t)a.u.list->n), tv_int((int64_t)b.u.list->n), out);
}

static smoe_status order(tr *r, enum tn_op op, tv a, tv b, bool *out)
{
    int c;
    TRY(tr_spend(r, 1));
    if (is_number(a) && is_number(b)) {
        c = compare_numbers(a, b);
    } else if (tv_is_str(a) && tv_is_str(b)) {
        TRY(tr_spend(r, a.u.s.len / 64));
        c = compare_texts(a.u.s, b.u.s);
    } else if ((a.kind == TV_LIST || a.kind == TV_TUPLE) && a.kind == b.kind) {
        if (r->value_depth++ == TR_MAX_VALUE_DEPTH) {
            return too_deep(r);
        }
        smoe_status status = order_lists(r, op, a, b, out);
        r->value_depth--;
        return status;
    } else {
        return bad_operands(r, op, a, b);
    }
    *out = c != UNORDERED && (op == OP_LT   ? c < 0
                              : op == OP_LE ? c <= 0
                              : op == OP_GT ? c > 0
                                            : c >= 0);
    return SMOE_OK;
}

smoe_status tr_contains(tr *r, tv container, tv v, bool *out)
{
    *out = false;
    if (container.kind == TV_STR) {
        if (!tv_is_str(v)) {
            return v.kind == TV_UNDEFINED
                       ? tr_undefined_error(r, v)
                       : tr_fail(r, "'in <string>' requires a string, found '%s'", tv_type_name(v));
        }
        TRY(tr_spend(r, container.u.s.len / 16));
        *out = text_find(container.u.s, v.u.s, 0) != SIZE_MAX;
        return SMOE_OK;
    }
    if (container.kind == TV_DICT ||
        (container.kind == TV_VIEW && container.u.view->what == TV_KEYS)) {
        tv found = {0};
        const tv_dict *d = container.kind == TV_DICT ? container.u.dict : container.u.view->dict;
        TRY(tr_dict_get(r, d, v, &found));
        *out = found.kind != TV_MISSING;
        return SMOE_OK;
    }
    tv_iter *it = NULL;
    TRY(tr_iter(r, container, &it));
    while (it->at < it->n && !*out) {
        TRY(tr_equal(r, it->items[it->at++], v, out));
    }
    return SMOE_OK;
}

smoe_status tr_compare(tr *r, enum tn_op op, tv a, tv b, bool *out)
{
    switch (op) {
    case OP_EQ:
    case OP_NE:
        TRY(tr_equal(r, a, b, out));
        *out = *out == (op == OP_EQ);
        return SMOE_OK;
    case OP_IN:
    case OP_NOT_IN:
        TRY(tr_contains(r, b, a, out));
        *out = *out == (op == OP_IN);
        return SMOE_OK;
    default:
        return order(r, op, a, b, out);
    }
}
