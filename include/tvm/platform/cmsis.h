/* SPDX-License-Identifier: Apache-2.0 */
/** @file tvm/runtime/device.h on CMSIS: a device is represented by a CMSIS-Driver access struct.
 */
#ifndef TVM_PLATFORM_CMSIS_H
#define TVM_PLATFORM_CMSIS_H

#include "ferrule/platform/cmsis.h"
#include "ferrule/platform/cmsis_usart.h"
#include "tvm/runtime/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @brief Bind to an accelerator's access struct, without a driver: the first run of a model gives
 * the device its driver. Operators of your own get the access struct from their resource handle
 * with tvm_device_accelerator(). To bind with a driver, call ferrule_device_bind_accelerator(). */
static inline int32_t TVMDevicePlatformBind(tvm_device_t *tvm_dev,
                                            const struct ferrule_cmsis_accelerator *access)
{
    return ferrule_device_bind_accelerator(tvm_dev, access, &ferrule_no_driver, NULL);
}

/** @brief Bind to a device on a USART, defined by FERRULE_CMSIS_USART: the RFC's ARM_DRIVER_USART
 * lacks a context for its callback. Operators get it with tvm_device_uart(). To bind with a driver,
 * call ferrule_device_bind_usart(). */
static inline int32_t TVMDevicePlatformBindUart(tvm_device_t *tvm_dev,
                                                struct ferrule_cmsis_usart *usart)
{
    return ferrule_device_bind_usart(tvm_dev, usart, &ferrule_no_driver, NULL);
}

/** @brief Return the argument of TVMDevicePlatformBind(); NULL for a device on a USART. */
static inline const struct ferrule_cmsis_accelerator *
tvm_device_accelerator(const tvm_device_t *tvm_dev)
{
    return tvm_dev->accelerator;
}

/** @brief Return the argument of TVMDevicePlatformBindUart(); NULL for an accelerator. */
static inline struct ferrule_cmsis_usart *tvm_device_uart(const tvm_device_t *tvm_dev)
{
    return tvm_dev->usart;
}

/** TVM_DEVICE_INIT(Woofles, woofles, driver) declares TVMDeviceWooflesInit() for an accelerator and
 * TVMDeviceWooflesInitUart() for a device on a USART; they initialise a handle and bind it to
 * `driver`, a `struct ferrule_driver`. */
#define TVM_DEVICE_INIT(Name, name, driver)                                                        \
    static inline int32_t TVMDevice##Name##Init(tvm_device_##name##_t *tvm_dev,                    \
                                                const struct ferrule_cmsis_accelerator *access,    \
                                                void *context)                                     \
    {                                                                                              \
        int32_t status = ferrule_device_init(tvm_dev);                                             \
        if (status != FERRULE_OK) {                                                                \
            return status;                                                                         \
        }                                                                                          \
        return tvm_device_bound(                                                                   \
            tvm_dev, ferrule_device_bind_accelerator(tvm_dev, access, &(driver), context));        \
    }                                                                                              \
    static inline int32_t TVMDevice##Name##InitUart(                                               \
        tvm_device_##name##_t *tvm_dev, struct ferrule_cmsis_usart *usart, void *context)          \
    {                                                                                              \
        int32_t status = ferrule_device_init(tvm_dev);                                             \
        if (status != FERRULE_OK) {                                                                \
            return status;                                                                         \
        }                                                                                          \
        return tvm_device_bound(tvm_dev,                                                           \
                                ferrule_device_bind_usart(tvm_dev, usart, &(driver), context));    \
    }

#ifdef __cplusplus
}
#endif

#endif /* TVM_PLATFORM_CMSIS_H */
