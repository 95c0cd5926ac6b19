/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance program on Zephyr. */
#include <zephyr/irq.h>
#include <zephyr/kernel.h>
#if __has_include(<zephyr/version.h>)
#include <zephyr/version.h>
#else /* Zephyr 3.5 */
#include <version.h>
#endif

#include "board.h"
#include "ferrule/conformance.h"

#define STACK_BYTES  2048
#define IRQ_PRIORITY 3

const char conformance_kernel[] = "Zephyr " KERNEL_VERSION_STRING;
const uint32_t conformance_tick_hz = CONFIG_SYS_CLOCK_TICKS_PER_SEC;

static K_THREAD_STACK_ARRAY_DEFINE(stacks, CONFORMANCE_THREADS, STACK_BYTES);
static struct k_thread threads[CONFORMANCE_THREADS];
static conformance_body bodies[CONFORMANCE_THREADS];

int32_t conformance_bind(ferrule_device_t *dev, const struct ferrule_driver *driver, void *context)
{
    return ferrule_device_bind_soft(dev, driver, context);
}

static void run(void *number, void *second, void *third)
{
    const uint32_t thread = (uint32_t)(uintptr_t)number;

    ARG_UNUSED(second);
    ARG_UNUSED(third);
    bodies[thread](thread);
}

void conformance_spawn(uint32_t thread, conformance_body body, uint32_t priority)
{
    bodies[thread] = body;
    (void)k_thread_create(&threads[thread], stacks[thread], K_THREAD_STACK_SIZEOF(stacks[thread]),
                          run, (void *)(uintptr_t)thread, NULL, NULL,
                          K_PRIO_PREEMPT(10 - (int)priority), 0, K_NO_WAIT);
}

void conformance_sleep(uint32_t ms)
{
    (void)k_msleep((int32_t)ms);
}

static void handle(const void *unused)
{
    ARG_UNUSED(unused);
    board_timer_handler();
}

/* No code runs before Zephyr's kernel. */
int main(void)
{
    board_begin();
    IRQ_CONNECT(BOARD_TIMER_INTERRUPT, IRQ_PRIORITY, handle, NULL, 0);
    irq_enable(BOARD_TIMER_INTERRUPT);
    conformance_spawn(CONFORMANCE_JUDGE, conformance_judge, CONFORMANCE_JUDGE_PRIORITY);
    k_thread_priority_set(k_current_get(), K_LOWEST_APPLICATION_THREAD_PRIO);
    for (;;) { /* a core that sleeps makes QEMU's time jump too far (-icount with sleep=off) */
    }
}
