/* SPDX-License-Identifier: Apache-2.0 */
#include "guest.h"

#include <stddef.h>
#include <string.h>

#include "core.h"

/* Values of unicorn's enum uc_mem_type. */
enum { UC_MEM_WRITE_PROT = 22, UC_MEM_READ_PROT = 23 };

/* The private peripheral bus, which has no devices (Armv7-M ARM, B3.1). */
#define PRIVATE_ADDRESS 0xE0000000u

/* Bits of CPSR that hold ITSTATE (Armv7-M ARM, B1.4.2). */
#define ITSTATE 0x0600FC00u

uint64_t ferrule_guest_bytes(void)
{
    return sizeof(struct ferrule_guest);
}

/* A halfword that begins with 0b11101, 0b11110 or 0b11111 is the first of two (Armv7-M ARM, A5.1).
 */
static uint32_t decode(const uint8_t *code, uint32_t bytes)
{
    uint32_t instructions = 0;
    for (uint32_t at = 0; at < bytes; ++instructions) {
        at += code[at + 1] >= 0xE8 ? 4u : 2u;
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

static struct ferrule_guest_block *slot_of(struct ferrule_guest *guest, uint32_t address)
{
    return &guest->cache[((address >> 1) ^ (address >> 15)) & (FERRULE_GUEST_CACHE - 1)];
}

static uint32_t count_anew(struct ferrule_guest *guest, uint32_t address, uint32_t bytes)
{
    struct ferrule_guest_block *cached = slot_of(guest, address);
    const struct ferrule_guest_window *window = window_of(guest, address, bytes);
    if (window == NULL) {
        return 0;
    }
    const uint32_t instructions = decode(window->data + (address - window->address), bytes);
    if (window->constant != 0 && bytes != 0 && bytes <= UINT16_MAX) {
        cached->address = address;
        cached->bytes = (uint16_t)bytes;
        cached->instructions = (uint16_t)instructions;
    }
    return instructions;
}

/* Separate from the exported function, so that the compiler can inline it into the hook. */
static inline uint32_t count(struct ferrule_guest *guest, uint32_t address, uint32_t bytes)
{
    const struct ferrule_guest_block *cached = slot_of(guest, address);
    if (cached->address == address && cached->bytes == bytes) {
        return cached->instructions;
    }
    return count_anew(guest, address, bytes);
}

uint32_t ferrule_guest_count(struct ferrule_guest *guest, uint32_t address, uint32_t bytes)
{
    return count(guest, address, bytes);
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

/*
 * The guest stops only here, before a block's first instruction: unicorn returns right after this
 * hook, so that no instruction runs twice or partially.
 */
void ferrule_guest_on_block(void *engine, uint64_t address, uint32_t bytes, void *guest)
{
    struct ferrule_guest *self = guest;
    if (self->entered >= self->limit && ferrule_core_wants_pause(self)) {
        self->paused = 1;
        self->block_bytes = 0;
        (void)self->stop_emulation(engine); /* it cannot fail while the engine runs */
        return;
    }
    self->block_address = (uint32_t)address;
    self->block_bytes = bytes;
    self->entered += count(self, (uint32_t)address, bytes);
}

/* Clears ITSTATE, which reading the program counter restores and which would affect the next
 * block. */
static void clear_it_state(struct ferrule_guest *guest)
{
    const uint32_t status = ferrule_guest_read(guest, FERRULE_CPSR);
    if ((status & ITSTATE) != 0) {
        ferrule_guest_write(guest, FERRULE_CPSR, status & ~ITSTATE);
    }
}

static bool accepts(struct ferrule_guest *guest, int type, uint64_t address, int bytes,
                    int64_t value)
{
    if (guest->ask == NULL || address >= PRIVATE_ADDRESS) {
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
    self->now = ferrule_guest_executed(self, program_counter);
    if (protection && window_of(self, (uint32_t)address, 1) == NULL &&
        ferrule_core_permits(self, (uint32_t)address) &&
        accepts(self, type, address, bytes, value)) {
        clear_it_state(self);
        return true;
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
