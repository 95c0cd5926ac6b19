/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "fake.h"
#include "ferrule_fake_port.h"

enum { STACK_BYTES = 1 << 16, MAX_THREADS = 64 };

static ferrule_fake_mmio access_register;
static uint32_t (*bus_address_of)(uintptr_t pointer);
static void (*device_told)(const struct ferrule_fake_device *device);
static uint64_t alarm_us = FAKE_FOREVER;

void ferrule_fake_use_mmio(ferrule_fake_mmio mmio)
{
    access_register = mmio;
}

static uint32_t use(uintptr_t address, uint32_t width, uint32_t write, uint32_t value)
{
    fake_lock();
    (void)fake_tick(); /* so that polling takes time */
    fake_unlock();
    fake_run_events();
    if (access_register == NULL) {
        fake_misuse("register 0x%08lx is accessed, but no device is attached",
                    (unsigned long)address);
        return 0;
    }
    return access_register(address, width, write, value);
}

uint32_t ferrule_mmio_read32(uintptr_t address)
{
    return use(address, 4, 0, 0);
}

void ferrule_mmio_write32(uintptr_t address, uint32_t value)
{
    (void)use(address, 4, 1, value);
}

void ferrule_fake_use_bus(uint32_t (*address_of)(uintptr_t pointer))
{
    bus_address_of = address_of;
}

uint32_t ferrule_bus_address(const volatile void *pointer)
{
    return bus_address_of((uintptr_t)pointer);
}

void ferrule_fake_use_devices(void (*told)(const struct ferrule_fake_device *device))
{
    device_told = told;
}

void fake_tell_device(const struct ferrule_fake_device *device)
{
    if (device_told != NULL) {
        device_told(device);
    }
}

void ferrule_port_barrier(void)
{
    __sync_synchronize();
}

bool ferrule_port_in_interrupt(void)
{
    FAKE_CALL(call, NULL);
    if (!call.replaced) {
        call.result = fake_in_interrupt();
    }
    return fake_end(&call) != 0;
}

const void *ferrule_port_thread(void)
{
    static const char threads[MAX_THREADS]; /* only the addresses are used */
    FAKE_CALL(call, NULL);
    fake_lock();
    call.result = fake_thread() % MAX_THREADS;
    fake_unlock();
    return &threads[fake_end(&call)];
}

uint32_t ferrule_port_now_us(void)
{
    FAKE_CALL(call, NULL);
    call.result = (int64_t)(ferrule_fake_now_us() & UINT32_MAX);
    return (uint32_t)fake_end(&call);
}

uint32_t ferrule_port_critical_enter(void)
{
    FAKE_CALL(call, NULL);
    fake_mask_interrupts();
    return (uint32_t)fake_end(&call);
}

void ferrule_port_critical_exit(uint32_t masked)
{
    FAKE_CALL(call, NULL, masked);
    fake_unmask_interrupts();
    (void)fake_end(&call);
}

/* Otherwise an interrupt could come after the last look and before the sleep. */
static void check_masked(const char *name)
{
    if (fake_masks() == 0u) {
        fake_misuse("%s with interrupts enabled", name);
    }
}

void ferrule_port_alarm(uint32_t after_us)
{
    FAKE_CALL(call, NULL, after_us);
    check_masked("ferrule_port_alarm");
    fake_lock();
    alarm_us = fake_deadline_us(after_us);
    fake_unlock();
    (void)fake_end(&call);
}

static bool was_interrupted(const void *before)
{
    return fake_interrupts() != *(const uint32_t *)before;
}

void ferrule_port_sleep(uint32_t masked)
{
    FAKE_CALL(call, NULL, masked);
    const uint32_t before = fake_interrupts();
    check_masked("ferrule_port_sleep");
    if (fake_masks() > 0u) {
        fake_unmask_interrupts();
    }
    fake_lock();
    (void)fake_wait("ferrule_port_sleep", was_interrupted, &before, alarm_us);
    alarm_us = FAKE_FOREVER;
    fake_unlock();
    (void)fake_end(&call);
}

uintptr_t ferrule_port_stack_pointer(void)
{
    return (uintptr_t)__builtin_frame_address(0);
}

/* A small stack around the stack pointer. */
uintptr_t ferrule_port_stack_limit(void)
{
    return ferrule_port_stack_pointer() - STACK_BYTES;
}

uintptr_t ferrule_port_stack_top(void)
{
    return ferrule_port_stack_pointer() + STACK_BYTES;
}
