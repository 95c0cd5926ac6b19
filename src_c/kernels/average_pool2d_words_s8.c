/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/pool2d.h"
#include "ferrule/kernels/requantize.h"

static inline int8_t mean(const struct ferrule_pool2d_params *params, int32_t sum, int32_t count)
{
    return (int8_t)ferrule_clamp(ferrule_mean(sum, count), params->low, params->high);
}

static inline void pool_four(const struct ferrule_pool2d_params *params,
                             const struct ferrule_pool2d_pixels *pixels, int8_t *output)
{
    const int8_t *pixel = pixels->first;
    int32_t rows_at_once = FERRULE_POOL2D_MOST_COLUMNS / pixels->width;
    int32_t count = pixels->width * pixels->rows;
    int32_t step = pixels->pixel_bytes;
    int32_t sums[4] = {0, 0, 0, 0};

    for (int32_t rows = pixels->rows; rows > 0; rows -= rows_at_once) {
        uint32_t even = 0; /* channels 0 and 2 */
        uint32_t odd = 0;  /* channels 1 and 3 */

        for (int32_t i = rows < rows_at_once ? rows : rows_at_once; i > 0; --i) {
            int32_t left = pixels->width;

            for (; left > 3; left -= 4) {
                for (int32_t k = 0; k < 4; ++k) {
                    uint32_t word = ferrule_load_word(pixel + k * step);

                    even = ferrule_add_even_bytes(even, word);
                    odd = ferrule_add_odd_bytes(odd, word);
                }
                pixel += 4 * step;
            }
            for (; left > 0; --left) {
                uint32_t word = ferrule_load_word(pixel);

                even = ferrule_add_even_bytes(even, word);
                odd = ferrule_add_odd_bytes(odd, word);
                pixel += step;
            }
            pixel += pixels->row_bytes;
        }
        sums[0] += (int16_t)even;
        sums[1] += (int16_t)odd;
        sums[2] += (int16_t)(even >> 16);
        sums[3] += (int16_t)(odd >> 16);
    }
    for (int32_t c = 0; c < 4; ++c) {
        output[c] = mean(params, sums[c], count);
    }
}

static inline void pool_one(const struct ferrule_pool2d_params *params,
                            const struct ferrule_pool2d_pixels *pixels, int8_t *output)
{
    const int8_t *pixel = pixels->first;
    int32_t sum = 0;

    for (int32_t i = pixels->rows; i > 0; --i) {
        for (int32_t left = pixels->width; left > 0; --left) {
            sum += *pixel;
            pixel += pixels->pixel_bytes;
        }
        pixel += pixels->row_bytes;
    }
    *output = mean(params, sum, pixels->width * pixels->rows);
}

#define FERRULE_KERNEL ferrule_average_pool2d_words_s8
#include "ferrule/kernels/pool2d_words.inc.h"
