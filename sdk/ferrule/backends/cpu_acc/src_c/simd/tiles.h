/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file AMX beside AVX-512: products of tiles of up to 16 output pixels and blocks of 16 output
 * channels, 64 int8 elements deep. Image and weights have the layout of AVX-512.
 */
#ifndef FERRULE_CPU_ACC_SIMD_TILES_H_INCLUDED
#define FERRULE_CPU_ACC_SIMD_TILES_H_INCLUDED

#include "avx512.h"

#define FERRULE_TILE_TARGET                                                                        \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,amx-tile,amx-int8")))

#define MULTIPLY_TILES multiply_tiles

enum {
    TILE_PIXELS = 16,
    TILE_WORDS = 16, /* of a run of elements */
    TILE_ROW_BYTES = 64,
};

/* The operand of LDTILECFG (Intel SDM, volume 1, 18.3). */
struct ferrule_tile_shapes {
    uint8_t palette;
    uint8_t start_row;
    uint8_t reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/** Set the shapes for so many pixels: 0 to 3 sums, 4 data, 5 weights, 6 and 7 of the last words. */
FERRULE_TILE_TARGET static inline void set_tiles(int32_t pixels, int32_t last_words)
{
    struct ferrule_tile_shapes shapes = {.palette = 1};

    for (int32_t i = 0; i < 8; ++i) {
        shapes.row_bytes[i] = TILE_ROW_BYTES;
        shapes.rows[i] = (uint8_t)pixels;
    }
    shapes.rows[5] = TILE_WORDS;
    shapes.rows[7] = (uint8_t)(last_words > 0 ? last_words : 1);
    shapes.row_bytes[6] = (uint16_t)(4 * shapes.rows[7]);
    _tile_loadconfig(&shapes);
}

/** Store the sums of `blocks` blocks of channels at `pixels` pixels, by block. */
FERRULE_TILE_TARGET static inline void
multiply_tiles(const struct ferrule_host_conv2d_s8_params *params, const element *image,
               const int8_t *weights, const int32_t *scales, int32_t pixels, int32_t blocks,
               vector *finished)
{
    int32_t step = blocks * TILE_ROW_BYTES;
    int32_t scale_step = 4 * LANES;

    _tile_loadd(0, scales, 0);
    if (blocks > 1) {
        _tile_loadd(1, scales + scale_step, 0);
    }
    if (blocks > 2) {
        _tile_loadd(2, scales + 2 * scale_step, 0);
        _tile_loadd(3, scales + 3 * scale_step, 0);
    }
#define FERRULE_MULTIPLY(data, factors)                                                            \
    _tile_loadd(data, run, params->column_step);                                                   \
    _tile_loadd(factors, weights, step);                                                           \
    _tile_dpbusd(0, data, factors);                                                                \
    if (blocks > 1) {                                                                              \
        _tile_loadd(factors, weights + TILE_ROW_BYTES, step);                                      \
        _tile_dpbusd(1, data, factors);                                                            \
    }                                                                                              \
    if (blocks > 2) {                                                                              \
        _tile_loadd(factors, weights + 2 * TILE_ROW_BYTES, step);                                  \
        _tile_dpbusd(2, data, factors);                                                            \
        _tile_loadd(factors, weights + 3 * TILE_ROW_BYTES, step);                                  \
        _tile_dpbusd(3, data, factors);                                                            \
    }
    for (int32_t s = 0; s < params->segments; ++s) {
        const element *run = image + params->offsets[s];
        int32_t words = params->words;

        for (; words >= TILE_WORDS; words -= TILE_WORDS) {
            FERRULE_MULTIPLY(4, 5)
            weights += TILE_WORDS * step;
            run += TILE_WORDS * WORD_ELEMENTS;
        }
        if (words > 0) {
            FERRULE_MULTIPLY(6, 7)
            weights += words * step;
        }
    }
#undef FERRULE_MULTIPLY
    _tile_stored(0, finished, TILE_ROW_BYTES);
    if (blocks > 1) {
        _tile_stored(1, finished + pixels, TILE_ROW_BYTES);
    }
    if (blocks > 2) {
        _tile_stored(2, finished + 2 * pixels, TILE_ROW_BYTES);
        _tile_stored(3, finished + 3 * pixels, TILE_ROW_BYTES);
    }
}

#endif
