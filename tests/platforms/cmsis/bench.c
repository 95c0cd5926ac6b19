/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <stddef.h>

#include "fake.h"
#include "ferrule_fake_cmsis.h"

static uint32_t api = FERRULE_CMSIS_ACCELERATOR_API;

void bench_set_api(uint32_t version)
{
    api = version;
}

static ARM_DRIVER_VERSION version(void)
{
    const ARM_DRIVER_VERSION made = {.api = (uint16_t)api, .drv = 1};
    return made;
}

static int32_t initialise(void (*on_event)(uint32_t event))
{
    FAKE_CALL_OF(call, "acc_Initialize", NULL, on_event != NULL);
    return (int32_t)fake_end(&call);
}

static int32_t uninitialise(void)
{
    FAKE_CALL_OF(call, "acc_Uninitialize", NULL);
    return (int32_t)fake_end(&call);
}

static int32_t power(ARM_POWER_STATE state)
{
    FAKE_CALL_OF(call, "acc_PowerControl", NULL, (int64_t)state);
    return (int32_t)fake_end(&call);
}

static struct ferrule_cmsis_accelerator_status status(void)
{
    FAKE_CALL_OF(call, "acc_GetStatus", NULL);
    const int64_t bits = fake_end(&call);
    const struct ferrule_cmsis_accelerator_status made = {.busy = (bits & 1) != 0,
                                                          .error = (bits & 2) != 0};
    return made;
}

const struct ferrule_cmsis_accelerator *bench_accelerator(void)
{
    static const struct ferrule_cmsis_accelerator accelerator = {
        .GetVersion = version,
        .Initialize = initialise,
        .Uninitialize = uninitialise,
        .PowerControl = power,
        .GetStatus = status,
    };
    return &accelerator;
}

#if FERRULE_CMSIS_RTOS2
FERRULE_CMSIS_USART(first, &Driver_USART0, 115200u);
FERRULE_CMSIS_USART(second, &Driver_USART1, 115200u);
#else
static uint32_t now_ms(void)
{
    FAKE_CALL_OF(call, "now_ms", NULL);
    call.result = (int64_t)(ferrule_fake_now_us() / 1000u);
    return (uint32_t)fake_end(&call);
}

FERRULE_CMSIS_USART(first, &Driver_USART0, 115200u, now_ms);
FERRULE_CMSIS_USART(second, &Driver_USART1, 115200u, now_ms);
#endif

struct ferrule_cmsis_usart *bench_usart(uint32_t number)
{
    return number == 0u ? &first : &second;
}

int32_t bench_write(struct ferrule_cmsis_usart *usart, const uint8_t *data, uint32_t bytes,
                    uint32_t timeout_ms)
{
    const struct ferrule_transport transport = ferrule_cmsis_usart_transport(usart);
    return transport.write(transport.context, data, bytes, timeout_ms);
}

int32_t bench_read(struct ferrule_cmsis_usart *usart, uint8_t *data, uint32_t bytes,
                   uint32_t timeout_ms, uint32_t *received)
{
    const struct ferrule_transport transport = ferrule_cmsis_usart_transport(usart);
    size_t count = 0;
    const int32_t result = transport.read(transport.context, data, bytes, timeout_ms,
                                          received != NULL ? &count : NULL);
    if (received != NULL) {
        *received = (uint32_t)count;
    }
    return result;
}
