/* SPDX-License-Identifier: Apache-2.0 */
/** @file The functions of Arm's Ethos-U core driver that Ferrule's shims call and provide, declared
 * as that driver's header does. */
#ifndef ETHOSU_STAND_IN_H
#define ETHOSU_STAND_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ethosu_job_state {
    ETHOSU_JOB_IDLE = 0,
    ETHOSU_JOB_RUNNING,
    ETHOSU_JOB_DONE,
};

enum ethosu_job_result {
    ETHOSU_JOB_RESULT_OK = 0,
    ETHOSU_JOB_RESULT_TIMEOUT,
    ETHOSU_JOB_RESULT_ERROR,
};

struct ethosu_job {
    volatile enum ethosu_job_state state;
    volatile enum ethosu_job_result result;
    const uint64_t *bases;
    const size_t *sizes;
    int count;
};

struct ethosu_driver {
    uintptr_t base;
    uint32_t protection;
    struct ethosu_job job;
    void *semaphore;
    uint32_t power_request_counter;
};

int ethosu_init(struct ethosu_driver *drv, void *base, const void *fast, size_t fast_bytes,
                uint32_t secure, uint32_t privileged);
void ethosu_deinit(struct ethosu_driver *drv);
int ethosu_soft_reset(struct ethosu_driver *drv);
int ethosu_invoke_async(struct ethosu_driver *drv, const void *data, int bytes, uint64_t *bases,
                        const size_t *sizes, int count, void *user);
int ethosu_wait(struct ethosu_driver *drv, bool block);
void ethosu_irq_handler(struct ethosu_driver *drv);

void ethosu_flush_dcache(const uint64_t *bases, const size_t *sizes, int count);
void ethosu_invalidate_dcache(const uint64_t *bases, const size_t *sizes, int count);
void *ethosu_mutex_create(void);
void ethosu_mutex_destroy(void *mutex);
int ethosu_mutex_lock(void *mutex);
int ethosu_mutex_unlock(void *mutex);
void *ethosu_semaphore_create(void);
void ethosu_semaphore_destroy(void *sem);
int ethosu_semaphore_take(void *sem, uint64_t timeout);
int ethosu_semaphore_give(void *sem);

#endif /* ETHOSU_STAND_IN_H */
