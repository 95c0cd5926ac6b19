/* SPDX-License-Identifier: Apache-2.0 */
/** @file The part of Zephyr's kernel API that adapters use, for the host. */
#ifndef FERRULE_FAKE_ZEPHYR_KERNEL_H
#define FERRULE_FAKE_ZEPHYR_KERNEL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fake_kernel.h"

#include <zephyr/irq.h>
#include <zephyr/sys/util.h>

/** A tick is a microsecond, unless a test makes it longer. A time-out of n ticks ends at the end of
 * the nth tick after the present one. */
typedef struct {
    int64_t ticks; /* below -1: an absolute time */
} k_timeout_t;

extern uint32_t ferrule_fake_us_per_tick, ferrule_fake_cycles_hz;

#define CONFIG_TIMEOUT_64BIT 1
#ifndef CONFIG_SYS_CLOCK_TICKS_PER_SEC /* a program that is only compiled states a number */
#define CONFIG_SYS_CLOCK_TICKS_PER_SEC (1000000u / ferrule_fake_us_per_tick)
#endif
/** One million, unless a test sets another number. */
#define sys_clock_hw_cycles_per_sec() ((int)ferrule_fake_cycles_hz)
#define USEC_PER_SEC                  1000000U

#define K_TICKS(t)             ((k_timeout_t){.ticks = (t)})
#define K_NO_WAIT              K_TICKS(0)
#define K_FOREVER              K_TICKS(-1)
#define K_TIMEOUT_ABS_TICKS(t) K_TICKS(-2 - (int64_t)(t))
#define K_USEC(t) K_TICKS(((int64_t)(t) + ferrule_fake_us_per_tick - 1) / ferrule_fake_us_per_tick)
#define K_MSEC(t) K_USEC((int64_t)(t) * 1000)
#define K_SECONDS(s) K_MSEC((int64_t)(s) * 1000)

#define k_ticks_to_us_floor64(ticks) ((uint64_t)(ticks) * ferrule_fake_us_per_tick)
#define k_us_to_ticks_floor32(us)    ((uint32_t)(us) / ferrule_fake_us_per_tick)
#define k_us_to_cyc_ceil32(us)                                                                     \
    ((uint32_t)(((uint64_t)(us) * ferrule_fake_cycles_hz + USEC_PER_SEC - 1u) / USEC_PER_SEC))

#define K_TIMEOUT_EQ(a, b) ((a).ticks == (b).ticks)

typedef void (*k_thread_entry_t)(void *p1, void *p2, void *p3);
typedef char k_thread_stack_t;

struct k_thread {
    uint32_t fake_number;
    k_thread_entry_t fake_entry;
    void *fake_arguments[3];
};
typedef struct k_thread *k_tid_t;

#define K_PRIO_PREEMPT(x) (x)

/** The kernel's list entry of an object, in builds with object lists. */
struct k_obj_core {
    bool fake_linked;
};

#define K_OBJ_CORE(object) (&(object)->obj_core)

void k_obj_core_unlink(struct k_obj_core *obj_core);

struct k_mutex {
    struct fake_object fake_object;
    struct k_obj_core obj_core;
};

struct k_sem {
    struct fake_object fake_object;
};

#define K_MUTEX_DEFINE(name)                                                                       \
    struct k_mutex name = {                                                                        \
        .fake_object = {.self = &(name).fake_object, .kind = FAKE_RECURSIVE_MUTEX},                \
        .obj_core = {true}}
int k_mutex_init(struct k_mutex *mutex);
int k_mutex_lock(struct k_mutex *mutex, k_timeout_t timeout);
int k_mutex_unlock(struct k_mutex *mutex);

int k_sem_init(struct k_sem *sem, unsigned int initial_count, unsigned int limit);
int k_sem_take(struct k_sem *sem, k_timeout_t timeout);
void k_sem_give(struct k_sem *sem);
void k_sem_reset(struct k_sem *sem);
unsigned int k_sem_count_get(struct k_sem *sem);

k_tid_t k_thread_create(struct k_thread *new_thread, k_thread_stack_t *stack, size_t stack_size,
                        k_thread_entry_t entry, void *p1, void *p2, void *p3, int prio,
                        uint32_t options, k_timeout_t delay);
int k_thread_priority_get(k_tid_t thread);
k_tid_t k_current_get(void);
bool k_is_in_isr(void);
int32_t k_msleep(int32_t ms);
int32_t k_sleep(k_timeout_t timeout);
void k_yield(void);
int64_t k_uptime_get(void);
int64_t k_uptime_ticks(void);
uint32_t k_uptime_get_32(void);

typedef struct {
    uint64_t tick;
} k_timepoint_t;

k_timepoint_t sys_timepoint_calc(k_timeout_t timeout);
k_timeout_t sys_timepoint_timeout(k_timepoint_t timepoint);
bool sys_timepoint_expired(k_timepoint_t timepoint);

uint32_t k_cycle_get_32(void);

struct k_spinlock {
    bool fake_taken;
};

typedef struct {
    int key;
} k_spinlock_key_t;

k_spinlock_key_t k_spin_lock(struct k_spinlock *l);
void k_spin_unlock(struct k_spinlock *l, k_spinlock_key_t key);

#endif /* FERRULE_FAKE_ZEPHYR_KERNEL_H */
