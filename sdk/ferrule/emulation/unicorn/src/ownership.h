/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check of ownership: which buffer's value each byte of the workspace holds, and which buffers
 * the running layer may read and write. The workspace is mapped as registers, so that each access
 * of the core calls ferrule_ownership_read() or ferrule_ownership_write(); the transfers of devices
 * call ferrule_ownership_transfer(). ferrule/emulation/unicorn/layout.py mirrors the structs.
 */
#ifndef FERRULE_EMULATION_OWNERSHIP_H
#define FERRULE_EMULATION_OWNERSHIP_H

#include "core.h"

enum {
    FERRULE_OWNED_REGIONS = 8,
    FERRULE_OWNED_CORE = -1, /* the core, where a device's number may stand */
};

/* The holders of a byte besides buffers, whose numbers start at FERRULE_HOLDER_BUFFERS. */
enum ferrule_holder {
    FERRULE_HOLDER_NOTHING = 0, /* not written in this inference */
    FERRULE_HOLDER_OUTSIDE = 1, /* not a byte of the workspace */
    FERRULE_HOLDER_UNKNOWN = 2, /* written while the running layer is not known */
    FERRULE_HOLDER_BUFFERS = 3,
};

/* How the running layer uses a buffer. */
enum ferrule_role {
    FERRULE_ROLE_READS = 1,
    FERRULE_ROLE_WRITES = 2,
    FERRULE_ROLE_REPLACES = 4, /* an input that the layer's outputs may overwrite */
};

/* Steps besides those of the layers, which count from 0. */
enum ferrule_step {
    FERRULE_STEP_IDLE = -1,    /* no inference */
    FERRULE_STEP_UNKNOWN = -2, /* an inference whose layers are not announced */
};

enum ferrule_violation {
    FERRULE_ALLOWED = 0,
    FERRULE_READS_NOTHING = 1,  /* reads a byte that was not written in this inference */
    FERRULE_READS_OTHER = 2,    /* reads a buffer that the layer does not use */
    FERRULE_WRITES_OUTSIDE = 3, /* writes where the layer has no output or scratch */
    FERRULE_OVERWRITES = 4,     /* writes over a buffer that is needed later */
    FERRULE_ACCESSES_BUSY = 5,  /* the core accesses a buffer that a busy device owns */
    FERRULE_OUTSIDE_LAYER = 6,  /* a device accesses the workspace outside of its layers */
    FERRULE_READS_STALE = 7,    /* the core reads a line that a device wrote behind the cache */
    FERRULE_READS_UNCLEAN = 8,  /* a device reads bytes that are only in the cache */
    FERRULE_WRITES_UNDER = 9,   /* a device writes under a dirty line */
    FERRULE_DROPS = 10,         /* an invalidation drops bytes that are only in the cache */
    FERRULE_SHARES_LINE = 11,   /* the core writes to a line in which a device wrote other bytes */
};

struct ferrule_ownership;

/* A range of memory that is watched; the address is a multiple of the page. */
struct ferrule_owned_region {
    uint64_t address;
    uint64_t bytes;
    uint8_t *data;    /* the guest's memory */
    uint16_t *holder; /* by byte: the buffer whose value it holds */
    uint16_t *target; /* by byte: the buffer that the running layer may write there; 0: none */
    uint8_t *cached;  /* by byte: enum ferrule_cached; NULL: not cacheable */
    struct ferrule_ownership *ownership;
    uint32_t line_bytes; /* a power of two of at least 8; 0: not cacheable */
    uint32_t reserved;
};

enum ferrule_cached {
    FERRULE_CACHED_DIRTY = 1, /* written by the core, and not cleaned */
    FERRULE_CACHED_STALE = 2, /* written by a device, and not invalidated */
};

struct ferrule_owned_buffer {
    uint32_t address;
    uint32_t bytes;
    int32_t last;     /* the last step that needs it */
    uint32_t input;   /* 0, or enum ferrule_input: its value is written before the inference */
    uint32_t becomes; /* the holder of its bytes in the next inference; 0: none */
};

/** Who writes the value of a buffer before the inference. */
enum ferrule_input {
    FERRULE_INPUT_CALLER = 1, /* also by means that are not seen here, if the caller writes none */
    FERRULE_INPUT_KEPT = 2,   /* a reset, or the inference before */
};

struct ferrule_owned_use {
    uint32_t buffer; /* its number, from FERRULE_HOLDER_BUFFERS on */
    uint32_t roles;
};

struct ferrule_violated {
    uint64_t address;
    uint32_t bytes;
    uint32_t violation; /* enum ferrule_violation; 0: none */
    uint32_t write;     /* nonzero: a write */
    int32_t actor;      /* the device, or FERRULE_OWNED_CORE */
    int32_t step;
    uint32_t holder; /* of the first byte at fault */
    uint32_t target; /* of the first byte at fault */
    uint32_t busy;   /* the devices at work, as bits */
    uint32_t block;  /* address of the basic block */
    uint32_t program_counter;
    uint32_t exact; /* nonzero: program_counter is that of the instruction */
    uint32_t reserved;
};

struct ferrule_ownership {
    struct ferrule_guest *guest;
    const struct ferrule_owned_buffer *buffers;
    const struct ferrule_owned_use *uses;
    const uint32_t *first_use; /* by step: its first use; the end of the last step is last */
    const int32_t *device;     /* by step: the device that runs it, or FERRULE_OWNED_CORE */
    const uint8_t *begun;      /* by step: nonzero if its device goes on beside the next layers */
    uint32_t *flying;          /* the steps that were begun and not collected */
    uint8_t *flying_roles;     /* by holder: enum ferrule_role of these */
    uint8_t *roles;            /* by holder: enum ferrule_role of the running layer */
    uint32_t buffer_count;     /* including the holders that are not buffers */
    uint32_t step_count;       /* the last one copies outputs that no layer writes */
    uint32_t run;              /* address of the executor's function; 0: none */
    uint32_t until;            /* address of the one with a deadline; 0: none */
    uint32_t next;             /* address of ferrule_held_next(); 0: none */
    uint32_t ran;              /* address of ferrule_held_ran(); 0: none */
    uint32_t finish;           /* address of ferrule_held_finish(); 0: none */
    uint32_t finish_returns;   /* where it returns to */
    uint32_t finish_stack;
    uint32_t finishing; /* nonzero: the running layer is one whose result is collected */
    uint32_t flying_count;
    uint32_t region_count;
    uint32_t busy;  /* the devices at work, as bits; the host sets it */
    uint32_t exact; /* nonzero: program_counter is known at each access */
    uint32_t program_counter;
    uint32_t on_operator; /* the callback that announces layers; 0: none */
    uint32_t returns;     /* where the inference returns to */
    uint32_t stack;
    int32_t step;
    uint32_t ended;    /* nonzero: the device of the running layer has ended */
    uint32_t read_end; /* the end of the last read; 0: it was not a read */
    uint32_t pending;  /* where the second half of `doubted` would start; 0: nothing is doubted */
    uint32_t asked;    /* the address of the present access, before unicorn divides it */
    uint32_t asked_bytes;   /* its size; 0: not known, as it is only if `exact` */
    uint32_t info_argument; /* the place of struct ferrule_run_info * among run's arguments */
    uint32_t given;         /* nonzero: an input was written since the last inference */
    uint64_t accepted[9];   /* by bytes: the holders of the last read that was allowed */
    uint64_t granted[9][2]; /* by bytes: the targets and holders of the last allowed write */
    uint64_t inferences;    /* whose layers were known */
    uint64_t accesses;      /* of the core, while the running layer was known */
    uint64_t transfers;     /* of devices, while the running layer was known */
    struct ferrule_violated violated;
    struct ferrule_violated doubted; /* a read, unless it is the first half of an unaligned one */
    struct ferrule_owned_region regions[FERRULE_OWNED_REGIONS];
};

uint64_t ferrule_ownership_bytes(void);

/* Starts the check, after the host has filled in the struct. */
void ferrule_ownership_start(struct ferrule_ownership *ownership, struct ferrule_guest *guest);

/* Called at the start of each block. */
void ferrule_ownership_on_block(struct ferrule_ownership *ownership, uint32_t address);

/* Returns whether an address is watched; notes the access before unicorn divides it. */
bool ferrule_ownership_notes(struct ferrule_ownership *ownership, uint32_t address, uint32_t bytes,
                             uint32_t program_counter);

/* Checks a transfer of a device; returns enum ferrule_violation. */
uint32_t ferrule_ownership_transfer(struct ferrule_ownership *ownership, int32_t device,
                                    uint32_t address, uint32_t bytes, uint32_t write);

/* Returns whether lines of the data cache are modelled now. */
uint32_t ferrule_ownership_models_cache(const struct ferrule_ownership *ownership);

/* What an operation of the data cache does, as bits. */
enum {
    FERRULE_CACHE_CLEANS = 1,
    FERRULE_CACHE_INVALIDATES = 2,
    FERRULE_CACHE_ALL = 4, /* to all lines, instead of that of an address */
};

/* Performs a cache operation. */
void ferrule_ownership_maintain(struct ferrule_ownership *ownership, uint32_t operation,
                                uint32_t address);

/* Callbacks; `region` is the user data given to unicorn. */
uint64_t ferrule_ownership_read(void *engine, uint64_t offset, unsigned bytes, void *region);
void ferrule_ownership_write(void *engine, uint64_t offset, unsigned bytes, uint64_t value,
                             void *region);

#endif
