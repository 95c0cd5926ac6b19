/* SPDX-License-Identifier: Apache-2.0 */
/* A driver of one access, for the host. */
#include "contract_driver.h"

#include "ferrule/port.h"

uint32_t contract_read(uintptr_t address)
{
    return ferrule_mmio_read32(address);
}

void contract_write(uintptr_t address, uint32_t value)
{
    ferrule_mmio_write32(address, value);
}
