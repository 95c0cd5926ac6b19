/* SPDX-License-Identifier: Apache-2.0 */
#include "tvm/platform/bare_metal.h"

#include <stddef.h>

#include "ferrule/drivers/uart_cmsdk.h"

#define SOFT_NPU NULL
#define WOOFLES  ((void *)0x40080000u)
#include "first_form.h"

#ifdef INTERRUPT
#include "ferrule/platform/interrupt.h"

static volatile uint32_t taken;

void ferrule_interrupt(uint32_t line)
{
    taken++;
    if (!woofles_interrupt(tvmgen_mynetwork_woofles_context())) {
        ferrule_interrupt_disable(line);
    }
    ferrule_device_notify(&accelerators[1]);
}
#endif

int main(void)
{
    static struct result result;
    static struct ferrule_uart_cmsdk_config uart = {
        .base = 0x40004000u, .clock_hz = 25000000u, .baud = 115200u};

#ifdef INTERRUPT
    ferrule_interrupt_enable(INTERRUPT);
    infer(&result);
    if (taken == 0u) {
        result.status = FERRULE_ERR_TIMEOUT;
    }
#else
    infer(&result);
#endif
    if (ferrule_uart_cmsdk_init(&uart) != FERRULE_OK) {
        return 1;
    }
    for (size_t i = 0; i < sizeof result; i++) {
        ferrule_uart_cmsdk_write(&uart, ((const uint8_t *)&result)[i]);
    }
    return 0;
}
