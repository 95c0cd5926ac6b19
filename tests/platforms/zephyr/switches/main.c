/* SPDX-License-Identifier: Apache-2.0 */
/* Five threads of Zephyr share the model, a mutex and a semaphore. The kernel reports each
 * switch, and the trace is printed at the end. Threads wake at given times and the trace counts
 * in slots, so it does not depend on the speed of execution. */
#include <stdbool.h>
#include <stdint.h>

#include <tracing_user.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include "ferrule/link.h"
#include "ferrule/status.h"
#include "ferrule_dense_link.h"

#define ROUNDS   3
#define SLOT_MS  40 /* longer than a busy host oversleeps */
#define ROUND    10 /* slots; the first round begins after one such length */
#define STACK    2048
#define SWITCHES 256

static K_MUTEX_DEFINE(model_lock);
static K_SEM_DEFINE(ready, 0, 1);

static struct {
    k_tid_t thread;
    uint32_t slot;
} trace[SWITCHES];
static uint32_t length;
static bool silent;
static int failures;

void sys_trace_thread_switched_in_user(void)
{
    if (!silent && length < SWITCHES) {
        trace[length].thread = k_current_get();
        trace[length].slot = (uint32_t)(k_uptime_get() / SLOT_MS);
        length++;
    }
}

static void expect(int32_t status)
{
    failures += status != 0 ? 1 : 0;
}

/* Return the time at the given tenth of a slot within a round. */
static int64_t at(int round, int tenths)
{
    return SLOT_MS * ROUND * (round + 1) + SLOT_MS * tenths / 10;
}

static void spin_until(int64_t time)
{
    while (k_uptime_get() < time) {
    }
}

/* Run the model with the mutex held, and keep the mutex until the given time. */
static void infer(int64_t until)
{
    struct ferrule_run_info info = {.failed_operator = FERRULE_NO_OPERATOR};

    expect(k_mutex_lock(&model_lock, K_FOREVER));
    expect(ferrule_dense_link_model.run(&info));
    spin_until(until);
    expect(k_mutex_unlock(&model_lock));
}

static void high(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        k_sleep(K_TIMEOUT_ABS_MS(at(round, 10)));
        infer(0); /* low holds the mutex, and inherits this priority until it unlocks it */
        expect(k_sem_take(&ready, K_FOREVER));
    }
}

static void middle(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        k_sleep(K_TIMEOUT_ABS_MS(at(round, 20)));
        infer(at(round, 40));
        k_sem_give(&ready);
    }
}

/* Keep spinning while twin, which has the same priority, wakes. */
static void low(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        k_sleep(K_TIMEOUT_ABS_MS(at(round, 0)));
        infer(at(round, 30));
        spin_until(at(round, 70));
    }
}

static void twin(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        k_sleep(K_TIMEOUT_ABS_MS(at(round, 50)));
        spin_until(at(round, 70));
    }
}

static K_THREAD_STACK_ARRAY_DEFINE(stacks, 4, STACK);
static struct k_thread threads[4];

static void enter(void *function, void *second, void *third)
{
    ARG_UNUSED(second);
    ARG_UNUSED(third);
    ((void (*)(void))function)();
}

static void start(int number, const char *name, void (*function)(void), int priority)
{
    k_tid_t thread =
        k_thread_create(&threads[number], stacks[number], K_THREAD_STACK_SIZEOF(stacks[number]),
                        enter, (void *)function, NULL, NULL, priority, 0, K_FOREVER);

    expect(k_thread_name_set(thread, name));
    k_thread_start(thread);
}

int main(void)
{
    k_thread_priority_set(k_current_get(), K_PRIO_PREEMPT(10));
    start(0, "high", high, K_PRIO_PREEMPT(1));
    start(1, "middle", middle, K_PRIO_PREEMPT(2));
    start(2, "low", low, K_PRIO_PREEMPT(3));
    start(3, "twin", twin, K_PRIO_PREEMPT(3));
    k_sleep(K_TIMEOUT_ABS_MS(at(ROUNDS, 0)));
    silent = true;
    for (uint32_t i = 0; i < length; i++) {
        printk("%u %s\n", (unsigned int)trace[i].slot, k_thread_name_get(trace[i].thread));
    }
    printk("failures %d\n", failures);
    return 0;
}
