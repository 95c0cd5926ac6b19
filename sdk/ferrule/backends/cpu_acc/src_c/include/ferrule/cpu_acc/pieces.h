/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Division of work into pieces of about the same size.
 */
#ifndef FERRULE_CPU_ACC_PIECES_H_INCLUDED
#define FERRULE_CPU_ACC_PIECES_H_INCLUDED

#include <stddef.h>

#include "ferrule/cpu_acc/pool.h"

/** The range of one piece; `end` is exclusive. */
struct ferrule_part {
    int32_t first;
    int32_t end;
};

/** @brief Return the range of `piece` when `count` items are divided into `pieces`. */
static inline struct ferrule_part ferrule_part_of(int32_t count, int32_t piece, int32_t pieces)
{
    struct ferrule_part part = {(int32_t)((int64_t)count * piece / pieces),
                                (int32_t)((int64_t)count * (piece + 1) / pieces)};
    return part;
}

/** @brief Do all pieces, on the pool's threads too if `pool` is not NULL. */
static inline void ferrule_divide(struct ferrule_pool *pool,
                                  void (*work)(void *context, int32_t piece), void *context,
                                  int32_t pieces)
{
    if (pool != NULL && pieces > 1) {
        ferrule_pool_run(pool, work, context, pieces);
        return;
    }
    for (int32_t piece = 0; piece < pieces; ++piece) {
        work(context, piece);
    }
}

#endif
