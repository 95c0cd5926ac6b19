/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Ferrule's devices on CMSIS: reached by a CMSIS-Driver, locked by CMSIS-RTOS2 where there is
 * a kernel.
 *
 * For CMSIS 6 (CMSIS-Driver's common interface 2.x, USART 2.4, RTOS2 2.3); nothing here depends on
 * a kernel, so that RTX5 and FreeRTOS's RTOS2 layer both do. Set by the compiler's command line:
 *
 *   FERRULE_CMSIS_RTOS2              1: threads, mutexes, event flags. 0: no kernel, nothing waits
 *   FERRULE_CMSIS_OPEN_TIMEOUT_MS    how long a call waits for a thread that has the device
 *   FERRULE_CMSIS_MUTEX_BYTES        0: the kernel allocates them. Else the exact size of its
 *   FERRULE_CMSIS_EVENT_FLAGS_BYTES  control block, which handles then hold (RTX5: 28 and 16)
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

/** What an accelerator is doing. */
struct ferrule_cmsis_accelerator_status {
    uint32_t busy : 1;  /* with work that nobody waits for any more */
    uint32_t error : 1; /* and stays so until it is powered down */
    uint32_t reserved : 30;
};

/**
 * The access struct of an accelerator, in the manner of CMSIS-Driver: const, one per instance, the
 * functions carry no context. All must be there.
 */
struct ferrule_cmsis_accelerator {
    ARM_DRIVER_VERSION (*GetVersion)(void);                  /* its api has the major version 1 */
    int32_t (*Initialize)(void (*on_event)(uint32_t event)); /* on_event may be NULL */
    int32_t (*Uninitialize)(void);
    int32_t (*PowerControl)(ARM_POWER_STATE state);
    struct ferrule_cmsis_accelerator_status (*GetStatus)(void);
};

/** What GetVersion().api of an accelerator must be, but for its minor version. */
#define FERRULE_CMSIS_ACCELERATOR_API ARM_DRIVER_VERSION_MAJOR_MINOR(1, 0)

/** A device's handle; the fields are the adapter's. Never copy one. */
struct ferrule_device {
    struct ferrule_device_core core;
    /* what is bound: one of the two or none */
    const struct ferrule_cmsis_accelerator *accelerator;
    struct ferrule_cmsis_usart *usart;
#if FERRULE_CMSIS_RTOS2
    bool guarded; /* and the kernel is to be unlocked */
    osMutexId_t lock;
#if FERRULE_CMSIS_MUTEX_BYTES > 0
    uint64_t lock_block[(FERRULE_CMSIS_MUTEX_BYTES + 7) / 8];
#endif
#else
    uint32_t masked; /* what the guard restores */
    bool locked;
#endif
};

/**
 * @brief Say what the handle stands for: a device that its driver reaches by itself, through
 * ferrule/port.h or in software, and that needs no CMSIS-Driver for power. A thread, or before the
 * kernel runs. `driver` and `context` stay the caller's and must outlive the handle.
 * @retval FERRULE_ERR_ARGUMENT   `dev` or `driver` is null
 * @retval FERRULE_ERR_HANDLE     not initialised, or a copy
 * @retval FERRULE_ERR_STATE      bound already
 * @retval FERRULE_ERR_INTERRUPT  in an interrupt
 */
int32_t ferrule_device_bind(ferrule_device_t *dev, const struct ferrule_driver *driver,
                            void *context);

/**
 * @brief Say what the handle stands for: an accelerator with a CMSIS-Driver of its own. A thread,
 * or before the kernel runs. `access` and `context` stay the caller's and must outlive the handle.
 *
 * Activation is Initialize and PowerControl(ARM_POWER_FULL), the last deactivation
 * PowerControl(ARM_POWER_OFF) and Uninitialize. A busy or failed accelerator does not open.
 * @retval FERRULE_ERR_ARGUMENT     a pointer is null, `access` lacks a function
 * @retval FERRULE_ERR_UNSUPPORTED  the access struct has another major version
 */
int32_t ferrule_device_bind_accelerator(ferrule_device_t *dev,
                                        const struct ferrule_cmsis_accelerator *access,
                                        const struct ferrule_driver *driver, void *context);

/**
 * @brief Say what the handle stands for: a device at the other end of a USART. As
 * ferrule_device_bind(); `usart` is made by FERRULE_CMSIS_USART, for this device alone.
 *
 * Activation is ferrule_cmsis_usart_start(), the last deactivation ferrule_cmsis_usart_stop(). The
 * driver talks through ferrule_cmsis_usart_transport().
 * @retval FERRULE_ERR_UNSUPPORTED  the USART's driver has another major version, or no asynchronous
 *                                  mode
 * @retval FERRULE_ERR_MEMORY       the kernel has no more event flags
 */
int32_t ferrule_device_bind_usart(ferrule_device_t *dev, struct ferrule_cmsis_usart *usart,
                                  const struct ferrule_driver *driver, void *context);

/** @brief What a code of CMSIS-Driver means here; those of one kind of driver (-6 and below) are
 * FERRULE_ERR_DEVICE. Any context. */
int32_t ferrule_cmsis_driver_status(int32_t code);

#if FERRULE_CMSIS_RTOS2
/** @brief What a code of CMSIS-RTOS2 means here. Any context. */
int32_t ferrule_cmsis_kernel_status(osStatus_t code);

/** @brief Milliseconds as ticks of the kernel, rounded up; never osWaitForever. Any context. */
uint32_t ferrule_cmsis_ticks(uint32_t milliseconds);
#endif

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_CMSIS_H */
