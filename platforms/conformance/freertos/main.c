/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance program on FreeRTOS, version 11. */
#include "ferrule/conformance.h"

#include "FreeRTOS.h"
#include "task.h"

#define STACK_WORDS 512

const char conformance_kernel[] = "FreeRTOS " tskKERNEL_VERSION_NUMBER;
const uint32_t conformance_tick_hz = configTICK_RATE_HZ;

static StaticTask_t tasks[CONFORMANCE_THREADS];
static StackType_t stacks[CONFORMANCE_THREADS][STACK_WORDS];
static conformance_body bodies[CONFORMANCE_THREADS];

int32_t conformance_bind(ferrule_device_t *dev, const struct ferrule_driver *driver, void *context)
{
    return ferrule_device_bind(dev, driver, context);
}

static void run(void *number)
{
    const uint32_t thread = (uint32_t)(uintptr_t)number;

    bodies[thread](thread);
    vTaskDelete(NULL);
}

void conformance_spawn(uint32_t thread, conformance_body body, uint32_t priority)
{
    bodies[thread] = body;
    (void)xTaskCreateStatic(run, "conformance", STACK_WORDS, (void *)(uintptr_t)thread, priority,
                            stacks[thread], &tasks[thread]);
}

void conformance_sleep(uint32_t ms)
{
    vTaskDelay((ms * configTICK_RATE_HZ + 999u) / 1000u);
}

int main(void)
{
    conformance_before_the_kernel();
    conformance_spawn(CONFORMANCE_JUDGE, conformance_judge, CONFORMANCE_JUDGE_PRIORITY);
    vTaskStartScheduler();
    return 1;
}
