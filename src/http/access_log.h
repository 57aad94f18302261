/* access_log.h: one line per request, with figures and never a word of what was said. */
#ifndef HTTP_ACCESS_LOG_H
#define HTTP_ACCESS_LOG_H

#include "http/exchange.h"

void access_log_write(const exchange *x);

#endif
