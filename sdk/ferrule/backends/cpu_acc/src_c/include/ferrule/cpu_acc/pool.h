/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Threads that help with one piece of work at a time.
 */
#ifndef FERRULE_CPU_ACC_POOL_H_INCLUDED
#define FERRULE_CPU_ACC_POOL_H_INCLUDED

#include <stdint.h>

struct ferrule_pool;

/** @brief Start threads - 1 helpers; NULL if there is no memory. Fewer may start, even none. */
struct ferrule_pool *ferrule_pool_create(int32_t threads);

/** @brief End the helpers and free the pool. Nobody may be in ferrule_pool_run. */
void ferrule_pool_destroy(struct ferrule_pool *pool);

/**
 * @brief Call work(context, i) for each i below `pieces`, in any order and by any thread, and
 * return when all have returned. One caller at a time.
 *
 * The caller does what no helper has begun, so it ends even where the helpers are gone (after
 * fork).
 */
void ferrule_pool_run(struct ferrule_pool *pool, void (*work)(void *context, int32_t piece),
                      void *context, int32_t pieces);

#endif
