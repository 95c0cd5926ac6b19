/* SPDX-License-Identifier: Apache-2.0 */
/** @file tvm/runtime/device.h without an operating system: a device is a `void *`. */
#ifndef TVM_PLATFORM_BARE_METAL_H
#define TVM_PLATFORM_BARE_METAL_H

#include "ferrule/platform/bare_metal.h"
#include "tvm/runtime/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @brief Bind to `base`, the address of the device's registers, without a driver: the first run of
 * a model gives the device its driver, and the driver the address. Operators of your own get it
 * from their resource handle with tvm_device_base(). To bind with a driver, call
 * ferrule_device_bind(). */
static inline int32_t TVMDevicePlatformBind(tvm_device_t *tvm_dev, void *base)
{
    return ferrule_device_bind(tvm_dev, base, NULL, &ferrule_no_driver, base);
}

/** @brief Return the base that the handle is bound to. */
static inline void *tvm_device_base(const tvm_device_t *tvm_dev)
{
    return ferrule_bare_metal_base(tvm_dev);
}

/** TVM_DEVICE_INIT(Woofles, woofles, driver) declares TVMDeviceWooflesInit(), which initialises a
 * handle and binds it to `driver`, a `struct ferrule_driver`. */
#define TVM_DEVICE_INIT(Name, name, driver)                                                        \
    static inline int32_t TVMDevice##Name##Init(tvm_device_##name##_t *tvm_dev, void *base,        \
                                                const struct ferrule_bare_metal_power *power,      \
                                                void *context)                                     \
    {                                                                                              \
        int32_t status = ferrule_device_init(tvm_dev);                                             \
        if (status != FERRULE_OK) {                                                                \
            return status;                                                                         \
        }                                                                                          \
        return tvm_device_bound(tvm_dev,                                                           \
                                ferrule_device_bind(tvm_dev, base, power, &(driver), context));    \
    }

#ifdef __cplusplus
}
#endif

#endif /* TVM_PLATFORM_BARE_METAL_H */
