/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/cpu_acc/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* Polls of the state before a thread sleeps or yields the processor; about 20 microseconds. */
enum { SPINS = 2000 };

struct ferrule_pool {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;
    pid_t owner; /* helpers exist in this process only, not in its forks */
    int32_t helpers;
    pthread_t *threads;

    /* The current work; written under the lock. */
    void (*work)(void *context, int32_t piece);
    void *context;
    int32_t pieces;

    /* The number of the work in the high half, the index of the next piece in the low half. A
     * helper that wakes late therefore cannot take a piece of newer work. */
    atomic_uint_fast64_t next;
    atomic_int_fast32_t done;
};

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Do pieces of the work with this number until no piece is left. */
static void take_pieces(struct ferrule_pool *pool, void (*work)(void *context, int32_t piece),
                        void *context, int32_t pieces, uint64_t number)
{
    uint_fast64_t next = atomic_load(&pool->next);

    while (next >> 32 == number && (int32_t)(next & UINT32_MAX) < pieces) {
        if (atomic_compare_exchange_weak(&pool->next, &next, next + 1)) {
            work(context, (int32_t)(next & UINT32_MAX));
            (void)atomic_fetch_add(&pool->done, 1);
            next = atomic_load(&pool->next);
        }
    }
}

static void *help(void *argument)
{
    struct ferrule_pool *pool = argument;
    uint64_t seen = 0;

    for (;;) {
        void (*work)(void *context, int32_t piece);
        void *context;
        int32_t pieces;

        for (int32_t spin = 0; spin < SPINS && atomic_load(&pool->next) >> 32 == seen; ++spin) {
            pause_briefly();
        }
        (void)pthread_mutex_lock(&pool->lock);
        while (!pool->stop && atomic_load(&pool->next) >> 32 == seen) {
            (void)pthread_cond_wait(&pool->wake, &pool->lock);
        }
        if (pool->stop) {
            (void)pthread_mutex_unlock(&pool->lock);
            return NULL;
        }
        seen = atomic_load(&pool->next) >> 32;
        work = pool->work;
        context = pool->context;
        pieces = pool->pieces;
        (void)pthread_mutex_unlock(&pool->lock);
        take_pieces(pool, work, context, pieces, seen);
    }
}

struct ferrule_pool *ferrule_pool_create(int32_t threads)
{
    struct ferrule_pool *pool = calloc(1, sizeof(*pool));
    int32_t helpers = threads > 1 ? threads - 1 : 0;

    if (pool == NULL) {
        return NULL;
    }
    pool->threads = calloc((size_t)helpers + 1, sizeof(*pool->threads));
    if (pool->threads == NULL) {
        free(pool);
        return NULL;
    }
    pool->owner = getpid();
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->wake, NULL);
    while (pool->helpers < helpers &&
           pthread_create(&pool->threads[pool->helpers], NULL, help, pool) == 0) {
        ++pool->helpers;
    }
    return pool;
}

void ferrule_pool_destroy(struct ferrule_pool *pool)
{
    if (pool->owner != getpid()) {
        return; /* a fork: the helpers are gone, so the pool cannot be freed */
    }
    (void)pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    (void)pthread_cond_broadcast(&pool->wake);
    (void)pthread_mutex_unlock(&pool->lock);
    for (int32_t i = 0; i < pool->helpers; ++i) {
        (void)pthread_join(pool->threads[i], NULL);
    }
    (void)pthread_cond_destroy(&pool->wake);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool->threads);
    free(pool);
}

void ferrule_pool_run(struct ferrule_pool *pool, void (*work)(void *context, int32_t piece),
                      void *context, int32_t pieces)
{
    uint64_t number;

    if (pool->owner != getpid()) { /* a fork: helpers may have held the lock, or waited for it */
        for (int32_t piece = 0; piece < pieces; ++piece) {
            work(context, piece);
        }
        return;
    }
    (void)pthread_mutex_lock(&pool->lock);
    pool->work = work;
    pool->context = context;
    pool->pieces = pieces;
    atomic_store(&pool->done, 0);
    number = ((atomic_load(&pool->next) >> 32) + 1) & UINT32_MAX;
    atomic_store(&pool->next, number << 32);
    (void)pthread_cond_broadcast(&pool->wake);
    (void)pthread_mutex_unlock(&pool->lock);

    take_pieces(pool, work, context, pieces, number);
    for (int32_t spin = 0; atomic_load(&pool->done) != pieces; ++spin) {
        if (spin < SPINS) {
            pause_briefly();
        } else {
            (void)sched_yield();
        }
    }
}
