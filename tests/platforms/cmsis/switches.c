/* SPDX-License-Identifier: Apache-2.0 */
/* Five threads of RTX5 share the model, a device's lock and a semaphore. The kernel reports each
 * switch, and the trace is sent at the end. Threads wake at given ticks and the trace counts in
 * tens of ticks, so it does not depend on the speed of execution. */

#include "ferrule/device.h"
#include "ferrule/platform/cmsis.h"
#include "ferrule/platform/cmsis_port.h"
#include "ferrule/platform/cmsis_usart.h"
#include "ferrule_dense_link.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "RTE_Components.h"
#include CMSIS_device_header
#include "rtx_os.h"

#define ROUNDS      3u
#define SLOT        10u  /* ticks */
#define ROUND       100u /* ticks; the first round begins after one such length */
#define STACK_BYTES 2048u
#define TRACE_BYTES 4096u

extern ARM_DRIVER_USART Driver_USART0;
FERRULE_CMSIS_USART(console, &Driver_USART0, 115200u);

const struct ferrule_cmsis_stack ferrule_cmsis_link_stack; /* stack use is not measured */

static ferrule_device_t device;
static osSemaphoreId_t ready;
static char trace[TRACE_BYTES];
static uint32_t length;
static bool silent;
static volatile int32_t failures;

static void put(char letter)
{
    if (length < TRACE_BYTES) {
        trace[length++] = letter;
    }
}

static void say(const char *text)
{
    while (*text != '\0') {
        put(*text++);
    }
}

static void say_number(uint32_t value)
{
    if (value >= 10u) {
        say_number(value / 10u);
    }
    put((char)('0' + value % 10u));
}

static const char *name_of(const osRtxThread_t *thread)
{
    if (thread == osRtxInfo.thread.idle) {
        return "idle";
    }
    return thread->name != NULL ? thread->name : "unnamed";
}

void EvrRtxThreadSwitched(osThreadId_t thread_id); /* replaces the kernel's weak function */

void EvrRtxThreadSwitched(osThreadId_t thread_id)
{
    if (!silent) {
        say_number(osRtxInfo.kernel.tick / SLOT);
        put(' ');
        say(name_of(thread_id));
        put('\n');
    }
}

static void expect(int32_t status)
{
    failures += status != FERRULE_OK ? 1 : 0;
}

static void spin_until(uint32_t tick)
{
    while (osKernelGetTickCount() < tick) {
    }
}

/* Run the model with the device open, and keep the device until the given tick. */
static void infer(uint32_t until)
{
    expect(ferrule_device_open(&device));
    expect(ferrule_dense_link_model.run(NULL));
    spin_until(until);
    expect(ferrule_device_close(&device));
}

static uint32_t begin(uint32_t round)
{
    return ROUND * (round + 1u);
}

static void high(void *unused)
{
    (void)unused;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        (void)osDelayUntil(begin(round) + 10u);
        infer(0u); /* low holds the device, and inherits this priority until it closes it */
        expect(osSemaphoreAcquire(ready, osWaitForever));
    }
    osThreadExit();
}

static void middle(void *unused)
{
    (void)unused;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        (void)osDelayUntil(begin(round) + 20u);
        infer(begin(round) + 40u);
        expect(osSemaphoreRelease(ready));
    }
    osThreadExit();
}

/* Spin together with the other thread of this priority; the kernel gives each five ticks at a
 * time. */
static void take_turns(uint32_t round)
{
    (void)osDelayUntil(begin(round) + 50u);
    spin_until(begin(round) + 68u);
}

static void low(void *unused)
{
    (void)unused;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        (void)osDelayUntil(begin(round));
        infer(begin(round) + 30u);
        take_turns(round);
    }
    osThreadExit();
}

static void twin(void *unused)
{
    (void)unused;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        take_turns(round);
    }
    osThreadExit();
}

static void start(const char *name, osThreadFunc_t function, osPriority_t priority)
{
    const osThreadAttr_t attributes = {
        .name = name, .stack_size = STACK_BYTES, .priority = priority};
    if (osThreadNew(function, NULL, &attributes) == NULL) {
        expect(FERRULE_ERR_MEMORY);
    }
}

static void report(void)
{
    const struct ferrule_transport transport = ferrule_cmsis_usart_transport(&console);
    silent = true; /* sending switches threads, too */
    say("failures ");
    say_number((uint32_t)failures);
    put('\n');
    (void)ferrule_cmsis_usart_init(&console);
    (void)ferrule_cmsis_usart_start(&console);
    (void)transport.write(transport.context, (const uint8_t *)trace, length, 10000u);
}

static void judge(void *unused)
{
    static const struct ferrule_driver driver = {.name = "shared", .is_passive = true};
    (void)unused;
    expect(ferrule_device_init(&device));
    expect(ferrule_device_bind(&device, &driver, NULL));
    expect(ferrule_device_activate(&device));
    ready = osSemaphoreNew(1u, 0u, NULL);
    start("high", high, osPriorityHigh);
    start("middle", middle, osPriorityAboveNormal);
    start("low", low, osPriorityNormal);
    start("twin", twin, osPriorityNormal);
    (void)osDelayUntil(begin(ROUNDS));
    report();
    for (;;) {
        (void)osDelay(1000u);
    }
}

int main(void)
{
    SystemCoreClockUpdate();
    (void)osKernelInitialize();
    start("judge", judge, osPriorityLow);
    return (int)osKernelStart();
}
