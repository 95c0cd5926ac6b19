/* SPDX-License-Identifier: Apache-2.0 */
/** @file The merged RFC's program: functions named per device, power around the run, copies. */
#include "tvm/platform/bare_metal.h"

#include <string.h>

static uint8_t memory[16];

static int32_t copy_to(void *context, uint32_t device_offset, const void *source, size_t bytes)
{
    memcpy((uint8_t *)context + device_offset, source, bytes);
    return FERRULE_OK;
}

static int32_t copy_from(void *context, void *destination, uint32_t device_offset, size_t bytes)
{
    memcpy(destination, (const uint8_t *)context + device_offset, bytes);
    return FERRULE_OK;
}

static const struct ferrule_driver woofles_driver = {.name = "woofles",
                                                     .is_passive = true,
                                                     .copy_to = copy_to,
                                                     .copy_from = copy_from,
                                                     .memory_bytes = sizeof memory};

/* the lines in a generated header for each device */
TVM_DEVICE_NAMES(Woofles, woofles)
TVM_DEVICE_INIT(Woofles, woofles, woofles_driver)

int main(void)
{
    static tvm_device_woofles_t accelerator;
    char text[8] = "";

    /* Init initialises and binds the handle in one call, and only once */
    if (TVMDeviceWooflesActivate(&accelerator) != FERRULE_ERR_HANDLE ||
        TVMDeviceWooflesInit(&accelerator, NULL, NULL, memory) != FERRULE_OK ||
        TVMDeviceWooflesInit(&accelerator, NULL, NULL, memory) != FERRULE_ERR_STATE) {
        return 1;
    }
    if (TVMDeviceWooflesActivate(&accelerator) != FERRULE_OK ||
        TVMDeviceWooflesOpen(&accelerator) != FERRULE_OK ||
        TVMDeviceCopyTo("woof", &accelerator, 3, 5) != FERRULE_OK ||
        TVMDeviceCopyFrom(&accelerator, text, 3, 5) != FERRULE_OK) {
        return 2;
    }
    if (TVMDeviceWooflesClose(&accelerator) != FERRULE_OK ||
        TVMDeviceWooflesDeactivate(&accelerator) != FERRULE_OK ||
        TVMDeviceWooflesDestroy(&accelerator) != FERRULE_OK) {
        return 3;
    }
    return strcmp(text, "woof") == 0 ? 0 : 4;
}
