/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time in cycles: what a core's pipeline and the memories make of the blocks that it enters. The
 * state survives pauses, and what a block takes does not depend on how instructions are divided
 * into blocks.
 */
#ifndef FERRULE_EMULATION_TIMING_H
#define FERRULE_EMULATION_TIMING_H

#include <stddef.h>

#include "guest.h"
#include "pipeline.h"
#include "waits.h"

enum {
    FERRULE_TIMED_BLOCKS = 1 << 14,
    FERRULE_TIMED_STATES = 1 << 11, /* states of the pipeline at the ends of blocks */
    FERRULE_TIMED_MEMORIES = 16,    /* memories that wait, including aliases */
    FERRULE_TIMED_CACHES = 8,
    FERRULE_TIMED_LINES = 1 << 12, /* lines of a cache */
    FERRULE_TIMED_HINTS = 1 << 10,
    FERRULE_TIMED_FETCHED = 1 << 13,   /* numbered states of fetches */
    FERRULE_FETCHED_SHIFT = 16,        /* from where a state has this number */
    FERRULE_TIMED_PLACES = 1 << 14,    /* where their numbers are found */
    FERRULE_NUMBERED_LINES = 4,        /* the most lines of caches whose states are numbered */
    FERRULE_TIMED_FETCHES = 1 << 9,    /* the most fetches of a block */
    FERRULE_TIMED_CROSSINGS = 1 << 17, /* fetches of all blocks */
    FERRULE_TIMED_DIVISIONS = 1 << 12, /* slots for divisions with a hook */
    FERRULE_TIMED_BRANCHES = 1 << 12,  /* largest table of the branch predictor */
    FERRULE_TAKEN_LEAST = 2,           /* the least history that predicts that a branch jumps */
    FERRULE_TAKEN_MOST = 3,
};

/* A cache that replaces the line that was used longest ago. */
struct ferrule_cache_timing {
    uint32_t sets; /* 0: there is none */
    uint32_t ways;
    uint32_t line_bytes;
    uint32_t reserved;
    uint64_t uses;
    uint64_t
        used[FERRULE_TIMED_LINES]; /* by set and way: count of uses at the last one; 0: empty */
    uint32_t lines[FERRULE_TIMED_LINES];
    uint16_t hints[FERRULE_TIMED_HINTS]; /* where a line was found last */
};

struct ferrule_memory_timing {
    uint64_t address;
    uint64_t bytes;
    uint32_t wait_states;
    uint32_t write_wait_states;
    uint32_t width_bytes;
    uint32_t prefetch;
    uint32_t code_cache; /* its index; FERRULE_TIMED_CACHES: none */
    uint32_t data_cache;
    uint32_t width_shift; /* its logarithm; set by ferrule_timing_add_memory(), as is the next */
    uint32_t line_shift;  /* logarithm of the widths in a line of the code's cache */
};

/* What decides which fetches of the next blocks wait, if none depends on when it begins. */
struct ferrule_fetched {
    uint32_t memory; /* where the last fetch was, as in `fetched_memory` and `fetched` below */
    uint32_t piece;
    uint32_t lines[FERRULE_NUMBERED_LINES]; /* of the caches, each set from the line used last on;
                                               plus 1; 0: empty */
};

struct ferrule_timed_block {
    uint32_t address;
    uint32_t jump_at; /* the last instruction, if it may jump; otherwise 0 */
    uint32_t entry;   /* states, as in `state` below: that for which the rest holds */
    uint32_t exit;    /* that behind the block if it ends without a jump */
    uint32_t jumped;  /* the same if it jumps */
    uint16_t bytes;
    uint16_t waited;     /* cycles that its fetches wait, if their states have numbers */
    uint8_t follows;     /* nonzero: its fetches are followed at each execution */
    uint8_t waits_never; /* nonzero: neither that, nor do data have to be waited for */
    uint16_t cycles;
    uint16_t refill;     /* if it jumps */
    uint8_t conditional; /* nonzero: the jump may not be taken */
    uint8_t wide;        /* 1: the first instruction has 32 bits and is at no multiple of 4 */
    uint8_t memory;      /* where it lies, FERRULE_TIMED_MEMORIES if that does not wait */
    uint8_t it;          /* nonzero: instructions of it are in an IT block */
    uint8_t accesses;    /* nonzero: instructions of it access memory */
    uint16_t branch;     /* where the predictor keeps the jump's history */
    uint16_t waits;      /* its number among the blocks that wait for data */
    uint32_t first;      /* its first fetch, as a multiple of the memory's width */
    uint16_t fetches;    /* the number of the others */
    uint32_t crossed;    /* where `crossings` has the cycles before each of them */
};

struct ferrule_timing {
    struct ferrule_core_timing core;
    struct ferrule_memory_timing memories[FERRULE_TIMED_MEMORIES];
    uint32_t memory_count;
    uint32_t settled; /* nonzero: how the last block ended is counted already */
    uint32_t jumped;  /* nonzero: the next block is a jump's target, and its refill may grow */
    uint32_t state; /* before the next block, once settled: the number of the pipeline's state, and
                       above it that of the fetches' state, or 0 if these have no numbers */
    struct ferrule_timed_block *last; /* the last block entered */
    uint32_t fetched_memory;
    uint32_t fetched; /* what was fetched last, as a multiple of the memory's width */
    uint32_t filling; /* the cache's line that is being filled; 0: none */
    uint32_t state_count;
    uint32_t crossing_count;
    uint32_t numbered; /* nonzero: states of the fetches have numbers; what was fetched last and
                          the caches are brought up to date where they are needed */
    uint8_t holds_code[FERRULE_TIMED_CACHES]; /* nonzero: a cache of code */
    uint32_t fetched_count;
    uint64_t pace; /* cycles without waits for data, in which fetches are measured */
    uint64_t fetch_began;
    uint32_t division_count;
    uint32_t steps; /* nonzero: only one instruction, or one IT block, is executed */
    struct ferrule_pipeline states[FERRULE_TIMED_STATES];
    struct ferrule_timed_block blocks[FERRULE_TIMED_BLOCKS];
    struct ferrule_timed_block kept; /* the last block, if it is not among those */
    struct ferrule_cache_timing caches[FERRULE_TIMED_CACHES];
    uint16_t crossings[FERRULE_TIMED_CROSSINGS];
    struct ferrule_fetched numbers[FERRULE_TIMED_FETCHED];
    uint16_t places[FERRULE_TIMED_PLACES];       /* numbers by content, plus 1; 0: free */
    uint32_t divisions[FERRULE_TIMED_DIVISIONS]; /* with bit 0 set; 0: free */
    uint8_t taken[FERRULE_TIMED_BRANCHES];       /* of the predictor: 0 to 3 */
    struct ferrule_waits waits;
};

uint64_t ferrule_timing_bytes(void);
uint64_t ferrule_memory_timing_bytes(void);
/* Returns the name of a core's number by its index, or NULL. */
const char *ferrule_core_timing_name(uint32_t index);

/* Prepares a timing whose core, memories and caches are set, and makes the guest count cycles. */
void ferrule_timing_start(struct ferrule_timing *timing, struct ferrule_guest *guest);
void ferrule_timing_set_core(struct ferrule_timing *timing, const struct ferrule_core_timing *core);
void ferrule_timing_add_memory(struct ferrule_timing *timing,
                               const struct ferrule_memory_timing *memory);
void ferrule_timing_set_cache(struct ferrule_timing *timing, uint32_t cache, uint32_t sets,
                              uint32_t ways, uint32_t line_bytes);

/* Forgets all blocks, since code has changed. */
void ferrule_timing_forget(struct ferrule_timing *timing, struct ferrule_guest *guest);

/* Let inferences repeat the waits for data of earlier ones; tell when one begins and has ended. The
 * last returns an enum ferrule_waits_origin. */
void ferrule_timing_repeat(struct ferrule_timing *timing);
void ferrule_timing_begin(struct ferrule_timing *timing);
uint32_t ferrule_timing_end(struct ferrule_timing *timing, struct ferrule_guest *guest);
/* Returns whether accesses to memory have a hook now. */
uint32_t ferrule_timing_watches(const struct ferrule_timing *timing);

/* Adds what the last block's conditional jump takes by the branch predictor, which learns. */
void ferrule_timing_predict(struct ferrule_timing *timing, struct ferrule_guest *guest, bool jumps);

/* Returns the bytes of a block's first instruction, or of the IT block that it begins. */
uint32_t ferrule_timing_step_bytes(const uint8_t *code, uint32_t bytes);

/* Enters a block and adds its cycles; `fixed`: the code cannot change. Returns false, and adds
 * nothing, if a division or an access to memory lacks its hook. */
bool ferrule_timing_enter(struct ferrule_timing *timing, struct ferrule_guest *guest,
                          const uint8_t *code, uint32_t address, uint32_t bytes, bool fixed);
/* Adds the hooks that a block lacks; returns false if unicorn does not. */
bool ferrule_timing_add_hooks(struct ferrule_timing *timing, struct ferrule_guest *guest,
                              const uint8_t *code, uint32_t address, uint32_t bytes);

/* Returns the cycles of the current block from an instruction on. */
uint32_t ferrule_timing_left(const struct ferrule_timing *timing, const uint8_t *code,
                             uint32_t program_counter);
/* Takes the block's instructions back from one on, whose cycles are no longer counted. */
void ferrule_timing_rewind(struct ferrule_timing *timing, struct ferrule_guest *guest,
                           const uint8_t *code, uint32_t program_counter);

/* Adds the cycles of an exception's entry or return, after which the pipeline is empty. */
void ferrule_timing_drain(struct ferrule_timing *timing, struct ferrule_guest *guest,
                          uint32_t cycles);

/* Callback for accesses to a memory that waits; `guest` is the user data given to unicorn. */
void ferrule_timing_on_access(void *engine, int type, uint64_t address, int bytes, int64_t value,
                              void *guest);

static inline void ferrule_timing_spend(struct ferrule_timing *timing, struct ferrule_guest *guest,
                                        uint32_t cycles)
{
    guest->elapsed += cycles;
    timing->pace += cycles;
}

/* Whether the hook of accesses to memory is to be added or removed. */
static inline bool ferrule_timing_wants_switch(const struct ferrule_timing *timing)
{
    return timing != NULL && timing->waits.watched != timing->waits.wants_watch;
}

/* Whether the waits of a block for data are not known, and accesses have no hook. */
static inline bool ferrule_timing_lacks_waits(const struct ferrule_timing *timing,
                                              const struct ferrule_timed_block *block)
{
    return timing->waits.watched == 0 && timing->waits.count != 0 &&
           !ferrule_waits_knows(&timing->waits, block->waits);
}

static inline struct ferrule_timed_block *ferrule_timing_slot(struct ferrule_timing *timing,
                                                              uint32_t address)
{
    const uint32_t place =
        (address >> 1) ^ (address >> 15) ^ (timing->state ^ timing->state >> 11) * 0x9E5u;
    return &timing->blocks[place & (FERRULE_TIMED_BLOCKS - 1)];
}

/* Called before a block is entered or refused: adds what the last block's jump takes. */
static inline void ferrule_timing_arrive(struct ferrule_timing *timing, struct ferrule_guest *guest,
                                         uint32_t address)
{
    if (timing->settled != 0) {
        return;
    }
    const struct ferrule_timed_block *last = timing->last;
    const bool jumps = address != last->address + last->bytes;
    const uint8_t settled = jumps ? FERRULE_TAKEN_MOST : 0; /* a history that predicts it */
    if (timing->core.predictor_bits != 0 && last->conditional != 0 &&
        timing->taken[last->branch] != settled) {
        ferrule_timing_predict(timing, guest, jumps);
    } else if (jumps) {
        ferrule_timing_spend(timing, guest, last->refill);
    }
    if (last->waits_never == 0 && timing->waits.count != 0) {
        guest->elapsed += ferrule_waits_pass(&timing->waits, last->waits);
    }
    timing->state = jumps ? last->jumped : last->exit;
    timing->jumped = jumps;
    timing->settled = 1;
}

/* Enters a block as ferrule_timing_enter() does, if that is simple; otherwise returns false. */
static inline bool ferrule_timing_enter_known(struct ferrule_timing *timing,
                                              struct ferrule_guest *guest, uint32_t address,
                                              uint32_t bytes)
{
    struct ferrule_timed_block *block = ferrule_timing_slot(timing, address);
    if (block->address != address || block->bytes != bytes || block->entry != timing->state ||
        (block->waits_never == 0 &&
         (block->follows != 0 || ferrule_timing_lacks_waits(timing, block)))) {
        return false;
    }
    const uint32_t cycles = (uint32_t)block->cycles + block->waited;
    ferrule_timing_spend(
        timing, guest,
        (timing->jumped & block->wide) != 0 ? cycles + timing->core.refill_unaligned : cycles);
    timing->last = block;
    timing->settled = 0;
    return true;
}

#endif
