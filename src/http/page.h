/* page.h: the page at "/", made by page/embed.py from the files in page/. */
#ifndef HTTP_PAGE_H
#define HTTP_PAGE_H

#include <stddef.h>

extern const unsigned char page_html[];
extern const size_t page_html_bytes;
extern const char page_policy[]; /* its Content-Security-Policy */

#endif
