/* SPDX-License-Identifier: Apache-2.0 */
/** @file A Cortex-M's registers by the functions of host_port.h. */
#ifndef HOST_CORE_H
#define HOST_CORE_H

#include "host_port.h"

#define FERRULE_CORE_READ(address)         host_mmio_read32(address)
#define FERRULE_CORE_WRITE(address, value) host_mmio_write32(address, value)

#include "ferrule/core/cortex_m.h"

#endif /* HOST_CORE_H */
