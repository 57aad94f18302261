/* fuzz_wire.c: request lines, and the reply stream in pieces of every size. */
#include "fuzz.h"

#include <stdlib.h>

#include "protocol/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    smoe_err err;
    slice all = slice_of(data, size);
    wire_request request;
    wire_request_init(&request);
    if (wire_parse_request(all, &request, &err) == SMOE_OK && request.verb == WIRE_GEN &&
        (request.max_tokens == 0 || request.n_ids == 0 || request.top_k > WIRE_TOP_K_MAX)) {
        abort(); /* accepted what the grammar does not have */
    }
    wire_is_cancel(all);
    wire_request_fini(&request);

    size_t piece = size ? 1 + data[0] % 16 : 1;
    wire_reader reader;
    wire_reader_init(&reader);
    for (size_t at = 0; at < size; at += piece) {
        slice bytes = slice_of(data + at, size - at < piece ? size - at : piece);
        bool got = true;
        while (got) {
            smoe_reply reply;
            if (wire_reader_next(&reader, &bytes, &got, &reply, &err) != SMOE_OK) {
                return 0;
            }
        }
        if (bytes.len != 0) {
            abort(); /* bytes left behind */
        }
    }
    return 0;
}
