/* SPDX-License-Identifier: Apache-2.0 */
/* What programs use, and adapters do not. */
#include_next <zephyr/kernel.h>

#ifndef STAND_IN_ZEPHYR_KERNEL_H
#define STAND_IN_ZEPHYR_KERNEL_H

#define K_THREAD_STACK_ARRAY_DEFINE(name, count, bytes) k_thread_stack_t name[count][bytes]
#define K_THREAD_STACK_SIZEOF(name)                     sizeof(name)
#ifndef ARG_UNUSED
#define ARG_UNUSED(name) (void)(name)
#endif

#define K_LOWEST_APPLICATION_THREAD_PRIO 14
#define K_TIMEOUT_ABS_MS(ms)             K_TICKS(-2 - (int64_t)(ms))
#define K_SEM_DEFINE(name, initial, most)                                                          \
    struct k_sem name = {                                                                          \
        .fake_object = {.kind = FAKE_SEMAPHORE, .count = (initial), .limit = (most)}}
#define K_TIMER_DEFINE(name, expires, stops) struct k_timer name = {(expires), (stops)}

struct k_timer {
    void (*expires)(struct k_timer *timer);
    void (*stops)(struct k_timer *timer);
};

void k_timer_start(struct k_timer *timer, k_timeout_t duration, k_timeout_t period);
void k_thread_priority_set(k_tid_t thread, int prio);
int k_thread_name_set(k_tid_t thread, const char *name);
const char *k_thread_name_get(k_tid_t thread);
void k_thread_start(k_tid_t thread);
int k_thread_join(struct k_thread *thread, k_timeout_t timeout);

#endif /* STAND_IN_ZEPHYR_KERNEL_H */
