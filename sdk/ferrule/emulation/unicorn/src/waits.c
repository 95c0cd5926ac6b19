/* SPDX-License-Identifier: Apache-2.0 */
#include "waits.h"

#include <string.h>

#include "guest.h"
#include "timing.h"

/* Values of unicorn's enum uc_hook_type, and UC_CTL_WRITE(UC_CTL_TB_FLUSH, 0). */
enum { UC_HOOK_MEM = 1 << 10 | 1 << 11, FLUSH_BLOCKS = 10 | 1 << 30 };

void ferrule_waits_start(struct ferrule_waits *waits)
{
    waits->wants_watch = 1;
    waits->count = 1;
}

void ferrule_waits_repeat(struct ferrule_waits *waits)
{
    waits->on = waits->wants_watch;
}

void ferrule_waits_lose(struct ferrule_waits *waits, struct ferrule_guest *guest)
{
    waits->partial |= waits->repeats & waits->inside;
    waits->estimated |= waits->partial != 0 && waits->varying != 0;
    waits->repeats = 0;
    waits->wants_watch = 1;
    waits->current = 0;
    guest->limit = 0;
}

void ferrule_waits_forget(struct ferrule_waits *waits, struct ferrule_guest *guest)
{
    memset(waits->blocks, 0, sizeof waits->blocks);
    memset(waits->places, 0, sizeof waits->places);
    waits->count = 1;
    waits->has_basis = 0;
    waits->broken = 1;
    if (waits->on != 0) {
        ferrule_waits_lose(waits, guest);
    }
}

void ferrule_waits_stop(struct ferrule_waits *waits, struct ferrule_guest *guest)
{
    if (waits->on != 0) {
        ferrule_waits_lose(waits, guest);
        waits->on = 0;
    }
}

uint16_t ferrule_waits_number(struct ferrule_waits *waits, uint32_t address, uint32_t bytes,
                              bool accesses)
{
    for (uint32_t i = (address >> 1) ^ bytes * 0x9E5u;; ++i) {
        uint16_t *place = &waits->places[i % FERRULE_WAITING_PLACES];
        struct ferrule_waiting_block *block = &waits->blocks[*place];
        if (*place != 0 && block->address == address && block->bytes == bytes) {
            return *place;
        }
        if (*place == 0) {
            if (waits->count == FERRULE_WAITING_BLOCKS) {
                return 0;
            }
            *place = (uint16_t)waits->count++;
            waits->blocks[*place] = (struct ferrule_waiting_block){
                .address = address,
                .bytes = (uint16_t)bytes,
                .known = accesses ? FERRULE_WAITS_UNKNOWN : FERRULE_WAITS_SAME,
            };
            return *place;
        }
    }
}

void ferrule_waits_begin(struct ferrule_waits *waits)
{
    waits->inside = 1;
    waits->partial = 0;
    waits->estimated = 0;
    waits->interrupted = 0;
    waits->broken = 0;
    for (uint32_t i = 0; i < waits->count; ++i) {
        waits->blocks[i].executed = 0;
        waits->blocks[i].waited = 0;
        waits->blocks[i].inside.rest = 0;
    }
}

/* Whether the blocks whose waits vary were executed as often as in the inference before. */
static bool agrees(const struct ferrule_waits *waits)
{
    for (uint32_t i = 1; i < waits->count; ++i) {
        const struct ferrule_waiting_block *block = &waits->blocks[i];
        if (block->known == FERRULE_WAITS_VARY && block->executed != block->inside.executions) {
            return false;
        }
    }
    return true;
}

/* Keeps the inference that has just been measured. */
static void keep(struct ferrule_waits *waits)
{
    waits->varying = 0;
    for (uint32_t i = 1; i < waits->count; ++i) {
        struct ferrule_waiting_block *block = &waits->blocks[i];
        block->inside =
            (struct ferrule_waits_share){.executions = block->executed, .cycles = block->waited};
        waits->varying += block->known == FERRULE_WAITS_VARY && block->executed != 0;
    }
}

enum ferrule_waits_origin ferrule_waits_end(struct ferrule_waits *waits,
                                            struct ferrule_guest *guest)
{
    const bool measured = waits->repeats == 0 && waits->partial == 0;
    const bool agreed = waits->has_basis != 0 && waits->broken == 0 && agrees(waits);
    waits->inside = 0;
    if (measured) {
        keep(waits);
        waits->has_basis = waits->broken == 0 && (waits->interrupted == 0 || waits->varying == 0);
    }
    waits->estimated |= !measured && !agreed;
    waits->repeats = waits->on != 0 && waits->has_basis != 0 && agreed && waits->estimated == 0;
    waits->wants_watch = waits->repeats == 0;
    guest->limit = 0;
    return measured                ? FERRULE_WAITS_MEASURED
           : waits->estimated != 0 ? FERRULE_WAITS_ESTIMATED
                                   : FERRULE_WAITS_REPEATED;
}

void ferrule_waits_note(struct ferrule_waits *waits, struct ferrule_waiting_block *block)
{
    if (block->known == FERRULE_WAITS_UNKNOWN) {
        block->known = FERRULE_WAITS_SAME;
        block->each = waits->current;
    } else if (block->each != waits->current) {
        block->known = FERRULE_WAITS_VARY;
    }
    if (block == waits->blocks) {
        block->known = FERRULE_WAITS_UNKNOWN;
        waits->broken = 1;
    }
    if (waits->inside != 0) {
        ++block->executed;
        block->waited += waits->current;
    } else {
        ++block->outside.executions;
        block->outside.cycles += waits->current;
    }
    waits->current = 0;
}

uint64_t ferrule_waits_share(struct ferrule_waits *waits, struct ferrule_waiting_block *block)
{
    const bool inside = waits->inside != 0;
    const bool other = (inside ? block->inside : block->outside).executions == 0;
    struct ferrule_waits_share *share = inside != other ? &block->inside : &block->outside;
    block->executed += inside;
    if (share->executions == 0) {
        return 0;
    }
    share->rest += share->cycles;
    const uint64_t cycles = share->rest / share->executions;
    share->rest %= share->executions;
    return cycles;
}

void ferrule_waits_break(struct ferrule_waits *waits, struct ferrule_guest *guest)
{
    waits->broken = 1;
    waits->current = 0;
    if ((waits->repeats & waits->inside) != 0) {
        ferrule_waits_lose(waits, guest);
    }
}

bool ferrule_waits_switch(struct ferrule_waits *waits, struct ferrule_guest *guest)
{
    const int error =
        waits->wants_watch != 0
            ? guest->add_hook(guest->engine, &waits->hook, UC_HOOK_MEM,
                              (void *)ferrule_timing_on_access, guest, (uint64_t)1, (uint64_t)0)
            : guest->delete_hook(guest->engine, waits->hook);
    waits->watched = waits->wants_watch;
    /* unicorn has translated all blocks for accesses with the hook, or without it */
    return error == 0 && guest->control(guest->engine, FLUSH_BLOCKS) == 0;
}
