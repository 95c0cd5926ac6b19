/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The assembler of `ferrule/kernels/float_pixels.h`; internal to the kernels.
 *
 * Pairs take two pixels at a time and leave an odd last one, singles take one.
 */
#ifndef FERRULE_KERNELS_FLOAT_BLOCKS_H_INCLUDED
#define FERRULE_KERNELS_FLOAT_BLOCKS_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#include "ferrule/kernels/float_pixels.h"

/* Offsets in struct ferrule_float_pixels, for the assembler below. */
#define IMAGE          "#0"
#define IMAGE_STEP     "#4"
#define OUTPUT         "#8"
#define OUTPUT_STEP    "#12"
#define PIXELS         "#16"
#define STREAM         "#20"
#define BLOCKS         "#24"
#define LAST           "#28"
#define ROWS           "#32"
#define RUNS           "#36"
#define COUNT          "#40"
#define RUN_STEP       "#44"
#define ROW_STEP       "#48"
#define WEIGHTS_BESIDE "#52"
#define WEIGHTS_BEHIND "#56"
#define WEIGHTS_BEFORE "#60"
#define LOW            "#64"
#define HIGH           "#68"
#define LIMITS         "#72"

/* Instructions for the second pixel. */
#define SECOND_1(instructions)
#define SECOND_2(instructions) instructions

#if FERRULE_HAS_VFP

_Static_assert(offsetof(struct ferrule_float_pixels, pixels) == 16, "used in the assembler below");
_Static_assert(offsetof(struct ferrule_float_pixels, rows) == 32, "used in the assembler below");
_Static_assert(offsetof(struct ferrule_float_pixels, row_step) == 48,
               "used in the assembler below");
_Static_assert(offsetof(struct ferrule_float_pixels, limits) == 72, "used in the assembler below");

void ferrule_float_pairs_8(const struct ferrule_float_pixels *pixels);
void ferrule_float_singles_8(const struct ferrule_float_pixels *pixels);
void ferrule_float_pairs_4(const struct ferrule_float_pixels *pixels);
void ferrule_float_singles_4(const struct ferrule_float_pixels *pixels);

/** @brief The same for channels that have their own weights. */
void ferrule_float_pairs_of_channels(const struct ferrule_float_pixels *pixels);
void ferrule_float_single_channels(const struct ferrule_float_pixels *pixels);

#endif

#if FERRULE_HAS_MVE_FLOAT

/** @brief The same with vectors; return the pixels left, of which the first ones, unless it is an
 * odd last one, had numbers that are too small. */
int32_t ferrule_float_vector_pairs_8(const struct ferrule_float_pixels *pixels);
int32_t ferrule_float_vector_singles_8(const struct ferrule_float_pixels *pixels);
int32_t ferrule_float_vector_pairs_4(const struct ferrule_float_pixels *pixels);
int32_t ferrule_float_vector_singles_4(const struct ferrule_float_pixels *pixels);
int32_t ferrule_float_vector_pairs_of_channels(const struct ferrule_float_pixels *pixels);
int32_t ferrule_float_vector_single_channels(const struct ferrule_float_pixels *pixels);

#endif

#endif
