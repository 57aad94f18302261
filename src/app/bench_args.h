/* bench_args.h: arguments that smoe bench, its two sisters and smoe plan take. */
#ifndef APP_BENCH_ARGS_H
#define APP_BENCH_ARGS_H

#include "bench/routing.h"
#include "formats/dtype.h"

/* A type of weights by its name; NULL leaves *type as it is. SMOE_USAGE names the flag. */
smoe_status args_parse_type(const char *text, const char *flag, dtype *type, smoe_err *err);

/* "800": slots; "0.25" or "25%": a part of all records, above 0 up to 1; the other one is 0. */
smoe_status args_parse_ring(const char *text, uint32_t *n_slots, double *fraction, smoe_err *err);

/* "model" (*law NULL), "uniform" or "sticky". */
smoe_status args_parse_routing(const char *text, const routing_law **law, smoe_err *err);

#endif
