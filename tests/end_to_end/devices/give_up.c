/* SPDX-License-Identifier: Apache-2.0 */
/* The main.c of a project for mps2-an386, whose runs are given up as the first input says: its
 * bytes are how, and from byte 4 on, after how many microseconds. A device of its own, the alarm,
 * cancels a run. */
#include "ferrule/device.h"
#include "ferrule/drivers/uart_cmsdk.h"
#include "ferrule/link.h"
#include "ferrule/platform.h"
#include "ferrule/platform/interrupt.h"
#include "ferrule/port.h"
#include "ferrule_given_devices.h"
#include "ferrule_given_link.h"

#include <stddef.h>
#include <string.h>

#define VTOR          0xE000ED08u
#define VECTORS       (16u + FERRULE_INTERRUPT_LINES)
#define ALARM         0x4FF00000u
#define ALARM_LINE    60u
#define CYCLES_PER_US 25u
#define LONG_US       1000000u

/* HEALTH_OFFSET and LOST are defined by the test: the engine reads them. */
_Static_assert(offsetof(struct ferrule_device_core, health) == HEALTH_OFFSET, "as on this core");
_Static_assert((unsigned)FERRULE_DEVICE_LOST == LOST, "as here");

enum { NOT_AT_ALL, TIME_OUT, DEADLINE, CANCELLED, LOOK };

static void (*table[VECTORS])(void) __attribute__((aligned(1024)));
static struct ferrule_run_info *current;

static const struct ferrule_uart_cmsdk_config uart = {
    .base = 0x40004000u,
    .clock_hz = 25000000u,
    .baud = 115200u,
};

static void on_alarm(void)
{
    ferrule_mmio_write32(ALARM, 0u);
    ferrule_run_cancel(current);
}

/* Stores in the output how many bytes of it change for a while, and whether the device is lost. */
static int32_t look(uint32_t us)
{
    const struct ferrule_link_tensor *tensor = &ferrule_given_link_model.outputs[0];
    volatile uint8_t *output = tensor->data;
    const uint32_t begin = ferrule_platform_now_us();
    uint8_t written = 0;

    for (uint32_t i = 0; i < tensor->bytes; i++) {
        output[i] = 0xA5u;
    }
    while (ferrule_platform_now_us() - begin < us) {
    }
    for (uint32_t i = 0; i < tensor->bytes; i++) {
        written = (uint8_t)(written + (output[i] != 0xA5u));
    }
    output[0] = written;
    output[1] = ferrule_device_is_lost(ferrule_given_default_devices.npu0);
    return FERRULE_OK;
}

static int32_t run(struct ferrule_run_info *info)
{
    const uint8_t *wanted = ferrule_given_link_model.inputs[0].data;
    const uint8_t how = wanted[0];
    uint32_t at_us;
    int32_t status;

    (void)memcpy(&at_us, &wanted[4], sizeof at_us);
    status = ferrule_device_set_timeout(ferrule_given_default_devices.npu0,
                                        how == TIME_OUT ? at_us : LONG_US);
    if (status != FERRULE_OK || how == LOOK) {
        return status != FERRULE_OK ? status : look(at_us);
    }
    current = info;
    ferrule_mmio_write32(ALARM, how == CANCELLED ? at_us * CYCLES_PER_US : 0u);
    if (how == DEADLINE) {
        status =
            ferrule_given_run_until(&ferrule_given_default_inputs, &ferrule_given_default_outputs,
                                    &ferrule_given_default_memory, &ferrule_given_default_devices,
                                    info, ferrule_platform_now_us() + at_us);
    } else {
        status =
            ferrule_given_run(&ferrule_given_default_inputs, &ferrule_given_default_outputs,
                              &ferrule_given_default_memory, &ferrule_given_default_devices, info);
    }
    ferrule_mmio_write32(ALARM, 0u);
    return status;
}

int main(void)
{
    static struct ferrule_link_model served;
    const struct ferrule_link_port port = {
        .read_byte = ferrule_uart_cmsdk_read,
        .write_byte = ferrule_uart_cmsdk_write,
        .context = (void *)(uintptr_t)&uart, /* casts const away: the driver only reads it */
    };

    (void)memcpy(table, (const void *)(uintptr_t)ferrule_mmio_read32(VTOR), sizeof table);
    table[16u + ALARM_LINE] = on_alarm;
    ferrule_mmio_write32(VTOR, (uint32_t)(uintptr_t)table);
    ferrule_interrupt_enable(ALARM_LINE);
    if (ferrule_given_devices_start() != FERRULE_OK || ferrule_uart_cmsdk_init(&uart) != 0) {
        return 1;
    }
    ferrule_given_link_use(&ferrule_given_default_devices);
    served = ferrule_given_link_model;
    served.run = run;
    ferrule_link_serve(&served, &port);
    return 0;
}
