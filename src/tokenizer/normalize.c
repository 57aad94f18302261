/* normalize.c: see normalize.h.
 *
 * Most text is inert: its characters are in form C alone and never combine with what precedes them.
 * Only the segments around the others are decomposed, ordered and composed; a segment starts at the
 * last inert character before (it may be a base) and ends before the next one.
 *
 * The reference normalises with the data of Unicode 9. Characters that became combining or
 * composable later are plain starters to it, whatever the installed utf8proc says: they end a
 * segment here. */
#include "tokenizer/normalize.h"

#include "base/mem.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

typedef struct code_range {
    uint32_t first, last;
} code_range;

/* Large blocks whose characters are all in form C, with combining class 0 and never the second half
 * of a composition; the same for all forms. Not complete, and need not be. */
static const code_range inert_everywhere[] = {
    {0x00, 0x9F},
    {0x0410, 0x0418},
    {0x4E00, 0x9FFF},
    {0x20000, 0x2A6DF},
};
static const code_range inert[] = {
    {0x0000, 0x02FF}, {0x0400, 0x0482}, {0x048A, 0x052F},   {0x05D0, 0x05EA},   {0x0621, 0x064A},
    {0x0E01, 0x0E37}, {0x2010, 0x2027}, {0x2030, 0x205E},   {0x2190, 0x2328},   {0x2500, 0x2ADB},
    {0x2E80, 0x2FD5}, {0x3000, 0x3029}, {0x3030, 0x3098},   {0x309B, 0x9FFF},   {0xAC00, 0xD7A3},
    {0xE000, 0xF8FF}, {0xFF01, 0xFFEF}, {0x1F000, 0x1FAFF}, {0x20000, 0x2A6DF},
};

/* Combining (class not 0) or part of a composition, but only since Unicode 10 or later; whole
 * blocks where that is shorter. And U+11A7, just before the Hangul trailing consonants, which
 * utf8proc 2.8 takes for one of them. */
static const code_range plain_starters[] = {
    {0x07FD, 0x07FD},   {0x0897, 0x089F},   {0x08CA, 0x08D3},   {0x09FE, 0x09FE},
    {0x0C3C, 0x0C3C},   {0x0D3B, 0x0D3C},   {0x0EBA, 0x0EBA},   {0x0ECE, 0x0ECE},
    {0x11A7, 0x11A7},   {0x1715, 0x1715},   {0x1ABF, 0x1AFF},   {0x1DF6, 0x1DFA},
    {0xA82C, 0xA82C},   {0x10D24, 0x10D27}, {0x10D69, 0x10D6D}, {0x10EAB, 0x10EAC},
    {0x10EFA, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070},
    {0x1133B, 0x1133B}, {0x11380, 0x113E2}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
    {0x11930, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47},
    {0x11A99, 0x11A99}, {0x11B60, 0x11B67}, {0x11D42, 0x11D45}, {0x11D97, 0x11D97},
    {0x11F00, 0x11F5A}, {0x13440, 0x13455}, {0x16100, 0x16139}, {0x16D40, 0x16D79},
    {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE},
    {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}, {0x1E5EE, 0x1E5EF}, {0x1E6E3, 0x1E6F5},
};

static bool in_ranges(const code_range *ranges, size_t n, uint32_t code)
{
    size_t low = 0;
    while (low < n) {
        size_t mid = low + (n - low) / 2;
        if (code > ranges[mid].last) {
            low = mid + 1;
        } else if (code < ranges[mid].first) {
            n = mid;
        } else {
            return true;
        }
    }
    return false;
}

static bool is_inert(const normalize_work *w, uint32_t code)
{
    return w->composes && !w->is_compat
               ? code < 0x300 || in_ranges(inert, sizeof inert / sizeof inert[0], code)
               : in_ranges(inert_everywhere, sizeof inert_everywhere / sizeof inert_everywhere[0],
                           code);
}

static bool is_plain_starter(uint32_t code)
{
    return in_ranges(plain_starters, sizeof plain_starters / sizeof plain_starters[0], code);
}

void normalize_init(normalize_work *w)
{
    *w = (normalize_work){0};
    buf_init(&w->text, SIZE_MAX / 2);
}

void normalize_fini(normalize_work *w)
{
    buf_fini(&w->text);
    mem_free(w->codes);
    mem_free(w->marks);
}

static smoe_status reserve_codes(normalize_work *w, size_t n, smoe_err *err)
{
    if (n <= w->cap) {
        return SMOE_OK;
    }
    size_t cap = n < 256 ? 256 : n + n / 2;
    int32_t *codes = mem_realloc(w->codes, cap * sizeof *codes);
    if (!codes) {
        return err_nomem(err, "normalised text", cap * sizeof *codes);
    }
    w->codes = codes;
    int32_t *marks = mem_realloc(w->marks, cap * sizeof *marks);
    if (!marks) {
        return err_nomem(err, "normalised text", cap * sizeof *marks);
    }
    w->marks = marks;
    w->cap = cap;
    return SMOE_OK;
}

/* Stable order by combining class within each run of marks, by counting, so that a megabyte of
 * marks costs no more than a megabyte of letters. */
static void order_marks(normalize_work *w, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t end = i;
        bool sorted = true;
        unsigned class = 0, previous = 0;
        while (end < n && (class = unicode_combining_class((uint32_t)w->codes[end])) != 0) {
            sorted = sorted && previous <= class;
            previous = class;
            end++;
        }
        if (!sorted) {
            size_t start[257] = {0};
            for (size_t k = i; k < end; k++) {
                start[unicode_combining_class((uint32_t)w->codes[k]) + 1]++;
            }
            for (size_t c = 1; c < 257; c++) {
                start[c] += start[c - 1];
            }
            for (size_t k = i; k < end; k++) {
                w->marks[start[unicode_combining_class((uint32_t)w->codes[k])]++] = w->codes[k];
            }
            memcpy(w->codes + i, w->marks, (end - i) * sizeof *w->codes);
        }
        i = end + 1;
    }
}

/* Composes the n code points in w->codes and appends them to w->text. */
static smoe_status flush(normalize_work *w, size_t n, smoe_err *err)
{
    order_marks(w, n);
    n = w->composes ? unicode_compose(w->codes, n) : n;
    TRY(buf_reserve(&w->text, 4 * n, err));
    for (size_t i = 0; i < n; i++) {
        char utf8[4];
        TRY(buf_append(&w->text, utf8, utf8_put((uint32_t)w->codes[i], utf8), err));
    }
    return SMOE_OK;
}

static smoe_status normalize_segment(normalize_work *w, slice segment, smoe_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < segment.len;) {
        uint32_t code;
        size_t n_bytes = utf8_get(segment.data + i, &code);
        if (is_plain_starter(code)) {
            TRY(flush(w, n, err));
            TRY(buf_append(&w->text, segment.data + i, n_bytes, err));
            n = 0;
        } else {
            TRY(reserve_codes(w, n + UNICODE_MAX_DECOMPOSED, err));
            bool compat = w->is_compat && !unicode_has_no_compat(code);
            n += unicode_decompose(code, compat, w->codes + n);
        }
        i += n_bytes;
    }
    return flush(w, n, err);
}

smoe_status normalize_text(normalize_work *w, enum normal_form form, slice text, slice *out,
                           smoe_err *err)
{
    size_t done = 0, base = 0; /* text before done is in w->text; base: the last inert character */
    w->composes = form == NORMAL_NFC || form == NORMAL_NFKC;
    w->is_compat = form == NORMAL_NFKC || form == NORMAL_NFKD;
    buf_clear(&w->text);
    for (size_t i = 0; i < text.len;) {
        uint32_t code;
        size_t n_bytes = utf8_get(text.data + i, &code);
        if (n_bytes == 1) {
            i = utf8_skip_ascii(text, i);
            base = i - 1;
            continue;
        }
        if (is_inert(w, code)) {
            base = i;
            i += n_bytes;
            continue;
        }
        size_t end = i;
        do {
            end += n_bytes;
            n_bytes = end < text.len ? utf8_get(text.data + end, &code) : 0;
        } while (n_bytes && !is_inert(w, code));
        base = base < done ? done : base;
        TRY(buf_append(&w->text, text.data + done, base - done, err));
        TRY(normalize_segment(w, slice_of(text.data + base, end - base), err));
        done = base = i = end;
    }
    if (done == 0) {
        *out = text;
        return SMOE_OK;
    }
    TRY(buf_append(&w->text, text.data + done, text.len - done, err));
    *out = buf_slice(&w->text);
    return SMOE_OK;
}
