/* SPDX-License-Identifier: Apache-2.0 */
/** @file tvm/runtime/device.h on Zephyr: a device is a `const struct device *`. */
#ifndef TVM_PLATFORM_ZEPHYR_H
#define TVM_PLATFORM_ZEPHYR_H

#include "ferrule/platform/zephyr.h"
#include "ferrule/platform/zephyr_accelerator.h"
#include "tvm/runtime/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @brief Bind to a Zephyr device, without a driver: the first run of a model gives the device its
 * driver, and the driver the address of the registers if the device is of the class
 * `ferrule_accelerator`. Operators of your own get the Zephyr device from their resource handle
 * with tvm_device_zephyr(). To bind with a driver, call ferrule_device_bind(). */
static inline int32_t TVMDevicePlatformBind(tvm_device_t *tvm_dev,
                                            const struct device *zephyr_device)
{
    void *base = NULL;

    if (ferrule_zephyr_is_accelerator(zephyr_device)) {
        base = (void *)ferrule_zephyr_accelerator_base(zephyr_device);
    }
    return ferrule_device_bind(tvm_dev, zephyr_device, &ferrule_no_driver, base);
}

/** @brief Return the Zephyr device that the handle is bound to. */
static inline const struct device *tvm_device_zephyr(const tvm_device_t *tvm_dev)
{
    return tvm_dev->zephyr_device;
}

/** TVM_DEVICE_INIT(Woofles, woofles, driver) declares TVMDeviceWooflesInit(), which initialises a
 * handle and binds it to `driver`, a `struct ferrule_driver`. */
#define TVM_DEVICE_INIT(Name, name, driver)                                                        \
    static inline int32_t TVMDevice##Name##Init(tvm_device_##name##_t *tvm_dev,                    \
                                                const struct device *zephyr_device, void *context) \
    {                                                                                              \
        int32_t status = ferrule_device_init(tvm_dev);                                             \
        if (status != FERRULE_OK) {                                                                \
            return status;                                                                         \
        }                                                                                          \
        return tvm_device_bound(tvm_dev,                                                           \
                                ferrule_device_bind(tvm_dev, zephyr_device, &(driver), context));  \
    }

#ifdef __cplusplus
}
#endif

#endif /* TVM_PLATFORM_ZEPHYR_H */
