/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdint.h>

#include "ferrule/kernels/mve.h"

#define FERRULE_KERNEL  ferrule_copy_8
#define FERRULE_ELEMENT uint8_t
#if FERRULE_HAS_MVE
#define FERRULE_VECTORS copy_vectors

/* Eight elements at a time, if their distances fit into 16 bits without sign. */
static inline bool copy_vectors(const uint8_t *from, uint8_t *to, int32_t extent,
                                int32_t input_stride, int32_t output_stride)
{
    const int32_t most = UINT16_MAX / 7;

    if (input_stride < 0 || input_stride > most || output_stride < 0 || output_stride > most) {
        return false;
    }
    __asm__ volatile(
        "mov r12, #0\n\t"
        "vidup.u16 q0, r12, #1\n\t"
        "vmul.i16 q1, q0, %[output_stride]\n\t"
        "vmul.i16 q0, q0, %[input_stride]\n\t"
        "wlstp.16 lr, %[extent], 2f\n\t"
        "1:\n\t"
        "vldrb.u16 q2, [%[from], q0]\n\t"
        "vstrb.16 q2, [%[to], q1]\n\t"
        "add %[from], %[from], %[input_stride], lsl #3\n\t"
        "add %[to], %[to], %[output_stride], lsl #3\n\t"
        "letp lr, 1b\n\t"
        "2:\n\t"
        : [from] "+r"(from), [to] "+r"(to)
        : [extent] "r"(extent), [input_stride] "r"(input_stride), [output_stride] "r"(output_stride)
        : "r12", "lr", "q0", "q1", "q2", "memory");
    return true;
}
#endif
#include "ferrule/kernels/copy.inc.h"
