/* SPDX-License-Identifier: Apache-2.0 */
#include "decoding.h"

#include "architecture.h"

struct ferrule_operation ferrule_operation_of(uint32_t first, uint32_t second)
{
    struct ferrule_operation found = {.kind = FERRULE_ALU, .base = FERRULE_PLACES};
    if (first >= 0xE800u) {
        found.bytes = 4;
        ferrule_decode_wide(&found, first, second);
    } else {
        found.bytes = 2;
        ferrule_decode_narrow(&found, first);
    }
    return found;
}
