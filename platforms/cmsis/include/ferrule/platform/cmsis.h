/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Ferrule's devices on CMSIS: accessed through a CMSIS-Driver, locked with CMSIS-RTOS2 if
 * there is a kernel.
 *
 * For CMSIS 6 (CMSIS-Driver's common interface 2.x, USART 2.4, RTOS2 2.3); nothing here depends on
 * a particular kernel, so both RTX5 and FreeRTOS's RTOS2 layer work. Macros to set on the
 * compiler's command line:
 *
 *   FERRULE_CMSIS_RTOS2              1: threads, mutexes, event flags. 0: no kernel, no waiting
 *   FERRULE_CMSIS_OPEN_TIMEOUT_MS    wait time for another thread to release the device, up to
 *                                    2147483
 *   FERRULE_CMSIS_MUTEX_BYTES        0: the kernel allocates them; otherwise the exact size of its
 *   FERRULE_CMSIS_EVENT_FLAGS_BYTES  control block, stored in the handle (RTX5: 28 and 16)
 */
#ifndef FERRULE_PLATFORM_CMSIS_H
#define FERRULE_PLATFORM_CMSIS_H

#include <stdbool.h>
#include <stdint.h>

#ifndef FERRULE_CMSIS_RTOS2
#define FERRULE_CMSIS_RTOS2 0
#endif
#ifndef FERRULE_CMSIS_OPEN_TIMEOUT_MS
#define FERRULE_CMSIS_OPEN_TIMEOUT_MS 1000u
#endif
#ifndef FERRULE_CMSIS_MUTEX_BYTES
#define FERRULE_CMSIS_MUTEX_BYTES 0
#endif
#ifndef FERRULE_CMSIS_EVENT_FLAGS_BYTES
#define FERRULE_CMSIS_EVENT_FLAGS_BYTES 0
#endif

#include "Driver_Common.h"
#if FERRULE_CMSIS_RTOS2
#include "cmsis_os2.h"
#endif

#include "ferrule/device.h"
#include "ferrule/platform.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ferrule_cmsis_usart; /* ferrule/platform/cmsis_usart.h */

/** Status of an accelerator. */
struct ferrule_cmsis_accelerator_status {
    uint32_t busy : 1;  /* with abandoned work */
    uint32_t error : 1; /* persists until power-down */
    uint32_t reserved : 30;
};

/**
 * The access struct of an accelerator, modelled on CMSIS-Driver: const, one per instance; the
 * functions have no context argument. All functions are required.
 */
struct ferrule_cmsis_accelerator {
    ARM_DRIVER_VERSION (*GetVersion)(void);                  /* major version of `api` must be 1 */
    int32_t (*Initialize)(void (*on_event)(uint32_t event)); /* on_event may be NULL */
    int32_t (*Uninitialize)(void);
    int32_t (*PowerControl)(ARM_POWER_STATE state);
    struct ferrule_cmsis_accelerator_status (*GetStatus)(void);
};

/** The required GetVersion().api of an accelerator; the minor version may differ. */
#define FERRULE_CMSIS_ACCELERATOR_API ARM_DRIVER_VERSION_MAJOR_MINOR(1, 0)

/** A device's handle; the fields are private to the adapter. Never copy a handle. */
struct ferrule_device {
    struct ferrule_device_core core;
    /* what is bound: one of the two, or neither */
    const struct ferrule_cmsis_accelerator *accelerator;
    struct ferrule_cmsis_usart *usart;
#if FERRULE_CMSIS_RTOS2
    bool guarded;  /* unguard must unlock the kernel */
    bool is_early; /* locked before the kernel ran */
    osMutexId_t lock;
#if FERRULE_CMSIS_MUTEX_BYTES > 0
    uint64_t lock_block[(FERRULE_CMSIS_MUTEX_BYTES + 7) / 8];
#endif
    osEventFlagsId_t notified; /* since the last wait */
    volatile bool is_told;     /* `notified` was set; it need not be set again */
#if FERRULE_CMSIS_EVENT_FLAGS_BYTES > 0
    uint64_t notified_block[(FERRULE_CMSIS_EVENT_FLAGS_BYTES + 7) / 8];
#endif
#else
    uint32_t masked; /* interrupt state restored by unguard */
    bool locked;
    volatile bool notified; /* since the last wait */
#endif
};

/**
 * @brief Bind the handle to a device that its driver accesses directly, through ferrule/port.h or
 * in software, and that needs no CMSIS-Driver for power. In a thread, or before the kernel runs.
 * The caller keeps ownership of `driver` and `context`, which must outlive the handle.
 * @retval FERRULE_ERR_ARGUMENT     `dev` or `driver` is null
 * @retval FERRULE_ERR_HANDLE       not initialised, or a copy
 * @retval FERRULE_ERR_STATE        already bound
 * @retval FERRULE_ERR_INTERRUPT    in an interrupt
 * @retval FERRULE_ERR_UNSTOPPABLE  the device accesses memory by itself, and `driver` has no
 *                                  `abort` with `is_stopped`
 */
int32_t ferrule_device_bind(ferrule_device_t *dev, const struct ferrule_driver *driver,
                            void *context);

/**
 * @brief Bind the handle to an accelerator with its own CMSIS-Driver. In a thread, or before the
 * kernel runs. The caller keeps ownership of `access`, `driver` and `context`, which must outlive
 * the handle.
 *
 * Activation calls Initialize and PowerControl(ARM_POWER_FULL); the last deactivation calls
 * PowerControl(ARM_POWER_OFF) and Uninitialize. A busy or failed accelerator cannot be opened. One
 * that does not obey its driver is cut by PowerControl(ARM_POWER_OFF), which CMSIS-Driver requires
 * to terminate all transfers; GetStatus must say that it is not busy any more.
 * @retval FERRULE_ERR_ARGUMENT     a pointer is null, or `access` lacks a function
 * @retval FERRULE_ERR_UNSUPPORTED  the access struct has another major version
 */
int32_t ferrule_device_bind_accelerator(ferrule_device_t *dev,
                                        const struct ferrule_cmsis_accelerator *access,
                                        const struct ferrule_driver *driver, void *context);

/**
 * @brief Bind the handle to a device attached to a USART. Otherwise like ferrule_device_bind();
 * `usart` is defined with FERRULE_CMSIS_USART and used for this device only.
 *
 * Activation calls ferrule_cmsis_usart_start(), the last deactivation ferrule_cmsis_usart_stop().
 * The driver communicates through ferrule_cmsis_usart_transport().
 * @retval FERRULE_ERR_UNSUPPORTED  the USART's driver has another major version, or no asynchronous
 *                                  mode
 * @retval FERRULE_ERR_MEMORY       the kernel has no event flags left
 */
int32_t ferrule_device_bind_usart(ferrule_device_t *dev, struct ferrule_cmsis_usart *usart,
                                  const struct ferrule_driver *driver, void *context);

/** @brief Convert a CMSIS-Driver code to a status; driver-specific codes (-6 and below) become
 * FERRULE_ERR_DEVICE. Any context. */
int32_t ferrule_cmsis_driver_status(int32_t code);

#if FERRULE_CMSIS_RTOS2
/** @brief Convert a CMSIS-RTOS2 code to a status. Any context. */
int32_t ferrule_cmsis_kernel_status(osStatus_t code);

/** @brief Convert milliseconds to kernel ticks, rounded up; never osWaitForever. Any context. */
uint32_t ferrule_cmsis_ticks(uint32_t milliseconds);
#endif

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_CMSIS_H */
