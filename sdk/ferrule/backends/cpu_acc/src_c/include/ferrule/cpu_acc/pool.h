/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file A pool of helper threads for one divided piece of work at a time.
 */
#ifndef FERRULE_CPU_ACC_POOL_H_INCLUDED
#define FERRULE_CPU_ACC_POOL_H_INCLUDED

#include <stdint.h>

struct ferrule_pool;

/** @brief Start `threads` - 1 helpers, or fewer, even none; NULL if memory is exhausted. */
struct ferrule_pool *ferrule_pool_create(int32_t threads);

/** @brief Stop the helpers and free the pool. No thread may be in ferrule_pool_run. */
void ferrule_pool_destroy(struct ferrule_pool *pool);

/**
 * @brief Call work(context, i) for each i below `pieces`, in any order and on any thread, and
 * return when all calls have returned. One caller at a time.
 *
 * The caller does all pieces that no helper has begun, so the work completes even if there are no
 * helpers (after a fork).
 */
void ferrule_pool_run(struct ferrule_pool *pool, void (*work)(void *context, int32_t piece),
                      void *context, int32_t pieces);

#endif
