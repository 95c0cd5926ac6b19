/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/lookup.h"
#include "ferrule/kernels/mve.h"

#if FERRULE_HAS_MVE
void ferrule_lookup_s8(const struct ferrule_lookup_s8_params *params, const int8_t *input,
                       int8_t *output)
{
    __asm__ volatile("wlstp.8 lr, %[elements], 2f\n\t"
                     "1:\n\t"
                     "vldrb.u8 q0, [%[input]], #16\n\t"
                     "vldrb.u8 q1, [%[table], q0]\n\t"
                     "vstrb.8 q1, [%[output]], #16\n\t"
                     "letp lr, 1b\n\t"
                     "2:\n\t"
                     : [input] "+r"(input), [output] "+r"(output)
                     : [elements] "r"(params->elements), [table] "r"(params->table)
                     : "lr", "q0", "q1", "memory");
}
#else
#define FERRULE_KERNEL ferrule_lookup_s8
#define FERRULE_PARAMS ferrule_lookup_s8_params
#define FERRULE_OUTPUT int8_t
#include "ferrule/kernels/lookup.inc.h"
#endif
