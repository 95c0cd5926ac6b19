/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/pool2d.h"
#include "ferrule/kernels/requantize.h"

static inline void pool_four(const struct ferrule_pool2d_params *params,
                             const struct ferrule_pool2d_pixels *pixels, int8_t *output)
{
    const int8_t *pixel = pixels->first;
    uint32_t largest = ferrule_load_word(pixel);

    for (int32_t i = pixels->rows; i > 0; --i) {
        for (int32_t left = pixels->width; left > 0; --left) {
            largest = ferrule_larger_bytes(largest, ferrule_load_word(pixel));
            pixel += pixels->pixel_bytes;
        }
        pixel += pixels->row_bytes;
    }
    if (params->low == INT8_MIN && params->high == INT8_MAX) {
        FERRULE_COPY_WORD(output, &largest);
        return;
    }
    for (uint32_t c = 0; c < 4u; ++c) {
        int32_t value = (int8_t)(largest >> (8u * c));
        output[c] = (int8_t)ferrule_clamp(value, params->low, params->high);
    }
}

static inline void pool_one(const struct ferrule_pool2d_params *params,
                            const struct ferrule_pool2d_pixels *pixels, int8_t *output)
{
    const int8_t *pixel = pixels->first;
    int32_t largest = INT8_MIN;

    for (int32_t i = pixels->rows; i > 0; --i) {
        for (int32_t left = pixels->width; left > 0; --left) {
            largest = *pixel > largest ? *pixel : largest;
            pixel += pixels->pixel_bytes;
        }
        pixel += pixels->row_bytes;
    }
    *output = (int8_t)ferrule_clamp(largest, params->low, params->high);
}

#define FERRULE_KERNEL ferrule_max_pool2d_words_s8
#include "ferrule/kernels/pool2d_words.inc.h"
