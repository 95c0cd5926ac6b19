/* SPDX-License-Identifier: Apache-2.0 */
#include "tvm/platform/cmsis.h"

#include "sample.h"

extern ARM_DRIVER_USART Driver_USART0;
extern ARM_DRIVER_USART Driver_USART1;

FERRULE_CMSIS_USART(uart0, &Driver_USART0, 115200);
FERRULE_CMSIS_USART(uart1, &Driver_USART1, 115200);

int32_t my_accelerator_invoke(tvm_device_t *tvm_dev, uint8_t *value, uint8_t step)
{
    struct ferrule_transport uart = ferrule_cmsis_usart_transport(tvm_device_uart(tvm_dev));

    *value = (uint8_t)(*value + step);
    return uart.write(uart.context, &step, 1, 100);
}

int32_t sample_run(const void *first, const void *second)
{
    static tvm_device_t accelerators[2]; /* owned by the user, and never copied */
    struct ferrule_cmsis_usart *const usarts[2] = {&uart0, &uart1};
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
            status = TVMDevicePlatformBindUart(&accelerators[i], usarts[i]);
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
    int32_t status = first == NULL ? TVMDeviceWooflesInit(&accelerator, NULL, NULL)
                                   : TVMDeviceWooflesInitUart(&accelerator, &uart0, NULL);

    for (uint32_t i = 0; i < sizeof calls / sizeof calls[0] && status == FERRULE_OK; i++) {
        status = calls[i](&accelerator);
    }
    return status;
}
