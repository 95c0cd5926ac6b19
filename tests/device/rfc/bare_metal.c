/* SPDX-License-Identifier: Apache-2.0 */
#include "tvm/platform/bare_metal.h"

#include "sample.h"

int32_t my_accelerator_invoke(tvm_device_t *tvm_dev, uint8_t *value, uint8_t step)
{
    uint8_t *sum = (uint8_t *)tvm_device_base(tvm_dev);

    *sum = (uint8_t)(*sum + step);
    *value = (uint8_t)(*value + step);
    return FERRULE_OK;
}

int32_t sample_run(const void *first, const void *second)
{
    static tvm_device_t accelerators[2]; /* owned by the user, and never copied */
    static uint8_t registers[2];
    struct tvmgen_mynetwork_devices devices = {
        .accelerator0 = &accelerators[0],
        .accelerator1 = &accelerators[1],
    };
    uint8_t value = 1;
    int32_t status = FERRULE_OK;

    (void)first;
    (void)second;
    for (uint32_t i = 0; i < 2 && status == FERRULE_OK; i++) {
        status = TVMDeviceInit(&accelerators[i]);
        if (status == FERRULE_OK) {
            status = TVMDevicePlatformBind(&accelerators[i], &registers[i]);
        }
    }
    if (status == FERRULE_OK) {
        status = tvmgen_mynetwork_run(&value, &devices);
    }
    for (uint32_t i = 0; i < 2; i++) {
        int32_t destroyed = TVMDeviceDestroy(&accelerators[i]);
        status = status != FERRULE_OK ? status : destroyed;
    }
    return status != FERRULE_OK ? status : value;
}

static const struct ferrule_driver woofles_driver = {.name = "woofles", .is_passive = true};

/* the lines in a generated header for each device */
TVM_DEVICE_NAMES(Woofles, woofles)
TVM_DEVICE_INIT(Woofles, woofles, woofles_driver)

int32_t sample_named(const void *first)
{
    static tvm_device_woofles_t accelerator;
    int32_t (*const calls[])(tvm_device_woofles_t *) = {
        TVMDeviceWooflesActivate,   TVMDeviceWooflesOpen,    TVMDeviceWooflesClose,
        TVMDeviceWooflesDeactivate, TVMDeviceWooflesDestroy,
    };
    int32_t status;

    (void)first;
    status = TVMDeviceWooflesInit(&accelerator, NULL, NULL, NULL);

    for (uint32_t i = 0; i < sizeof calls / sizeof calls[0] && status == FERRULE_OK; i++) {
        status = calls[i](&accelerator);
    }
    return status;
}
