/* SPDX-License-Identifier: Apache-2.0 */
#include "tvm/platform/cmsis.h"

#include <stddef.h>

#include "RTE_Components.h"
#include CMSIS_device_header

#define SOFT_NPU (&always_on)
#define WOOFLES  (&always_on)

/* Both devices always have power. */
static ARM_DRIVER_VERSION get_version(void)
{
    return (ARM_DRIVER_VERSION){.api = FERRULE_CMSIS_ACCELERATOR_API, .drv = 1};
}

static int32_t initialize(void (*on_event)(uint32_t event))
{
    (void)on_event;
    return ARM_DRIVER_OK;
}

static int32_t uninitialize(void)
{
    return ARM_DRIVER_OK;
}

static int32_t power_control(ARM_POWER_STATE state)
{
    (void)state;
    return ARM_DRIVER_OK;
}

static struct ferrule_cmsis_accelerator_status get_status(void)
{
    return (struct ferrule_cmsis_accelerator_status){0};
}

static const struct ferrule_cmsis_accelerator always_on = {
    .GetVersion = get_version,
    .Initialize = initialize,
    .Uninitialize = uninitialize,
    .PowerControl = power_control,
    .GetStatus = get_status,
};

#include "first_form.h"

extern ARM_DRIVER_USART Driver_USART0;
FERRULE_CMSIS_USART(console, &Driver_USART0, 115200u);

static void run(void *unused)
{
    static struct result result;
    const struct ferrule_transport transport = ferrule_cmsis_usart_transport(&console);

    (void)unused;
    infer(&result);
    if (ferrule_cmsis_usart_init(&console) == FERRULE_OK &&
        ferrule_cmsis_usart_start(&console) == FERRULE_OK) {
        (void)transport.write(transport.context, (const uint8_t *)&result, sizeof result, 1000u);
    }
    for (;;) {
        (void)osDelay(1000u);
    }
}

int main(void)
{
    const osThreadAttr_t attributes = {.stack_size = 4096u, .priority = osPriorityNormal};

    SystemCoreClockUpdate();
    (void)osKernelInitialize();
    (void)osThreadNew(run, NULL, &attributes);
    return (int)osKernelStart();
}
