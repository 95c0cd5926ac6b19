/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of addresses that must be aligned. Where their alignment does not follow from the
 * registers at the start of a block, hooks of single instructions check them.
 */
#ifndef FERRULE_EMULATION_CHECKS_H
#define FERRULE_EMULATION_CHECKS_H

#include <stdbool.h>
#include <stdint.h>

#include "guest.h"

/* Decodes a block, as ferrule_alignment_decode() does. */
uint32_t ferrule_checks_decode(struct ferrule_guest *guest, const uint8_t *code, uint32_t address,
                               uint32_t bytes, struct ferrule_alignment *alignment);

/* Returns whether registers, as bits, are aligned. */
bool ferrule_checks_are_aligned(struct ferrule_guest *guest, uint32_t registers);

/* Adds the checks that the next block lacks, before which ferrule_guest_on_block() paused. */
void ferrule_checks_add(struct ferrule_guest *guest);

/* Applies a change of CCR.UNALIGN_TRP while the guest is stopped. */
void ferrule_checks_set_traps(struct ferrule_guest *guest);

/* Restores the base register of an instruction whose address was found to be unaligned. */
void ferrule_checks_restore_base(struct ferrule_guest *guest);

#endif
