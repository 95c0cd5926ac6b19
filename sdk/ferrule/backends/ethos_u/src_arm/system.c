/* SPDX-License-Identifier: Apache-2.0 */
/* What Arm's driver asks of a system; each function replaces a weak one of ethosu_driver.c. */
#include "ethos_u/arm.h"

#include "ferrule/port.h"

/* Declared nowhere: the driver only has a weak definition. */
uint64_t ethosu_address_remap(uint64_t address, int index);

/* ---- semaphores: one of the driver, and one of each active device */

struct ethos_u_semaphore {
    uint32_t count;
    bool is_used;
};

static struct ethos_u_semaphore semaphores[1u + ETHOS_U_ARM_DEVICES];

void *ethosu_semaphore_create(void)
{
    const uint32_t masked = ferrule_port_critical_enter();
    struct ethos_u_semaphore *found = NULL;

    for (uint32_t index = 0; index < 1u + ETHOS_U_ARM_DEVICES && found == NULL; index++) {
        if (!semaphores[index].is_used) {
            found = &semaphores[index];
            found->count = 0;
            found->is_used = true;
        }
    }
    ferrule_port_critical_exit(masked);
    return found;
}

void ethosu_semaphore_destroy(void *sem)
{
    struct ethos_u_semaphore *semaphore = sem;

    semaphore->is_used = false;
}

/* Never waits: ferrule_device_finish() has waited, with the platform's wait and the time limit of
 * the command, before the driver takes its semaphore. One that was not given is a timeout. */
int ethosu_semaphore_take(void *sem, uint64_t timeout)
{
    const uint32_t masked = ferrule_port_critical_enter();
    struct ethos_u_semaphore *semaphore = sem;
    const bool is_given = semaphore->count != 0u;

    (void)timeout;
    if (is_given) {
        semaphore->count--;
    }
    ferrule_port_critical_exit(masked);
    return is_given ? 0 : -1;
}

/* The interrupt handler's caller notifies the device API, so this wakes nobody. */
int ethosu_semaphore_give(void *sem)
{
    const uint32_t masked = ferrule_port_critical_enter();
    struct ethos_u_semaphore *semaphore = sem;

    semaphore->count++;
    ferrule_port_critical_exit(masked);
    return 0;
}

/* ---- the mutex, which protects the driver's list of devices for a few instructions */

static uint32_t mutex_masked;

void *ethosu_mutex_create(void)
{
    return &mutex_masked;
}

void ethosu_mutex_destroy(void *mutex)
{
    (void)mutex;
}

int ethosu_mutex_lock(void *mutex)
{
    const uint32_t masked = ferrule_port_critical_enter();

    *(uint32_t *)mutex = masked;
    return 0;
}

int ethosu_mutex_unlock(void *mutex)
{
    ferrule_port_critical_exit(*(uint32_t *)mutex);
    return 0;
}

/* ---- memory: the addresses are the core's, and the driver asks for those of the bus */

/* The NPU writes to all regions but the first. No line of theirs may stay dirty in the cache, which
 * would write it back over a result. */
void ethosu_flush_dcache(const uint64_t *base_addr, const size_t *base_addr_size, int num_base_addr)
{
    for (int index = 0; index < num_base_addr; index++) {
        const void *start = (const void *)(uintptr_t)base_addr[index];

        if (index == (int)ETHOS_U_READ_ONLY) {
            ferrule_cache_clean(start, base_addr_size[index]);
        } else {
            ferrule_cache_invalidate(start, base_addr_size[index]);
        }
    }
    ferrule_port_barrier();
}

void ethosu_invalidate_dcache(const uint64_t *base_addr, const size_t *base_addr_size,
                              int num_base_addr)
{
    ferrule_port_barrier();
    for (int index = (int)ETHOS_U_SCRATCH; index < num_base_addr; index++) {
        ferrule_cache_invalidate((const void *)(uintptr_t)base_addr[index], base_addr_size[index]);
    }
}

/* A stream without constants has no read-only region. */
uint64_t ethosu_address_remap(uint64_t address, int index)
{
    (void)index;
    return address == 0u ? 0u : ferrule_bus_address((const void *)(uintptr_t)address);
}
