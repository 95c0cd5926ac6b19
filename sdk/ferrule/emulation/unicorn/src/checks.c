/* SPDX-License-Identifier: Apache-2.0 */
#include "checks.h"

#include <stddef.h>
#include <string.h>

#include "core.h"
#include "timing.h"

/* A page without memory, to which an instruction with an unaligned address is diverted. */
#define NOWHERE 0xFFFFF000u

/* Values of unicorn's enums uc_err and uc_hook_type, and of UC_CTL_WRITE(UC_CTL_TB_REMOVE_CACHE,
 * 2). */
enum { UC_ERR_RESOURCE = 20, UC_HOOK_CODE = 4, REMOVE_BLOCKS = 9 | 2 << 26 | 1 << 30 };

static struct ferrule_site site_at(const struct ferrule_guest *guest, const uint8_t *code,
                                   uint32_t bytes)
{
    const bool wide = ferrule_code_width(code) == 4 && bytes >= 4;
    const uint32_t second = wide ? code[2] | (uint32_t)code[3] << 8 : 0u;
    return ferrule_site_of(code[0] | (uint32_t)code[1] << 8, second, guest->traps);
}

/* Returns the slot of a checked instruction, or a free one. */
static uint32_t *site_slot(struct ferrule_guest *guest, uint32_t address)
{
    for (uint32_t i = address >> 1;; ++i) {
        uint32_t *slot = &guest->sites[i % FERRULE_GUEST_SITES];
        if (*slot == 0 || *slot == (address | 1u)) {
            return slot;
        }
    }
}

struct place {
    struct ferrule_guest *guest;
    uint32_t address;
};

static uint32_t is_checked(const void *context, uint32_t offset)
{
    const struct place *place = context;
    return *site_slot(place->guest, place->address + offset) != 0;
}

uint32_t ferrule_checks_decode(struct ferrule_guest *guest, const uint8_t *code, uint32_t address,
                               uint32_t bytes, struct ferrule_alignment *alignment)
{
    const struct place place = {.guest = guest, .address = address};
    return ferrule_alignment_decode(code, bytes, guest->traps, ferrule_guest_condition(guest),
                                    is_checked, &place, alignment);
}

bool ferrule_checks_are_aligned(struct ferrule_guest *guest, uint32_t registers)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; registers >> i != 0; ++i) {
        if ((registers >> i & 1u) != 0) {
            uint32_t value = 0;
            (void)guest->read_register(guest->engine, ferrule_core_register(guest->core, i),
                                       &value);
            bits |= value;
        }
    }
    return bits % 4 == 0;
}

/* An instruction with an unaligned address is diverted to a page without memory, since unicorn can
 * end an IT block only by a refused access. */
static void on_site(void *engine, uint64_t address, uint32_t bytes, void *guest)
{
    struct ferrule_guest *self = guest;
    const uint8_t *code = ferrule_guest_code(self, (uint32_t)address, bytes);
    if (code == NULL || self->unaligned != 0) {
        return;
    }
    const struct ferrule_site site = site_at(self, code, bytes);
    const int id = ferrule_core_register(self->core, site.base);
    uint32_t value = 0;
    uint32_t index = 0;
    (void)self->read_register(engine, id, &value);
    if (site.index != FERRULE_NO_INDEX) {
        (void)self->read_register(engine, ferrule_core_register(self->core, site.index), &index);
    }
    const uint32_t distance = site.offset + (index << site.shift);
    if (((value + distance) & site.mask) != 0) {
        const uint32_t nowhere = NOWHERE - (index << site.shift);
        self->unaligned = (uint32_t)address | 1u;
        self->base = site.base;
        self->base_value = value;
        self->base_mask = site.mask;
        self->unaligned_address = value + distance;
        (void)self->write_register(engine, id, &nowhere);
    }
}

void ferrule_checks_restore_base(struct ferrule_guest *guest)
{
    if (guest->unaligned != 0) {
        const int id = ferrule_core_register(guest->core, guest->base);
        (void)guest->write_register(guest->engine, id, &guest->base_value);
        guest->unaligned = 0;
    }
}

static void add_check(struct ferrule_guest *guest, uint32_t address)
{
    uint32_t *slot = site_slot(guest, address);
    uintptr_t hook = 0;
    if (*slot != 0) {
        return;
    }
    if (guest->site_count >= FERRULE_GUEST_SITES / 2 ||
        guest->add_hook(guest->engine, &hook, UC_HOOK_CODE, (void *)on_site, guest, address,
                        address) != 0) {
        guest->error = UC_ERR_RESOURCE;
        ferrule_guest_stop(guest, FERRULE_GUEST_ERROR);
        return;
    }
    *slot = address | 1u;
    ++guest->site_count;
}

void ferrule_checks_set_traps(struct ferrule_guest *guest)
{
    if (guest->traps != guest->wants_traps) {
        guest->traps = guest->wants_traps;
        memset(guest->cache, 0, sizeof guest->cache);
    }
}

void ferrule_checks_add(struct ferrule_guest *guest)
{
    const uint32_t address = guest->block_address;
    const uint32_t bytes = guest->block_bytes;
    const uint8_t *code = ferrule_guest_code(guest, address, bytes);
    struct ferrule_alignment alignment;
    if (guest->paused == FERRULE_GUEST_DISTRUSTS) {
        for (uint32_t at = 0; at < bytes; at += ferrule_code_width(code + at)) {
            if (site_at(guest, code + at, bytes - at).mask != 0) {
                add_check(guest, address + at);
            }
        }
        ferrule_guest_slot(guest, address)->bytes = 0;
    }
    for (uint32_t at = 0; at < bytes && guest->stop == FERRULE_GUEST_RUNS;) {
        at = ferrule_checks_decode(guest, code, address, bytes, &alignment);
        if (at < bytes) {
            add_check(guest, address + at);
        }
    }
    if (guest->timing != NULL && code != NULL &&
        !ferrule_timing_add_hooks(guest->timing, guest, code, address, bytes)) {
        guest->error = UC_ERR_RESOURCE;
        ferrule_guest_stop(guest, FERRULE_GUEST_ERROR);
    }
    /* unicorn translates the block again, with the new hooks */
    (void)guest->control(guest->engine, REMOVE_BLOCKS, (uint64_t)address,
                         (uint64_t)address + bytes);
}
