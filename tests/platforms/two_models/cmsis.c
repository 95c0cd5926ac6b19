/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads, each with its own model; a third sends the results. Replaces main.c of the first
 * model's project. */
#include "ferrule_second.c" /* first: it has static names that are common */
#include "ferrule_second_weights.c"

#include "ferrule/platform/cmsis.h"
#include "ferrule/platform/cmsis_port.h"
#include "ferrule/platform/cmsis_usart.h"
#include "ferrule_first_devices.h"

#include "RTE_Components.h"
#include CMSIS_device_header
#include "cmsis_os2.h"

#define WORK() (void)osDelay(1u)
#include "two_models.h"

#define STACK_BYTES 3072u

extern ARM_DRIVER_USART Driver_USART0;
FERRULE_CMSIS_USART(console, &Driver_USART0, 115200u);

const struct ferrule_cmsis_stack ferrule_cmsis_link_stack; /* stack use is not measured */

static osThreadId_t judge;

static void work(void *number)
{
    run_often((uint32_t)(uintptr_t)number, &ferrule_first_default_devices);
    (void)osThreadFlagsSet(judge, 1u << (uintptr_t)number);
    osThreadExit();
}

static void start(uintptr_t number)
{
    const osThreadAttr_t attributes = {.stack_size = STACK_BYTES, .priority = osPriorityNormal};

    told.failures += osThreadNew(work, (void *)number, &attributes) == NULL ? 1 : 0;
}

static void report(void)
{
    const struct ferrule_transport transport = ferrule_cmsis_usart_transport(&console);

    (void)ferrule_cmsis_usart_init(&console);
    (void)ferrule_cmsis_usart_start(&console);
    (void)transport.write(transport.context, (const uint8_t *)&told, sizeof told, 1000u);
}

static void supervise(void *unused)
{
    (void)unused;
    judge = osThreadGetId();
    told.failures += ferrule_first_devices_start() != FERRULE_OK ? 1 : 0;
    interrupt_driver(ferrule_first_default_devices.npu0);
    interrupt_driver(ferrule_first_default_devices.npu1);
    start(0);
    start(1);
    (void)osThreadFlagsWait(3u, osFlagsWaitAll, osWaitForever);
    report();
    for (;;) {
        (void)osDelay(1000u);
    }
}

int main(void)
{
    const osThreadAttr_t attributes = {.stack_size = STACK_BYTES, .priority = osPriorityNormal};

    SystemCoreClockUpdate();
    (void)osKernelInitialize();
    (void)osThreadNew(supervise, NULL, &attributes);
    return (int)osKernelStart();
}
