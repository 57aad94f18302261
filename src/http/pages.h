/* pages.h: what GET answers: health, models, metrics, the page. */
#ifndef HTTP_PAGES_H
#define HTTP_PAGES_H

#include "http/exchange.h"

/* Paths that need no API key. */
bool page_is_open(const char *path);
/* True: x holds the reply. False: *error says why not. */
bool page_answer(exchange *x, http_error *error);

#endif
