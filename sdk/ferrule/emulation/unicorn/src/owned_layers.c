/* SPDX-License-Identifier: Apache-2.0 */
#include "owned_layers.h"

#include <stddef.h>
#include <string.h>

const struct ferrule_owned_buffer *
ferrule_owned_buffer_of(const struct ferrule_ownership *ownership, uint32_t holder)
{
    return holder < FERRULE_HOLDER_BUFFERS ? NULL
                                           : &ownership->buffers[holder - FERRULE_HOLDER_BUFFERS];
}

bool ferrule_owned_is_needed(const struct ferrule_ownership *ownership, int32_t step,
                             uint32_t roles, uint32_t holder)
{
    const struct ferrule_owned_buffer *buffer = ferrule_owned_buffer_of(ownership, holder);
    if (buffer == NULL || step < 0) {
        return holder == FERRULE_HOLDER_OUTSIDE;
    }
    return buffer->last > step ||
           (buffer->last == step && (roles & FERRULE_ROLE_REPLACES) == 0 && roles != 0);
}

/* Returns how a layer uses a buffer. */
static uint32_t role_in(const struct ferrule_ownership *ownership, uint32_t step, uint32_t holder)
{
    for (uint32_t i = ownership->first_use[step]; i < ownership->first_use[step + 1]; ++i) {
        if (ownership->uses[i].buffer == holder) {
            return ownership->uses[i].roles;
        }
    }
    return 0;
}

/* Returns the buffer that a layer may write at an address: the last one, for outputs in scratch. */
static uint32_t target_in(const struct ferrule_ownership *ownership, uint32_t step,
                          uint32_t address)
{
    uint32_t found = FERRULE_HOLDER_NOTHING;
    for (uint32_t i = ownership->first_use[step]; i < ownership->first_use[step + 1]; ++i) {
        const struct ferrule_owned_use *each = &ownership->uses[i];
        const struct ferrule_owned_buffer *buffer =
            ferrule_owned_buffer_of(ownership, each->buffer);
        if ((each->roles & FERRULE_ROLE_WRITES) != 0 && address - buffer->address < buffer->bytes) {
            found = each->buffer;
        }
    }
    return found;
}

void ferrule_owned_set_flying_roles(struct ferrule_ownership *ownership)
{
    memset(ownership->flying_roles, 0, ownership->buffer_count);
    for (uint32_t n = 0; n < ownership->flying_count; ++n) {
        const uint32_t step = ownership->flying[n];
        for (uint32_t i = ownership->first_use[step]; i < ownership->first_use[step + 1]; ++i) {
            ownership->flying_roles[ownership->uses[i].buffer] |= (uint8_t)ownership->uses[i].roles;
        }
    }
}

void ferrule_owned_fly(struct ferrule_ownership *ownership)
{
    const int32_t step = ownership->step;
    if (step >= 0 && ownership->begun[step] != 0 && ownership->finishing == 0 &&
        ownership->flying_count < ownership->step_count) {
        ownership->flying[ownership->flying_count] = (uint32_t)step;
        ownership->flying_count++;
    }
}

void ferrule_owned_land(struct ferrule_ownership *ownership, uint32_t step)
{
    uint32_t kept = 0;
    for (uint32_t n = 0; n < ownership->flying_count; ++n) {
        if (ownership->flying[n] != step) {
            ownership->flying[kept] = ownership->flying[n];
            kept++;
        }
    }
    ownership->flying_count = kept;
    ferrule_owned_set_flying_roles(ownership);
}

enum ferrule_violation ferrule_owned_judge_use(uint32_t holder, uint32_t used)
{
    const uint32_t roles = used & (uint32_t)(FERRULE_ROLE_READS | FERRULE_ROLE_WRITES);
    if (holder == FERRULE_HOLDER_NOTHING && roles == 0) {
        return FERRULE_READS_NOTHING;
    }
    return roles == 0 ? FERRULE_READS_OTHER : FERRULE_ALLOWED;
}

/* Judges a transfer for one layer. */
static enum ferrule_violation judge_for(const struct ferrule_ownership *ownership, uint32_t step,
                                        uint32_t holder, uint32_t target, uint32_t write)
{
    const uint32_t roles = role_in(ownership, step, holder);
    if (write == 0) {
        return ferrule_owned_judge_use(holder, roles);
    }
    if (holder != target && holder != FERRULE_HOLDER_OUTSIDE &&
        ferrule_owned_is_needed(ownership, (int32_t)step, roles, holder)) {
        return FERRULE_OVERWRITES;
    }
    return target == FERRULE_HOLDER_NOTHING ? FERRULE_WRITES_OUTSIDE : FERRULE_ALLOWED;
}

enum ferrule_violation ferrule_owned_judge_transfer(const struct ferrule_ownership *ownership,
                                                    int32_t device, uint32_t address,
                                                    uint32_t holder, uint32_t write,
                                                    uint32_t *target, int32_t *step)
{
    const int32_t present = ownership->step;
    enum ferrule_violation found = FERRULE_OUTSIDE_LAYER;
    *step = present;
    if (present == FERRULE_STEP_UNKNOWN) {
        return write != 0 ? FERRULE_ALLOWED
                          : ferrule_owned_judge_use(holder, ownership->roles[holder]);
    }
    for (uint32_t n = 0; n < ownership->flying_count && found != FERRULE_ALLOWED; ++n) {
        const uint32_t flying = ownership->flying[n];
        if (ownership->device[flying] == device) {
            *step = (int32_t)flying;
            *target = target_in(ownership, flying, address);
            found = judge_for(ownership, flying, holder, *target, write);
        }
    }
    if (found != FERRULE_ALLOWED && present >= 0 && ownership->device[present] == device &&
        ownership->ended == 0) {
        *step = present;
        *target = target_in(ownership, (uint32_t)present, address);
        found = judge_for(ownership, (uint32_t)present, holder, *target, write);
    }
    return found;
}
