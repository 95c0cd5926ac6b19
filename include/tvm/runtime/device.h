/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The names of TVM's RFC "C Device API" for the calls of ferrule/device.h.
 *
 * The generic names are those of its first form, in which opening a device powers it too; the names
 * per device (TVM_DEVICE_NAMES) are those of its merged form, which has activate and deactivate.
 * A handle may be used by both and by ferrule/device.h at once. What every call returns is said
 * there; docs/platforms.md says where the RFC, taken to the letter, could not be followed.
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

/** @brief ferrule_device_init(). */
static inline int32_t TVMDeviceInit(tvm_device_t *tvm_dev)
{
    return ferrule_device_init(tvm_dev);
}

/** @brief Power the device and lock it: activate and open. If it can't be opened it is deactivated
 * again, and the error is that of opening. */
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

/** @brief Undo TVMDeviceOpen(): close and deactivate. What this thread has not open keeps its
 * power. */
static inline int32_t TVMDeviceClose(tvm_device_t *tvm_dev)
{
    int32_t status = ferrule_device_close(tvm_dev);

    return status == FERRULE_OK ? ferrule_device_deactivate(tvm_dev) : status;
}

/** @brief ferrule_device_destroy(). */
static inline int32_t TVMDeviceDestroy(tvm_device_t *tvm_dev)
{
    return ferrule_device_destroy(tvm_dev);
}

/** @brief ferrule_device_copy_from(), in the RFC's order of the two ends; it forgot the size. */
static inline int32_t TVMDeviceCopyFrom(tvm_device_t *source, void *destination,
                                        uint32_t device_offset, size_t bytes)
{
    return ferrule_device_copy_from(source, destination, device_offset, bytes);
}

/** @brief ferrule_device_copy_to(), in the RFC's order of the two ends; it forgot the size. */
static inline int32_t TVMDeviceCopyTo(const void *source, tvm_device_t *destination,
                                      uint32_t device_offset, size_t bytes)
{
    return ferrule_device_copy_to(destination, device_offset, source, bytes);
}

/** @brief The driver of a device that the RFC's way of binding gives: one without functions, as its
 * operators call the platform's driver themselves. */
static inline const struct ferrule_driver *tvm_device_no_driver(void)
{
    static const struct ferrule_driver none = {"tvm", NULL, NULL, NULL, NULL, NULL, 0};

    return &none;
}

/** What `bound` says of a handle that was initialised for it: destroyed again if that failed. */
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
 * declares TVMDeviceWooflesInit() with that platform's parameters; a header that is generated for a
 * model uses it if a platform's header was included before.
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
