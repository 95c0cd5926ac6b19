/* SPDX-License-Identifier: Apache-2.0 */
/* Code shared by the requantising kernels; internal to them. */
#ifndef FERRULE_KERNELS_REQUANTIZE_ELEMENT_H
#define FERRULE_KERNELS_REQUANTIZE_ELEMENT_H

#include "ferrule/kernels/quantize.h"
#include "ferrule/kernels/requantize.h"

/* The value on the output's scale and zero point, modulo 2^32. */
static inline int32_t ferrule_requantize_element(const struct ferrule_requantize_params *params,
                                                 int32_t value)
{
    int32_t centred = (int32_t)((uint32_t)value - (uint32_t)params->input_zero_point);
    int32_t scaled = ferrule_requantize(centred, params->multiplier, params->shift);

    return ferrule_add_wrap(scaled, params->output_zero_point);
}

#endif
