/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waits for data. A hook of each access to memory measures them, which makes the emulation
 * several times slower. So once two inferences in a row agree, later ones run without the hook and
 * repeat, block by block, what the last one with it has measured.
 */
#ifndef FERRULE_EMULATION_WAITS_H
#define FERRULE_EMULATION_WAITS_H

#include <stdbool.h>
#include <stdint.h>

struct ferrule_guest;

enum {
    FERRULE_WAITING_BLOCKS = 1 << 13, /* number 0 stands for all that have no room */
    FERRULE_WAITING_PLACES = 1 << 14,
};

enum ferrule_waits_known {
    FERRULE_WAITS_UNKNOWN = 0,
    FERRULE_WAITS_SAME = 1, /* each execution that was measured took the same */
    FERRULE_WAITS_VARY = 2,
};

/* Where the waits of an inference come from; ferrule/timing/duration.py has the same. */
enum ferrule_waits_origin {
    FERRULE_WAITS_MEASURED = 0,
    FERRULE_WAITS_REPEATED = 1,
    FERRULE_WAITS_ESTIMATED = 2, /* repeated, although the inference turned out to differ */
};

/* What executions of a block have waited, and what is left over when that is spread evenly. */
struct ferrule_waits_share {
    uint64_t executions;
    uint64_t cycles;
    uint64_t rest;
};

struct ferrule_waiting_block {
    uint32_t address;
    uint16_t bytes;
    uint16_t known;    /* enum ferrule_waits_known */
    uint64_t each;     /* cycles of an execution, if all are the same */
    uint64_t executed; /* in the present inference, or the last one */
    uint64_t waited;
    struct ferrule_waits_share outside; /* all executions that belong to no inference */
    struct ferrule_waits_share inside;  /* those of the inference that is repeated */
};

struct ferrule_waits {
    uint32_t on;      /* nonzero: inferences may be repeated */
    uint32_t repeats; /* nonzero: they are, and accesses need no hook */
    uint32_t watched; /* nonzero: they have one now */
    uint32_t wants_watch;
    uint32_t inside;      /* nonzero: within an inference */
    uint32_t partial;     /* nonzero: it was repeated until a block was met that is not known */
    uint32_t estimated;   /* nonzero: it was repeated, but differs */
    uint32_t interrupted; /* nonzero: it has met devices, exceptions or sleep */
    uint32_t broken;      /* nonzero: it cannot be repeated */
    uint32_t has_basis;   /* nonzero: `inside` of the blocks holds an inference */
    uint32_t varying;     /* its blocks whose waits vary */
    uint32_t count;       /* blocks, including number 0; 0: no memory waits */
    uint64_t current;     /* cycles that the current block has waited */
    uintptr_t hook;
    struct ferrule_waiting_block blocks[FERRULE_WAITING_BLOCKS];
    uint16_t places[FERRULE_WAITING_PLACES]; /* numbers by address and bytes; 0: free */
};

/* Begins to measure, where memories wait, and to repeat, if the inferences are told. */
void ferrule_waits_start(struct ferrule_waits *waits);
void ferrule_waits_repeat(struct ferrule_waits *waits);

/* Forgets all blocks, since code has changed. */
void ferrule_waits_forget(struct ferrule_waits *waits, struct ferrule_guest *guest);

/* Measures each inference from now on, as for single steps, which divide blocks. */
void ferrule_waits_stop(struct ferrule_waits *waits, struct ferrule_guest *guest);

/* Returns the number of a block; `accesses`: it accesses memory. */
uint16_t ferrule_waits_number(struct ferrule_waits *waits, uint32_t address, uint32_t bytes,
                              bool accesses);

/* Called when an inference begins and has ended, during its first block and the one behind it. */
void ferrule_waits_begin(struct ferrule_waits *waits);
enum ferrule_waits_origin ferrule_waits_end(struct ferrule_waits *waits,
                                            struct ferrule_guest *guest);

/* Interrupts the repetition: the hook comes back before the next block. */
void ferrule_waits_lose(struct ferrule_waits *waits, struct ferrule_guest *guest);

/* Notes what the block has waited that ends. */
void ferrule_waits_note(struct ferrule_waits *waits, struct ferrule_waiting_block *block);

/* Returns what the block waits that ends, if its waits vary. */
uint64_t ferrule_waits_share(struct ferrule_waits *waits, struct ferrule_waiting_block *block);

/* Notes that a block does not end as a whole. */
void ferrule_waits_break(struct ferrule_waits *waits, struct ferrule_guest *guest);

/* Adds or removes the hook while the guest is stopped; returns false if unicorn does not. */
bool ferrule_waits_switch(struct ferrule_waits *waits, struct ferrule_guest *guest);

/* Notes that something happens whose time depends on that of single blocks. */
static inline void ferrule_waits_interrupt(struct ferrule_waits *waits, struct ferrule_guest *guest)
{
    waits->interrupted = 1;
    if ((waits->repeats & waits->inside) != 0 && waits->varying != 0) {
        ferrule_waits_lose(waits, guest);
    }
}

/* Whether the waits of a block can be repeated. */
static inline bool ferrule_waits_knows(const struct ferrule_waits *waits, uint16_t number)
{
    const struct ferrule_waiting_block *block = &waits->blocks[number];
    return block->known == FERRULE_WAITS_SAME ||
           (block->known == FERRULE_WAITS_VARY &&
            (block->inside.executions | block->outside.executions) != 0);
}

/* Called when a block has ended; returns the cycles that no hook has added. */
static inline uint64_t ferrule_waits_pass(struct ferrule_waits *waits, uint16_t number)
{
    struct ferrule_waiting_block *block = &waits->blocks[number];
    if (waits->watched != 0) {
        ferrule_waits_note(waits, block);
        return 0;
    }
    return block->known == FERRULE_WAITS_SAME ? block->each : ferrule_waits_share(waits, block);
}

#endif
