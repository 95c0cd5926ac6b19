/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Limits of results that were stored without them. Any context; the functions keep no state.
 */
#ifndef FERRULE_KERNELS_FLOAT_LIMITS_H_INCLUDED
#define FERRULE_KERNELS_FLOAT_LIMITS_H_INCLUDED

#include <stdint.h>

/** Assembler that raises s<x> to s<y> if it is smaller; NaN stay (`FERRULE_LANE`). */
#define FERRULE_RAISED_LANE(x, y)                                                                  \
    "vcmp.f32 s" #x ", s" #y "\n\t"                                                                \
    "vmrs apsr_nzcv, fpscr\n\t"                                                                    \
    "it mi\n\t"                                                                                    \
    "vmovmi.f32 s" #x ", s" #y "\n\t"
/** The same with q<x> and q<y> (`FERRULE_VECTOR`). */
#define FERRULE_RAISED_VECTOR(x, y)                                                                \
    "vpt.f32 gt, q" #y ", q" #x "\n\t"                                                             \
    "vorrt q" #x ", q" #y ", q" #y "\n\t"

/**
 * @brief Clamp results, as `ferrule_clamp_f32` does.
 *
 * `total` is finite only if all of them are. For cores with an FPU.
 */
void ferrule_limit_f32(float *values, int32_t count, float low, float high, float total);

#endif
