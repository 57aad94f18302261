/* template_builtins.h: the filters, tests and functions that a template may name. Their tables live
 * with their code; the parser asks here whether a name exists. */
#ifndef TOKENIZER_TEMPLATE_BUILTINS_H
#define TOKENIZER_TEMPLATE_BUILTINS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum { TEMPLATE_MAX_KW = 64 };

/* An index into the table, or -1. */
int template_filter_find(slice name);
int template_test_find(slice name);
int template_function_find(slice name);

/* Filters that take the name of another filter or of a test: the position of that argument and
 * which of the two it names; -1 for all others. */
int template_filter_inner(uint32_t filter, bool *is_filter);

#endif
