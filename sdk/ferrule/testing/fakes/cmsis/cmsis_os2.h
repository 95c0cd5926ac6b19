/* SPDX-License-Identifier: Apache-2.0 */
/** @file The part of the CMSIS-RTOS2 API, version 2.3, that adapters use, for the host. */
#ifndef FERRULE_FAKE_CMSIS_OS2_H
#define FERRULE_FAKE_CMSIS_OS2_H

#include <stddef.h>
#include <stdint.h>

#define osWaitForever 0xFFFFFFFFU

typedef enum {
    osOK = 0,
    osError = -1,
    osErrorTimeout = -2,
    osErrorResource = -3,
    osErrorParameter = -4,
    osErrorNoMemory = -5,
    osErrorISR = -6,
    osErrorSafetyClass = -7,
    osStatusReserved = 0x7FFFFFFF
} osStatus_t;

typedef enum {
    osKernelInactive = 0,
    osKernelReady = 1,
    osKernelRunning = 2,
    osKernelLocked = 3,
    osKernelSuspended = 4,
    osKernelError = -1,
    osKernelReserved = 0x7FFFFFFF
} osKernelState_t;

/** The priorities of CMSIS-RTOS2 that are multiples of eight; there are more between them. */
typedef enum {
    osPriorityNone = 0,
    osPriorityIdle = 1,
    osPriorityLow = 8,
    osPriorityBelowNormal = 16,
    osPriorityNormal = 24,
    osPriorityAboveNormal = 32,
    osPriorityHigh = 40,
    osPriorityRealtime = 48,
    osPriorityISR = 56,
    osPriorityError = -1,
    osPriorityReserved = 0x7FFFFFFF
} osPriority_t;

typedef void *osThreadId_t;
typedef void (*osThreadFunc_t)(void *argument);
typedef void *osMutexId_t;
typedef void *osSemaphoreId_t;
typedef void *osEventFlagsId_t;

#define osMutexRecursive   0x00000001U
#define osMutexPrioInherit 0x00000002U
#define osMutexRobust      0x00000008U

#define osFlagsWaitAny        0x00000000U
#define osFlagsWaitAll        0x00000001U
#define osFlagsNoClear        0x00000002U
#define osFlagsError          0x80000000U
#define osFlagsErrorUnknown   0xFFFFFFFFU
#define osFlagsErrorTimeout   0xFFFFFFFEU
#define osFlagsErrorResource  0xFFFFFFFDU
#define osFlagsErrorParameter 0xFFFFFFFCU
#define osFlagsErrorISR       0xFFFFFFFAU

typedef struct {
    const char *name;
    uint32_t attr_bits;
    void *cb_mem;
    uint32_t cb_size;
} osMutexAttr_t;

typedef struct {
    const char *name;
    uint32_t attr_bits;
    void *cb_mem;
    uint32_t cb_size;
} osSemaphoreAttr_t;

typedef struct {
    const char *name;
    uint32_t attr_bits;
    void *cb_mem;
    uint32_t cb_size;
} osEventFlagsAttr_t;

typedef uint32_t TZ_ModuleId_t;

typedef struct {
    const char *name;
    uint32_t attr_bits;
    void *cb_mem;
    uint32_t cb_size;
    void *stack_mem;
    uint32_t stack_size;
    osPriority_t priority;
    TZ_ModuleId_t tz_module;
    uint32_t affinity_mask;
} osThreadAttr_t;

osKernelState_t osKernelGetState(void);
int32_t osKernelLock(void);
int32_t osKernelUnlock(void);
int32_t osKernelRestoreLock(int32_t lock);
uint32_t osKernelGetTickCount(void);
uint32_t osKernelGetTickFreq(void);
uint32_t osKernelGetSysTimerCount(void);
uint32_t osKernelGetSysTimerFreq(void);
osThreadId_t osThreadNew(osThreadFunc_t func, void *argument, const osThreadAttr_t *attr);
_Noreturn void osThreadExit(void);
osPriority_t osThreadGetPriority(osThreadId_t thread_id);
osThreadId_t osThreadGetId(void);
osStatus_t osThreadYield(void);
osStatus_t osDelay(uint32_t ticks);

osMutexId_t osMutexNew(const osMutexAttr_t *attr);
osStatus_t osMutexAcquire(osMutexId_t mutex_id, uint32_t timeout);
osStatus_t osMutexRelease(osMutexId_t mutex_id);
osThreadId_t osMutexGetOwner(osMutexId_t mutex_id);
osStatus_t osMutexDelete(osMutexId_t mutex_id);

osSemaphoreId_t osSemaphoreNew(uint32_t max_count, uint32_t initial_count,
                               const osSemaphoreAttr_t *attr);
osStatus_t osSemaphoreAcquire(osSemaphoreId_t semaphore_id, uint32_t timeout);
osStatus_t osSemaphoreRelease(osSemaphoreId_t semaphore_id);
uint32_t osSemaphoreGetCount(osSemaphoreId_t semaphore_id);
osStatus_t osSemaphoreDelete(osSemaphoreId_t semaphore_id);

osEventFlagsId_t osEventFlagsNew(const osEventFlagsAttr_t *attr);
uint32_t osEventFlagsSet(osEventFlagsId_t ef_id, uint32_t flags);
uint32_t osEventFlagsClear(osEventFlagsId_t ef_id, uint32_t flags);
uint32_t osEventFlagsGet(osEventFlagsId_t ef_id);
uint32_t osEventFlagsWait(osEventFlagsId_t ef_id, uint32_t flags, uint32_t options,
                          uint32_t timeout);
osStatus_t osEventFlagsDelete(osEventFlagsId_t ef_id);

#endif /* FERRULE_FAKE_CMSIS_OS2_H */
