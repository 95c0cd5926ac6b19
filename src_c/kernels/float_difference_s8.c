/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"
#include "ferrule/kernels/round_even.h"

#define FERRULE_KERNEL ferrule_float_difference_s8
#define FERRULE_INPUTS 2
#define FERRULE_PARAMS ferrule_float_difference_params
#define FERRULE_FIRST  int8_t
#define FERRULE_SECOND int8_t
#define FERRULE_OUTPUT int8_t
#define FERRULE_LOCALS                                                                             \
    const float first_scale = params->first_scale;                                                 \
    const float second_scale = params->second_scale;                                               \
    const int32_t first_zero_point = params->first_zero_point;                                     \
    const int32_t second_zero_point = params->second_zero_point;                                   \
    const int32_t zero_point = params->zero_point;                                                 \
    const float low = (float)(params->low - zero_point);                                           \
    const float high = (float)(params->high - zero_point);
#define FERRULE_RESULT(x, y)                                                                       \
    (int8_t)(ferrule_round_even(((float)((x) - first_zero_point) * first_scale -                   \
                                 (float)((y) - second_zero_point) * second_scale) /                \
                                    params->scale,                                                 \
                                low, high) +                                                       \
             zero_point)
#include "ferrule/kernels/elementwise.inc.h"
