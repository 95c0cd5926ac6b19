/* SPDX-License-Identifier: Apache-2.0 */
/** @file What differs between the ports of FreeRTOS: interrupts and critical sections. */
#ifndef FERRULE_FREERTOS_PORTS_H
#define FERRULE_FREERTOS_PORTS_H

#include "ferrule/platform/freertos.h"

#include <stdbool.h>

#ifdef ESP_PLATFORM
#include "freertos/task.h"
#else
#include "task.h"
#endif

#if configSUPPORT_STATIC_ALLOCATION != 1
#error "FreeRTOSConfig.h must set configSUPPORT_STATIC_ALLOCATION to 1: Ferrule allocates nothing"
#endif
#if configUSE_MUTEXES != 1
#error "FreeRTOSConfig.h must set configUSE_MUTEXES to 1: a device is locked by a mutex"
#endif

/* Not every port can tell whether it is in an interrupt. */
#if defined(FERRULE_FREERTOS_IN_INTERRUPT)
bool FERRULE_FREERTOS_IN_INTERRUPT(void); /* of the program */
#define IN_INTERRUPT() FERRULE_FREERTOS_IN_INTERRUPT()
#elif defined(ESP_PLATFORM)
#define IN_INTERRUPT() (xPortInIsrContext() != pdFALSE)
#elif defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define IN_INTERRUPT() (xPortIsInsideInterrupt() != pdFALSE)
#elif defined(portCHECK_IF_IN_ISR)
#define IN_INTERRUPT() (portCHECK_IF_IN_ISR() != pdFALSE)
#else
#error                                                                                             \
    "name a function of yours that returns whether an interrupt runs: -DFERRULE_FREERTOS_IN_INTERRUPT=my_in_interrupt"
#endif

/* ESP-IDF's critical sections name a spin lock, which keeps out the other core. Those of FreeRTOS
 * with configNUMBER_OF_CORES above 1 have one of their own. */
#ifdef ESP_PLATFORM
static portMUX_TYPE spinlock = portMUX_INITIALIZER_UNLOCKED;
#define ENTER_CRITICAL() portENTER_CRITICAL(&spinlock)
#define EXIT_CRITICAL()  portEXIT_CRITICAL(&spinlock)
#define ENTER_CRITICAL_FROM_ISR(masked)                                                            \
    do {                                                                                           \
        (masked) = 0;                                                                              \
        portENTER_CRITICAL_ISR(&spinlock);                                                         \
    } while (0)
#define EXIT_CRITICAL_FROM_ISR(masked)                                                             \
    do {                                                                                           \
        (void)(masked);                                                                            \
        portEXIT_CRITICAL_ISR(&spinlock);                                                          \
    } while (0)
#else
#define ENTER_CRITICAL()                taskENTER_CRITICAL()
#define EXIT_CRITICAL()                 taskEXIT_CRITICAL()
#define ENTER_CRITICAL_FROM_ISR(masked) ((masked) = taskENTER_CRITICAL_FROM_ISR())
#define EXIT_CRITICAL_FROM_ISR(masked)  taskEXIT_CRITICAL_FROM_ISR(masked)
#endif

#endif /* FERRULE_FREERTOS_PORTS_H */
