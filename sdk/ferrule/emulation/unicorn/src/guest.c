/* SPDX-License-Identifier: Apache-2.0 */
#include "guest.h"

#include <stddef.h>
#include <string.h>

#include "checks.h"
#include "core.h"
#include "ownership.h"
#include "timing.h"

/* Values of unicorn's enum uc_mem_type. */
enum { UC_MEM_WRITE_PROT = 22, UC_MEM_READ_PROT = 23 };

uint64_t ferrule_guest_bytes(void)
{
    return sizeof(struct ferrule_guest);
}

/* Values of unicorn's enum uc_prot, UC_CTL_WRITE(UC_CTL_TLB_FLUSH, 0), and its smallest page. */
enum { UC_PROT_ALL = 7, FLUSH_TRANSLATIONS = 11 | 1 << 30, PAGE = 1024 };

static uint32_t decode(const uint8_t *code, uint32_t bytes)
{
    uint32_t instructions = 0;
    for (uint32_t at = 0; at < bytes; ++instructions) {
        at += ferrule_code_width(code + at);
    }
    return instructions;
}

static const struct ferrule_guest_window *window_of(const struct ferrule_guest *guest,
                                                    uint32_t address, uint32_t bytes)
{
    for (uint32_t i = 0; i < guest->window_count; ++i) {
        const struct ferrule_guest_window *window = &guest->windows[i];
        if (address >= window->address && address - window->address + bytes <= window->bytes) {
            return window;
        }
    }
    return NULL;
}

const uint8_t *ferrule_guest_code(const struct ferrule_guest *guest, uint32_t address,
                                  uint32_t bytes)
{
    const struct ferrule_guest_window *window = window_of(guest, address, bytes);
    return window == NULL ? NULL : window->data + (address - window->address);
}

uint32_t ferrule_guest_count(struct ferrule_guest *guest, uint32_t address, uint32_t bytes)
{
    const struct ferrule_guest_block *cached = ferrule_guest_slot(guest, address);
    if (cached->address == address && cached->bytes == bytes) {
        return cached->instructions;
    }
    const uint8_t *code = ferrule_guest_code(guest, address, bytes);
    return code == NULL ? 0 : decode(code, bytes);
}

uint64_t ferrule_guest_executed(struct ferrule_guest *guest, uint32_t program_counter)
{
    const uint32_t offset = program_counter - guest->block_address;
    if (offset >= guest->block_bytes) {
        return guest->entered;
    }
    return guest->entered - ferrule_guest_count(guest, guest->block_address, guest->block_bytes) +
           ferrule_guest_count(guest, guest->block_address, offset);
}

/* Returns the code of the current block if an instruction lies in it whose time is in cycles;
 * otherwise NULL. */
static const uint8_t *timed_code(const struct ferrule_guest *guest, uint32_t program_counter)
{
    const uint32_t bytes = guest->block_bytes;
    const bool inside = program_counter - guest->block_address < bytes;
    return guest->timing != NULL && inside ? ferrule_guest_code(guest, guest->block_address, bytes)
                                           : NULL;
}

/* Returns how many units of time the current block takes from an instruction on. */
static uint64_t time_left(struct ferrule_guest *guest, uint32_t program_counter)
{
    const uint8_t *code = timed_code(guest, program_counter);
    if (code != NULL) {
        return ferrule_timing_left(guest->timing, code, program_counter);
    }
    return guest->timing != NULL ? 0
                                 : guest->entered - ferrule_guest_executed(guest, program_counter);
}

uint64_t ferrule_guest_elapsed(struct ferrule_guest *guest, uint32_t program_counter)
{
    return guest->elapsed - time_left(guest, program_counter);
}

void ferrule_guest_rewind(struct ferrule_guest *guest, uint32_t program_counter)
{
    const uint8_t *code = timed_code(guest, program_counter);
    guest->elapsed = ferrule_guest_elapsed(guest, program_counter);
    guest->entered = ferrule_guest_executed(guest, program_counter);
    if (code != NULL) {
        ferrule_timing_rewind(guest->timing, guest, code, program_counter);
    }
}

/* unicorn refuses only unknown registers, and `register_ids` contains none. */
uint32_t ferrule_guest_read(struct ferrule_guest *guest, enum ferrule_register which)
{
    uint32_t value = 0;
    (void)guest->read_register(guest->engine, guest->register_ids[which], &value);
    return value;
}

void ferrule_guest_write(struct ferrule_guest *guest, enum ferrule_register which, uint32_t value)
{
    (void)guest->write_register(guest->engine, guest->register_ids[which], &value);
}

bool ferrule_guest_load(struct ferrule_guest *guest, uint32_t address, uint32_t *value)
{
    const struct ferrule_guest_window *window = window_of(guest, address, sizeof *value);
    if (window != NULL) {
        memcpy(value, window->data + (address - window->address), sizeof *value);
    }
    return window != NULL;
}

bool ferrule_guest_store(struct ferrule_guest *guest, uint32_t address, uint32_t value)
{
    const struct ferrule_guest_window *window = window_of(guest, address, sizeof value);
    if (window == NULL || window->constant != 0) {
        return false;
    }
    memcpy(window->data + (address - window->address), &value, sizeof value);
    return true;
}

void ferrule_guest_stop(struct ferrule_guest *guest, enum ferrule_guest_stop reason)
{
    if (guest->stop == FERRULE_GUEST_RUNS) {
        guest->stop = reason;
    }
    guest->limit = 0;
}

bool ferrule_guest_allow_code(struct ferrule_guest *guest, uint32_t address)
{
    const struct ferrule_guest_window *found = window_of(guest, address, 1);
    if (found == NULL || found->executes != 0) {
        return false;
    }
    for (uint32_t i = 0; i < guest->window_count; ++i) { /* its aliases too: they hold its code */
        struct ferrule_guest_window *window = &guest->windows[i];
        const uint64_t bytes = (window->bytes + PAGE - 1) / PAGE * PAGE;
        if (window->data == found->data) {
            window->executes = 1;
            if (guest->protect_memory(guest->engine, window->address, bytes, UC_PROT_ALL) != 0) {
                return false;
            }
        }
    }
    return guest->control(guest->engine, FLUSH_TRANSLATIONS) == 0;
}

static void pause(struct ferrule_guest *guest, enum ferrule_guest_pause reason)
{
    guest->paused = reason;
    (void)guest->stop_emulation(guest->engine); /* it cannot fail while the engine runs */
}

/* Decodes a block into `block`; returns false if an instruction lacks its check. */
static bool decode_block(struct ferrule_guest *guest, uint32_t address, uint32_t bytes,
                         struct ferrule_guest_block *block)
{
    const uint8_t *code = ferrule_guest_code(guest, address, bytes);
    *block = (struct ferrule_guest_block){.address = address, .bytes = (uint16_t)bytes};
    if (code == NULL) {
        return true;
    }
    block->instructions = (uint16_t)decode(code, bytes);
    return guest->core == NULL ||
           ferrule_checks_decode(guest, code, address, bytes, &block->alignment) == bytes;
}

/* Called before a block of which the cache has nothing; returns NULL if it pauses. */
static const struct ferrule_guest_block *decode_anew(struct ferrule_guest *guest, uint32_t address,
                                                     uint32_t bytes,
                                                     struct ferrule_guest_block *block)
{
    const struct ferrule_guest_window *window = window_of(guest, address, bytes);
    if (!decode_block(guest, address, bytes, block)) {
        pause(guest, FERRULE_GUEST_LACKS_CHECKS);
        return NULL;
    }
    if (window != NULL && window->constant != 0 && bytes != 0 && bytes <= UINT16_MAX) {
        *ferrule_guest_slot(guest, address) = *block;
    }
    return block;
}

/* Adds the time of a block; returns false if an instruction lacks its hook. */
static bool enter_timed(struct ferrule_guest *guest, uint32_t address, uint32_t bytes)
{
    const bool steps = guest->timing->steps != 0;
    if (!steps && ferrule_timing_enter_known(guest->timing, guest, address, bytes)) {
        return true;
    }
    const struct ferrule_guest_window *window = window_of(guest, address, bytes);
    if (window == NULL || bytes == 0 || bytes > UINT16_MAX) {
        return true;
    }
    if (steps) {
        bytes = ferrule_timing_step_bytes(window->data + (address - window->address), bytes);
    }
    return ferrule_timing_enter(guest->timing, guest, window->data + (address - window->address),
                                address, bytes, window->constant != 0);
}

/*
 * The guest stops only here, before a block's first instruction: unicorn returns right after this
 * hook, so that no instruction runs twice or partially.
 */
void ferrule_guest_on_block(void *engine, uint64_t address, uint32_t bytes, void *guest)
{
    struct ferrule_guest *self = guest;
    struct ferrule_guest_block anew;
    (void)engine;
    if (self->timing != NULL) {
        ferrule_timing_arrive(self->timing, self, (uint32_t)address);
    }
    if ((self->entered >= self->limit || self->elapsed >= self->due) &&
        ferrule_core_wants_pause(self)) {
        self->block_bytes = 0;
        pause(self, FERRULE_GUEST_PAUSES);
        return;
    }
    self->block_address = (uint32_t)address;
    self->block_bytes = bytes;
    const struct ferrule_guest_block *block = ferrule_guest_slot(self, (uint32_t)address);
    if (block->address != (uint32_t)address || block->bytes != bytes) {
        block = decode_anew(self, (uint32_t)address, bytes, &anew);
        if (block == NULL) {
            return;
        }
    }
    const uint32_t needed = block->alignment.needed;
    if ((needed & ~self->aligned) != 0 &&
        !ferrule_checks_are_aligned(self, needed & ~self->aligned)) {
        pause(self, FERRULE_GUEST_DISTRUSTS);
        return;
    }
    self->aligned = ((self->aligned | needed) & block->alignment.kept) | block->alignment.gained;
    if (self->timing == NULL) {
        self->elapsed += block->instructions;
    } else if (!enter_timed(self, (uint32_t)address, bytes)) {
        pause(self, FERRULE_GUEST_LACKS_CHECKS);
        return;
    }
    self->entered += block->instructions;
    if (self->ownership != NULL) {
        ferrule_ownership_on_block(self->ownership, (uint32_t)address);
    }
}

static bool accepts(struct ferrule_guest *guest, int type, uint64_t address, int bytes,
                    int64_t value)
{
    if (guest->ask == NULL || address >= FERRULE_PRIVATE_ADDRESS) {
        return true;
    }
    return guest->ask(address, (uint32_t)bytes, type == UC_MEM_WRITE_PROT, (uint64_t)value) != 0;
}

/*
 * Synchronised registers are mapped without permissions, so that every access first calls this
 * hook. Only here does unicorn provide the address of the accessing instruction, and only here can
 * an access still be refused.
 */
bool ferrule_guest_on_refused(void *engine, int type, uint64_t address, int bytes, int64_t value,
                              void *guest)
{
    struct ferrule_guest *self = guest;
    const bool protection = type == UC_MEM_WRITE_PROT || type == UC_MEM_READ_PROT;
    (void)engine;
    const uint32_t program_counter = ferrule_guest_read(self, FERRULE_PC);
    self->now = ferrule_guest_elapsed(self, program_counter);
    self->accessor = program_counter;
    if (protection && ferrule_ownership_notes(self->ownership, (uint32_t)address, (uint32_t)bytes,
                                              program_counter)) {
        ferrule_guest_clear_condition(self);
        return true;
    }
    if (protection && window_of(self, (uint32_t)address, 1) == NULL &&
        ferrule_core_permits(self, (uint32_t)address) &&
        accepts(self, type, address, bytes, value)) {
        if (self->timing != NULL) {
            ferrule_waits_interrupt(&self->timing->waits, self);
        }
        ferrule_guest_clear_condition(self);
        return true;
    }
    if (self->unaligned != 0 && self->fault.type == 0) {
        self->fault.type = FERRULE_GUEST_UNALIGNED;
        self->fault.address = self->unaligned_address;
        self->fault.bytes = (int32_t)self->base_mask + 1;
        self->fault.program_counter = program_counter;
    }
    if (self->fault.type == 0) {
        self->fault.type = type;
        self->fault.address = address;
        self->fault.bytes = bytes;
        self->fault.value = value;
        self->fault.program_counter = program_counter;
    }
    return false;
}

uint64_t ferrule_guest_answer(void *engine, uint64_t offset, unsigned bytes, void *guest)
{
    const struct ferrule_guest *self = guest;
    (void)engine;
    (void)offset;
    (void)bytes;
    return self->answer;
}

void ferrule_guest_accept(void *engine, uint64_t offset, unsigned bytes, uint64_t value,
                          void *guest)
{
    (void)engine;
    (void)offset;
    (void)bytes;
    (void)value;
    (void)guest;
}

void ferrule_guest_on_exception(void *engine, uint32_t number, void *guest)
{
    struct ferrule_guest *self = guest;
    self->exception = number;
    (void)self->stop_emulation(engine);
}
