/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads, each with its own model; main prints the results. Replaces main.c of the first
 * model's project. */
#include "ferrule_second.c" /* first: it has static names that are common */
#include "ferrule_second_weights.c"

#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include "ferrule/platform/zephyr.h"
#include "ferrule_first_devices.h"

#define WORK() (void)k_msleep(1)
#include "two_models.h"

#define STACK 3072

static K_THREAD_STACK_ARRAY_DEFINE(stacks, 2, STACK);
static struct k_thread threads[2];

static void work(void *number, void *second, void *third)
{
    ARG_UNUSED(second);
    ARG_UNUSED(third);
    run_often((uint32_t)(uintptr_t)number, &ferrule_first_default_devices);
}

static void start(uintptr_t number)
{
    k_thread_create(&threads[number], stacks[number], K_THREAD_STACK_SIZEOF(stacks[number]), work,
                    (void *)number, NULL, NULL, K_PRIO_PREEMPT(5), 0, K_NO_WAIT);
}

int main(void)
{
    told.failures += ferrule_first_devices_start() != FERRULE_OK ? 1 : 0;
    interrupt_driver(ferrule_first_default_devices.npu0);
    interrupt_driver(ferrule_first_default_devices.npu1);
    start(0);
    start(1);
    (void)k_thread_join(&threads[0], K_FOREVER);
    (void)k_thread_join(&threads[1], K_FOREVER);
    printk("told: %d %d %d %d %d.\n", (int)told.runs, (int)told.timeouts, (int)told.failures,
           (int)told.wrong, (int)told.meetings);
    return 0;
}
