/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance program on RTX5, or another kernel with CMSIS-RTOS2. */
#include "ferrule/conformance.h"

#include "cmsis_os2.h"
#include "rtx_os.h"

#define STACK_BYTES 2048u

#ifndef OS_TICK_FREQ
#define OS_TICK_FREQ 1000
#endif

const char conformance_kernel[] = osRtxKernelId;
const uint32_t conformance_tick_hz = OS_TICK_FREQ;
uint32_t SystemCoreClock = 25000000;

static uint64_t stacks[CONFORMANCE_THREADS][STACK_BYTES / sizeof(uint64_t)];
static osRtxThread_t threads[CONFORMANCE_THREADS];
static conformance_body bodies[CONFORMANCE_THREADS];

int32_t conformance_bind(ferrule_device_t *dev, const struct ferrule_driver *driver, void *context)
{
    return ferrule_device_bind(dev, driver, context);
}

static void run(void *number)
{
    const uint32_t thread = (uint32_t)(uintptr_t)number;

    bodies[thread](thread);
    osThreadExit();
}

void conformance_spawn(uint32_t thread, conformance_body body, uint32_t priority)
{
    static const osPriority_t priorities[] = {osPriorityIdle,        osPriorityLow,
                                              osPriorityBelowNormal, osPriorityNormal,
                                              osPriorityAboveNormal, osPriorityHigh};
    const osThreadAttr_t attributes = {.cb_mem = &threads[thread],
                                       .cb_size = sizeof threads[thread],
                                       .stack_mem = stacks[thread],
                                       .stack_size = STACK_BYTES,
                                       .priority = priorities[priority]};

    bodies[thread] = body;
    (void)osThreadNew(run, (void *)(uintptr_t)thread, &attributes);
}

void conformance_sleep(uint32_t ms)
{
    (void)osDelay((ms * OS_TICK_FREQ + 999u) / 1000u);
}

int main(void)
{
    (void)osKernelInitialize();
    conformance_before_the_kernel();
    conformance_spawn(CONFORMANCE_JUDGE, conformance_judge, CONFORMANCE_JUDGE_PRIORITY);
    return (int)osKernelStart();
}
