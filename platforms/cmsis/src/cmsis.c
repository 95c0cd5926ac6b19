/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/platform/cmsis.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ferrule/platform.h"
#include "ferrule/platform/cmsis_usart.h"
#include "ferrule/port.h"
#include "ferrule/sleep.h"
#include "ferrule/tick.h"

_Static_assert(offsetof(struct ferrule_device, core) == 0, "device.c finds its part at the start");

int32_t ferrule_cmsis_driver_status(int32_t code)
{
    switch (code) {
    case ARM_DRIVER_OK:
        return FERRULE_OK;
    case ARM_DRIVER_ERROR_BUSY:
        return FERRULE_ERR_BUSY;
    case ARM_DRIVER_ERROR_TIMEOUT:
        return FERRULE_ERR_TIMEOUT;
    case ARM_DRIVER_ERROR_UNSUPPORTED:
        return FERRULE_ERR_UNSUPPORTED;
    case ARM_DRIVER_ERROR_PARAMETER:
        return FERRULE_ERR_ARGUMENT;
    default: /* ARM_DRIVER_ERROR, driver-specific codes, and unknown codes */
        return FERRULE_ERR_DEVICE;
    }
}

bool ferrule_platform_in_interrupt(void)
{
    return ferrule_port_in_interrupt();
}

/* Clears the binding and returns the USART, if one was bound. No other thread can use the handle
 * any more. */
static struct ferrule_cmsis_usart *unbind(ferrule_device_t *dev)
{
    struct ferrule_cmsis_usart *usart = dev->usart;
    dev->accelerator = NULL;
    dev->usart = NULL;
    ferrule_platform_unguard(dev);
    return usart;
}

#if FERRULE_CMSIS_RTOS2

#define NOTIFIED 1u
#define LOOK_US  100000u /* then a wait lets the caller look: a signal may have failed */

_Static_assert(FERRULE_CMSIS_OPEN_TIMEOUT_MS <= FERRULE_WAIT_MOST / 1000u,
               "FERRULE_CMSIS_OPEN_TIMEOUT_MS is too long");

int32_t ferrule_cmsis_kernel_status(osStatus_t code)
{
    switch (code) {
    case osOK:
        return FERRULE_OK;
    case osErrorTimeout:
        return FERRULE_ERR_TIMEOUT;
    case osErrorResource:
        return FERRULE_ERR_BUSY;
    case osErrorParameter: /* the object is the only parameter that can be wrong */
        return FERRULE_ERR_HANDLE;
    case osErrorNoMemory:
        return FERRULE_ERR_MEMORY;
    case osErrorISR:
        return FERRULE_ERR_INTERRUPT;
    case osErrorSafetyClass:
        return FERRULE_ERR_UNAVAILABLE;
    default:
        return FERRULE_ERR_FAILED;
    }
}

uint32_t ferrule_cmsis_ticks(uint32_t milliseconds)
{
    const uint64_t ticks = ((uint64_t)milliseconds * osKernelGetTickFreq() + 999u) / 1000u;
    return ticks < osWaitForever ? (uint32_t)ticks : osWaitForever - 1u;
}

/* Before that there is one thread, and kernels refuse to lock and to wait. */
static bool is_running(void)
{
    const osKernelState_t state = osKernelGetState();
    return state != osKernelInactive && state != osKernelReady;
}

const void *ferrule_platform_thread(void)
{
    static const char before_the_kernel; /* only its address is used */
    const void *thread = osThreadGetId();
    return thread != NULL ? thread : &before_the_kernel;
}

int32_t ferrule_platform_priority(void)
{
    return is_running() ? (int32_t)osThreadGetPriority(osThreadGetId()) : 0;
}

void ferrule_platform_yield(void)
{
    (void)osThreadYield(); /* fails if no other thread can run */
}

int32_t ferrule_platform_init(ferrule_device_t *dev)
{
    /* Recursive, so that a thread never waits for itself, whatever the kernel. */
    osMutexAttr_t attributes = {.name = "ferrule device",
                                .attr_bits = osMutexRecursive | osMutexPrioInherit};
#if FERRULE_CMSIS_MUTEX_BYTES > 0
    attributes.cb_mem = dev->lock_block;
    attributes.cb_size = FERRULE_CMSIS_MUTEX_BYTES;
#endif
    dev->accelerator = NULL;
    dev->usart = NULL;
    dev->guarded = false;
    dev->is_early = false;
    dev->is_told = false;
    osEventFlagsAttr_t flags = {.name = "ferrule device"};
#if FERRULE_CMSIS_EVENT_FLAGS_BYTES > 0
    flags.cb_mem = dev->notified_block;
    flags.cb_size = FERRULE_CMSIS_EVENT_FLAGS_BYTES;
#endif
    dev->lock = osMutexNew(&attributes);
    if (dev->lock == NULL) {
        return FERRULE_ERR_MEMORY;
    }
    dev->notified = osEventFlagsNew(&flags);
    if (dev->notified == NULL) {
        (void)osMutexDelete(dev->lock);
        dev->lock = NULL;
        return FERRULE_ERR_MEMORY;
    }
    return FERRULE_OK;
}

int32_t ferrule_platform_destroy(ferrule_device_t *dev)
{
    struct ferrule_cmsis_usart *usart = unbind(dev);
    const int32_t signal = usart != NULL ? ferrule_cmsis_usart_release(usart) : FERRULE_OK;
    const int32_t lock = ferrule_cmsis_kernel_status(osMutexDelete(dev->lock));
    const int32_t flags = ferrule_cmsis_kernel_status(osEventFlagsDelete(dev->notified));
    dev->lock = NULL;
    dev->notified = NULL;
    if (signal != FERRULE_OK) {
        return signal;
    }
    return lock != FERRULE_OK ? lock : flags;
}

/* Not a mutex: a handle may be destroyed while other threads enter, and not every kernel can delete
 * a mutex that has waiters. Before the kernel runs, it neither can nor needs to be locked. */
void ferrule_platform_guard(ferrule_device_t *dev)
{
    /* If the caller has locked the kernel, it stays locked: kernels differ in whether locks nest.
     */
    const bool ours = osKernelGetState() == osKernelRunning && osKernelLock() == 0;
    dev->guarded = ours; /* not earlier: another thread may hold the guard */
}

void ferrule_platform_unguard(ferrule_device_t *dev)
{
    if (dev->guarded) {
        (void)osKernelUnlock(); /* this thread locked the kernel */
    }
}

uint32_t ferrule_platform_open_timeout_us(void)
{
    return FERRULE_CMSIS_OPEN_TIMEOUT_MS * 1000u;
}

/* Since the last tick. Not every kernel counts its timer from a tick. With interrupts masked. */
static uint32_t phase_us(uint32_t rate)
{
    const uint32_t clock = osKernelGetSysTimerFreq();
    const uint32_t period = clock / rate;
    const uint32_t ticks = osKernelGetTickCount();
    const uint32_t passed = osKernelGetSysTimerCount() - ticks * period;
    return passed / 2u < period ? (uint32_t)((uint64_t)passed * 1000000u / clock)
                                : FERRULE_TICK_NO_PHASE;
}

static uint32_t phase_now_us(uint32_t rate)
{
    const uint32_t masked = ferrule_port_critical_enter();
    const uint32_t phase = phase_us(rate);
    ferrule_port_critical_exit(masked);
    return phase;
}

static uint32_t ticks_of(uint32_t microseconds)
{
    const uint32_t rate = osKernelGetTickFreq();
    return ferrule_tick_count(microseconds, phase_now_us(rate), rate);
}

/* What is locked before the kernel runs is unlocked before, too. */
static int32_t lock_early(ferrule_device_t *dev)
{
    if (dev->is_early) {
        return FERRULE_ERR_BUSY;
    }
    dev->is_early = true;
    return FERRULE_OK;
}

int32_t ferrule_platform_lock(ferrule_device_t *dev, uint32_t timeout_us)
{
    if (dev->is_early || !is_running()) {
        return lock_early(dev);
    }
    uint32_t ticks = timeout_us == 0u ? 0u : ticks_of(timeout_us);
    if (osKernelGetState() == osKernelLocked) {
        ticks = 0; /* no other thread could run and unlock it */
    }
    return ferrule_cmsis_kernel_status(osMutexAcquire(dev->lock, ticks));
}

int32_t ferrule_platform_unlock(ferrule_device_t *dev)
{
    if (dev->is_early) {
        dev->is_early = false;
        return FERRULE_OK;
    }
    return ferrule_cmsis_kernel_status(osMutexRelease(dev->lock));
}

/* Before the kernel runs, time stands still, and each look counts as a microsecond. */
uint32_t ferrule_platform_now_us(void)
{
    static struct ferrule_tick_clock clock;
    static uint32_t ticks;
    const uint32_t masked = ferrule_port_critical_enter();
    const uint32_t rate = osKernelGetTickFreq();
    const uint32_t passed = osKernelGetTickCount() - ticks;
    const uint32_t phase = phase_us(rate);
    ticks += passed;
    clock.us += is_running() ? 0u : 1u;
    uint32_t now = ferrule_tick_add(&clock, passed, rate);
    if (phase != FERRULE_TICK_NO_PHASE && is_running()) {
        now += phase;
    }
    ferrule_port_critical_exit(masked);
    return now;
}

/* Too short for a tick: the caller looks at the device again. */
static int32_t poll(ferrule_device_t *dev)
{
    const uint32_t flags = osEventFlagsWait(dev->notified, NOTIFIED, osFlagsWaitAny, 0u);
    if ((flags & osFlagsError) == 0u) {
        dev->is_told = false;
    } else {
        ferrule_platform_yield();
    }
    return FERRULE_OK;
}

int32_t ferrule_platform_wait(ferrule_device_t *dev, uint32_t timeout_us)
{
    const uint32_t limit_us = timeout_us < LOOK_US ? timeout_us : LOOK_US;
    const uint32_t rate = osKernelGetTickFreq();
    const uint32_t phase = phase_now_us(rate);
    if (!is_running()) {
        return FERRULE_OK;
    }
    if (ferrule_tick_polls(timeout_us, phase, rate)) {
        return poll(dev);
    }
    const uint32_t flags = osEventFlagsWait(dev->notified, NOTIFIED, osFlagsWaitAny,
                                            ferrule_tick_count(limit_us, phase, rate));
    if ((flags & osFlagsError) != 0u) {
        return ferrule_cmsis_kernel_status((osStatus_t)flags);
    }
    dev->is_told = false; /* before the caller looks: a later interrupt ends the next wait */
    return FERRULE_OK;
}

/* Not for each interrupt, because kernels can queue few signals from interrupts. If the queue is
 * full, the next interrupt tries again, and the thread looks by itself after LOOK_US. */
void ferrule_platform_notify(ferrule_device_t *dev)
{
    if (!dev->is_told) {
        dev->is_told = true; /* before the call: the thread may run, and wait again, during it */
        if ((osEventFlagsSet(dev->notified, NOTIFIED) & osFlagsError) != 0u) {
            dev->is_told = false;
        }
    }
}

#else /* no kernel: one thread, or cooperative tasks */

const void *ferrule_platform_thread(void)
{
    return ferrule_port_thread();
}

int32_t ferrule_platform_priority(void)
{
    return 0; /* no task waits for another */
}

void ferrule_platform_yield(void)
{
}

int32_t ferrule_platform_init(ferrule_device_t *dev)
{
    dev->accelerator = NULL;
    dev->usart = NULL;
    dev->masked = 0;
    dev->locked = false;
    dev->notified = false;
    return FERRULE_OK;
}

int32_t ferrule_platform_destroy(ferrule_device_t *dev)
{
    struct ferrule_cmsis_usart *usart = unbind(dev);
    return usart != NULL ? ferrule_cmsis_usart_release(usart) : FERRULE_OK;
}

void ferrule_platform_guard(ferrule_device_t *dev)
{
    const uint32_t masked = ferrule_port_critical_enter();
    dev->masked = masked; /* not earlier: the interrupted code may hold the guard */
}

void ferrule_platform_unguard(ferrule_device_t *dev)
{
    ferrule_port_critical_exit(dev->masked);
}

uint32_t ferrule_platform_open_timeout_us(void)
{
    return 0; /* no other task runs meanwhile */
}

int32_t ferrule_platform_lock(ferrule_device_t *dev, uint32_t timeout_us)
{
    (void)timeout_us;
    const uint32_t masked = ferrule_port_critical_enter();
    const bool taken = dev->locked;
    dev->locked = true;
    ferrule_port_critical_exit(masked);
    return taken ? FERRULE_ERR_BUSY : FERRULE_OK;
}

int32_t ferrule_platform_unlock(ferrule_device_t *dev)
{
    dev->locked = false;
    return FERRULE_OK;
}

uint32_t ferrule_platform_now_us(void)
{
    return ferrule_sleep_now_us();
}

int32_t ferrule_platform_wait(ferrule_device_t *dev, uint32_t timeout_us)
{
    return ferrule_sleep_until(&dev->notified, timeout_us);
}

void ferrule_platform_notify(ferrule_device_t *dev)
{
    dev->notified = true;
}

#endif /* FERRULE_CMSIS_RTOS2 */

int32_t ferrule_device_bind(ferrule_device_t *dev, const struct ferrule_driver *driver,
                            void *context)
{
    return ferrule_device_bind_driver(dev, driver, context);
}

static bool is_whole(const struct ferrule_cmsis_accelerator *access)
{
    return access->GetVersion != NULL && access->Initialize != NULL &&
           access->Uninitialize != NULL && access->PowerControl != NULL &&
           access->GetStatus != NULL;
}

int32_t ferrule_device_bind_accelerator(ferrule_device_t *dev,
                                        const struct ferrule_cmsis_accelerator *access,
                                        const struct ferrule_driver *driver, void *context)
{
    const int32_t allowed = ferrule_device_may_bind(dev);
    if (allowed != FERRULE_OK) {
        return allowed;
    }
    if (access == NULL || !is_whole(access)) {
        return FERRULE_ERR_ARGUMENT;
    }
    if (access->GetVersion().api >> 8 != FERRULE_CMSIS_ACCELERATOR_API >> 8) {
        return FERRULE_ERR_UNSUPPORTED;
    }
    dev->accelerator = access;
    dev->core.can_cut = true;
    const int32_t status = ferrule_device_bind_driver(dev, driver, context);
    if (status != FERRULE_OK) {
        dev->accelerator = NULL;
        dev->core.can_cut = false;
    }
    return status;
}

int32_t ferrule_device_bind_usart(ferrule_device_t *dev, struct ferrule_cmsis_usart *usart,
                                  const struct ferrule_driver *driver, void *context)
{
    int32_t status = ferrule_device_may_bind(dev);
    if (status != FERRULE_OK) {
        return status;
    }
    status = ferrule_cmsis_usart_init(usart);
    if (status != FERRULE_OK) {
        return status;
    }
    dev->usart = usart;
    status = ferrule_device_bind_driver(dev, driver, context);
    if (status != FERRULE_OK) {
        dev->usart = NULL;
        (void)ferrule_cmsis_usart_release(usart); /* the first error is returned */
    }
    return status;
}

int32_t ferrule_platform_ready(const ferrule_device_t *dev)
{
    if (dev->usart != NULL) {
        return dev->usart->driver->GetStatus().tx_busy != 0u ? FERRULE_ERR_UNAVAILABLE : FERRULE_OK;
    }
    if (dev->accelerator == NULL) {
        return FERRULE_OK; /* a device without a CMSIS-Driver is always ready */
    }
    const struct ferrule_cmsis_accelerator_status status = dev->accelerator->GetStatus();
    return status.busy != 0u || status.error != 0u ? FERRULE_ERR_UNAVAILABLE : FERRULE_OK;
}

static int32_t power_down(const struct ferrule_cmsis_accelerator *access)
{
    int32_t code = access->PowerControl(ARM_POWER_OFF);
    if (code == ARM_DRIVER_OK) { /* a powered driver must not be uninitialised */
        code = access->Uninitialize();
    }
    return ferrule_cmsis_driver_status(code);
}

static int32_t power_up(const struct ferrule_cmsis_accelerator *access)
{
    int32_t code = access->Initialize(NULL);
    if (code != ARM_DRIVER_OK) {
        return ferrule_cmsis_driver_status(code);
    }
    code = access->PowerControl(ARM_POWER_FULL);
    if (code != ARM_DRIVER_OK) {
        (void)power_down(access); /* the first error is returned */
    }
    return ferrule_cmsis_driver_status(code);
}

int32_t ferrule_platform_power(ferrule_device_t *dev, bool on)
{
    if (dev->usart != NULL) {
        return on ? ferrule_cmsis_usart_start(dev->usart) : ferrule_cmsis_usart_stop(dev->usart);
    }
    if (dev->accelerator == NULL) {
        return FERRULE_OK;
    }
    return on ? power_up(dev->accelerator) : power_down(dev->accelerator);
}

/* An accelerator with a CMSIS-Driver is switched off, which ends all its transfers; other devices
 * have no such means. */
int32_t ferrule_platform_cut(ferrule_device_t *dev)
{
    if (dev->accelerator == NULL) {
        return FERRULE_ERR_UNSUPPORTED;
    }
    const int32_t code = dev->accelerator->PowerControl(ARM_POWER_OFF);
    if (code != ARM_DRIVER_OK) {
        return ferrule_cmsis_driver_status(code);
    }
    if (dev->accelerator->GetStatus().busy != 0u) {
        return FERRULE_ERR_DEVICE;
    }
    (void)dev->accelerator->Uninitialize(); /* the device is off all the same */
    return FERRULE_OK;
}
