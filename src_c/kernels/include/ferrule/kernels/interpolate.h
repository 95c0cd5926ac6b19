/* SPDX-License-Identifier: Apache-2.0 */
/* Linear interpolation of functions of int16; internal to the kernels. */
#ifndef FERRULE_KERNELS_INTERPOLATE_H
#define FERRULE_KERNELS_INTERPOLATE_H

#include <stdint.h>

/* Binary logarithm of the positions from an entry to the next. */
#define FERRULE_INTERPOLATE_BITS 7

/* The function of a table of 513 values at -32768 <= position <= 32767, as int16. */
static inline int32_t ferrule_interpolate(const int16_t *table, int32_t position)
{
    const int16_t *entry = &table[(position + 32768) >> 7];
    int32_t slope = entry[1] - entry[0];

    return entry[0] + ((slope * (position & 0x7f) + 64) >> 7);
}

#endif
