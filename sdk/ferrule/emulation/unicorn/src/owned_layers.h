/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers of the ownership check: what each one uses, and those that a device goes on with
 * beside the running one.
 */
#ifndef FERRULE_EMULATION_OWNED_LAYERS_H
#define FERRULE_EMULATION_OWNED_LAYERS_H

#include "ownership.h"

/* Returns NULL for a holder that is no buffer. */
const struct ferrule_owned_buffer *
ferrule_owned_buffer_of(const struct ferrule_ownership *ownership, uint32_t holder);

/* Whether a byte's value is needed after a layer, which has these roles for its holder, has started
 * to write its outputs. */
bool ferrule_owned_is_needed(const struct ferrule_ownership *ownership, int32_t step,
                             uint32_t roles, uint32_t holder);

/* Sets the roles of the layers that were begun and not collected. */
void ferrule_owned_set_flying_roles(struct ferrule_ownership *ownership);

/* Notes that the running layer is left; its device may go on. */
void ferrule_owned_fly(struct ferrule_ownership *ownership);

/* Notes that the result of a layer is being collected. */
void ferrule_owned_land(struct ferrule_ownership *ownership, uint32_t step);

/* Judges a read by the roles of a layer for the byte's holder. */
enum ferrule_violation ferrule_owned_judge_use(uint32_t holder, uint32_t used);

/* Judges a transfer of a device for each of its layers; the first one that allows it counts, or
 * else the last one. Sets the buffer that may be written, and the layer. */
enum ferrule_violation ferrule_owned_judge_transfer(const struct ferrule_ownership *ownership,
                                                    int32_t device, uint32_t address,
                                                    uint32_t holder, uint32_t write,
                                                    uint32_t *target, int32_t *step);

#endif
