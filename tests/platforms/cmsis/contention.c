/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads of equal priority use one device in turns, and detect whether the other is inside. */

#include "ferrule/device.h"
#include "ferrule/platform/cmsis.h"
#include "ferrule/platform/cmsis_port.h"
#include "ferrule/platform/cmsis_usart.h"

#include <stddef.h>
#include <stdint.h>

#include "RTE_Components.h"
#include CMSIS_device_header
#include "cmsis_os2.h"

#define ROUNDS      20
#define STACK_BYTES 1536u /* kernel-allocated: some kernels accept no stack alone */
#define DONE        1u

extern ARM_DRIVER_USART Driver_USART0;
FERRULE_CMSIS_USART(console, &Driver_USART0, 115200u);

const struct ferrule_cmsis_stack ferrule_cmsis_link_stack; /* stack use is not measured */

static ferrule_device_t device;
static osThreadId_t judge;
static volatile int32_t inside;
static struct {
    int32_t status;
    int32_t runs;
    int32_t overlaps;
    int32_t in_time;
    int32_t too_late;
    int32_t from_interrupt;
    int32_t still_locked;
} told;

static int32_t enter(void)
{
#ifdef NO_LOCK
    return FERRULE_OK;
#else
    return ferrule_device_open(&device);
#endif
}

static int32_t leave(void)
{
#ifdef NO_LOCK
    return FERRULE_OK;
#else
    return ferrule_device_close(&device);
#endif
}

static void note(int32_t status)
{
    if (told.status == FERRULE_OK) {
        told.status = status;
    }
}

/* A kernel that the caller locked stays locked, and is unlocked when the caller unlocks it. */
static void use_with_kernel_locked(void)
{
    (void)osKernelLock();
    note(ferrule_device_open(&device));
    note(ferrule_device_close(&device));
    told.still_locked = osKernelGetState() == osKernelLocked ? 1 : 0;
    (void)osKernelUnlock();
    told.still_locked += osKernelGetState() == osKernelRunning ? 1 : 0;
}

static void work(void *unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        note(enter());
        inside++;
        (void)osDelay(2u);
        told.overlaps += inside > 1 ? 1 : 0;
        told.runs++;
        inside--;
        note(leave());
    }
    (void)osThreadFlagsSet(judge, DONE);
    osThreadExit();
}

static void keep(void *unused)
{
    (void)unused;
    told.in_time = enter();
    (void)osDelay(3000u);
    note(leave());
    (void)osThreadFlagsSet(judge, DONE);
    osThreadExit();
}

void NMI_Handler(void);

void NMI_Handler(void)
{
    told.from_interrupt = ferrule_device_open(&device);
}

static void start(osThreadFunc_t function)
{
    const osThreadAttr_t attributes = {.stack_size = STACK_BYTES, .priority = osPriorityNormal};
    if (osThreadNew(function, NULL, &attributes) == NULL) {
        note(FERRULE_ERR_MEMORY);
    }
}

static void report(void)
{
    const struct ferrule_transport transport = ferrule_cmsis_usart_transport(&console);
    note(ferrule_cmsis_usart_init(&console));
    note(ferrule_cmsis_usart_start(&console));
    (void)transport.write(transport.context, (const uint8_t *)&told, sizeof told, 1000u);
}

static void run(void *unused)
{
    static const struct ferrule_driver driver = {.name = "contended", .is_passive = true};
    (void)unused;
    judge = osThreadGetId();
    note(ferrule_device_init(&device));
    note(ferrule_device_bind(&device, &driver, NULL));
    note(ferrule_device_activate(&device));
    use_with_kernel_locked();

    start(work);
    start(work);
    (void)osThreadFlagsWait(DONE, osFlagsWaitAny, osWaitForever);
    (void)osDelay(500u); /* both are done by then, since they alternate */

    start(keep);
    (void)osDelay(10u);
    told.too_late = enter();             /* waits for a second; the other keeps it for three */
    SCB->ICSR = SCB_ICSR_NMIPENDSET_Msk; /* an interrupt that nothing else uses */
    __DSB();
    __ISB();
    report();
    for (;;) {
        (void)osDelay(1000u);
    }
}

int main(void)
{
    SystemCoreClockUpdate();
    (void)osKernelInitialize();
    start(run);
    return (int)osKernelStart();
}
