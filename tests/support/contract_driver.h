/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONTRACT_DRIVER_H
#define CONTRACT_DRIVER_H

#include <stdint.h>

uint32_t contract_read(uintptr_t address);
void contract_write(uintptr_t address, uint32_t value);

#endif
