/* SPDX-License-Identifier: Apache-2.0 */
/** @file The part of Eclipse ThreadX that adapters use, for the host. */
#ifndef FERRULE_FAKE_TX_API_H
#define FERRULE_FAKE_TX_API_H

#include <stdint.h>

#include "fake_kernel.h"

#define VOID void
typedef char CHAR;
typedef unsigned char UCHAR;
typedef unsigned int UINT;
typedef unsigned long ULONG;

#ifndef TX_TIMER_TICKS_PER_SECOND
#define TX_TIMER_TICKS_PER_SECOND 1000
#endif
#define THREADX_MAJOR_VERSION 6
#define THREADX_MINOR_VERSION 4

#define TX_NO_WAIT       ((ULONG)0)
#define TX_WAIT_FOREVER  ((ULONG)0xFFFFFFFF)
#define TX_NO_INHERIT    ((UINT)0)
#define TX_INHERIT       ((UINT)1)
#define TX_INT_ENABLE    ((UINT)0)
#define TX_INT_DISABLE   ((UINT)1)
#define TX_NO_TIME_SLICE ((ULONG)0)
#define TX_AUTO_START    ((UINT)1)

#define TX_SUCCESS          ((UINT)0x00)
#define TX_DELETED          ((UINT)0x01)
#define TX_SEMAPHORE_ERROR  ((UINT)0x0C)
#define TX_NO_INSTANCE      ((UINT)0x0D)
#define TX_WAIT_ERROR       ((UINT)0x04)
#define TX_CALLER_ERROR     ((UINT)0x13)
#define TX_MUTEX_ERROR      ((UINT)0x1C)
#define TX_NOT_AVAILABLE    ((UINT)0x1D)
#define TX_NOT_OWNED        ((UINT)0x1E)
#define TX_INHERIT_ERROR    ((UINT)0x1F)
#define TX_CEILING_EXCEEDED ((UINT)0x21)

typedef struct TX_THREAD_STRUCT {
    UINT tx_thread_priority;
    VOID (*fake_entry)(ULONG input);
    ULONG fake_input;
} TX_THREAD;

typedef struct TX_MUTEX_STRUCT {
    struct fake_object fake_object;
} TX_MUTEX;

typedef struct TX_SEMAPHORE_STRUCT {
    struct fake_object fake_object;
} TX_SEMAPHORE;

UINT tx_mutex_create(TX_MUTEX *mutex, CHAR *name, UINT inherit);
UINT tx_mutex_get(TX_MUTEX *mutex, ULONG ticks);
UINT tx_mutex_put(TX_MUTEX *mutex);
UINT tx_mutex_delete(TX_MUTEX *mutex);

UINT tx_semaphore_create(TX_SEMAPHORE *semaphore, CHAR *name, ULONG count);
UINT tx_semaphore_get(TX_SEMAPHORE *semaphore, ULONG ticks);
UINT tx_semaphore_ceiling_put(TX_SEMAPHORE *semaphore, ULONG ceiling);
UINT tx_semaphore_delete(TX_SEMAPHORE *semaphore);

TX_THREAD *tx_thread_identify(VOID);
VOID tx_thread_relinquish(VOID);
UINT tx_thread_sleep(ULONG ticks);
UINT tx_thread_create(TX_THREAD *thread, CHAR *name, VOID (*entry)(ULONG input), ULONG input,
                      VOID *stack, ULONG stack_bytes, UINT priority, UINT threshold, ULONG slice,
                      UINT auto_start);
ULONG tx_time_get(VOID);
UINT tx_interrupt_control(UINT posture);

#endif /* FERRULE_FAKE_TX_API_H */
