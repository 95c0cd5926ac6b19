/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The functions of ferrule/device.h under the names of TVM's RFC "C Device API".
 *
 * The generic names come from the RFC's first version, in which opening a device also powers it.
 * The names per device (TVM_DEVICE_NAMES) come from the merged version, which has activate and
 * deactivate. A handle may be used through both and through ferrule/device.h at the same time.
 * ferrule/device.h documents the return values; docs/platforms.md lists the deviations from the
 * letter of the RFC.
 */
#ifndef TVM_RUNTIME_DEVICE_H
#define TVM_RUNTIME_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "ferrule/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Completed by the platform's header, such as tvm/platform/bare_metal.h. */
typedef struct ferrule_device tvm_device_t;

/** @brief Call ferrule_device_init(). */
static inline int32_t TVMDeviceInit(tvm_device_t *tvm_dev)
{
    return ferrule_device_init(tvm_dev);
}

/** @brief Power the device and lock it: activate and open. If opening fails, the device is
 * deactivated again, and the error of opening is returned. */
static inline int32_t TVMDeviceOpen(tvm_device_t *tvm_dev)
{
    int32_t status = ferrule_device_activate(tvm_dev);

    if (status != FERRULE_OK) {
        return status;
    }
    status = ferrule_device_open(tvm_dev);
    if (status != FERRULE_OK) {
        (void)ferrule_device_deactivate(tvm_dev); /* the first error counts */
    }
    return status;
}

/** @brief Undo TVMDeviceOpen(): close and deactivate. A device that this thread does not have open
 * stays powered. */
static inline int32_t TVMDeviceClose(tvm_device_t *tvm_dev)
{
    int32_t status = ferrule_device_close(tvm_dev);

    return status == FERRULE_OK ? ferrule_device_deactivate(tvm_dev) : status;
}

/** @brief Call ferrule_device_destroy(). */
static inline int32_t TVMDeviceDestroy(tvm_device_t *tvm_dev)
{
    return ferrule_device_destroy(tvm_dev);
}

/** @brief Call ferrule_device_copy_from(), with source and destination in the RFC's order; the RFC
 * lacks the size. */
static inline int32_t TVMDeviceCopyFrom(tvm_device_t *source, void *destination,
                                        uint32_t device_offset, size_t bytes)
{
    return ferrule_device_copy_from(source, destination, device_offset, bytes);
}

/** @brief Call ferrule_device_copy_to(), with source and destination in the RFC's order; the RFC
 * lacks the size. */
static inline int32_t TVMDeviceCopyTo(const void *source, tvm_device_t *destination,
                                      uint32_t device_offset, size_t bytes)
{
    return ferrule_device_copy_to(destination, device_offset, source, bytes);
}

/** Destroy the handle if binding it failed; returns `bound`, the status of the bind. */
static inline int32_t tvm_device_bound(tvm_device_t *tvm_dev, int32_t bound)
{
    if (bound != FERRULE_OK) {
        (void)ferrule_device_destroy(tvm_dev); /* the first error counts */
    }
    return bound;
}

/**
 * The merged RFC's names of one device: its handle's type and the calls on it.
 *
 * TVM_DEVICE_NAMES(Woofles, woofles) declares tvm_device_woofles_t, TVMDeviceWooflesActivate(),
 * -Open(), -Close(), -Deactivate() and -Destroy(). The platform's header has TVM_DEVICE_INIT, which
 * declares TVMDeviceWooflesInit() with that platform's parameters; a header generated for a model
 * uses it if a platform's header was included before.
 */
#define TVM_DEVICE_NAMES(Name, name)                                                               \
    typedef tvm_device_t tvm_device_##name##_t;                                                    \
    TVM_DEVICE_CALL(Name##Activate, name, ferrule_device_activate)                                 \
    TVM_DEVICE_CALL(Name##Open, name, ferrule_device_open)                                         \
    TVM_DEVICE_CALL(Name##Close, name, ferrule_device_close)                                       \
    TVM_DEVICE_CALL(Name##Deactivate, name, ferrule_device_deactivate)                             \
    TVM_DEVICE_CALL(Name##Destroy, name, ferrule_device_destroy)

/** One function of TVM_DEVICE_NAMES. */
#define TVM_DEVICE_CALL(Call, name, function)                                                      \
    static inline int32_t TVMDevice##Call(tvm_device_##name##_t *tvm_dev)                          \
    {                                                                                              \
        return function(tvm_dev);                                                                  \
    }

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_DEVICE_H */
