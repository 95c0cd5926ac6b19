/* SPDX-License-Identifier: Apache-2.0 */
#include "guest.h"

/* Bits of CPSR that hold ITSTATE (Armv7-M ARM, B1.4.2). */
#define ITSTATE 0x0600FC00u

uint32_t ferrule_guest_condition(struct ferrule_guest *guest)
{
    return ferrule_guest_read(guest, FERRULE_CPSR) & ITSTATE;
}

void ferrule_guest_clear_condition(struct ferrule_guest *guest)
{
    const uint32_t status = ferrule_guest_read(guest, FERRULE_CPSR);
    if ((status & ITSTATE) != 0) {
        ferrule_guest_write(guest, FERRULE_CPSR, status & ~ITSTATE);
    }
}
