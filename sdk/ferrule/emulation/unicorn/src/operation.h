/* SPDX-License-Identifier: Apache-2.0 */
/* What an instruction is for a model of time: its kind, and the registers that it reads and writes.
 */
#ifndef FERRULE_EMULATION_OPERATION_H
#define FERRULE_EMULATION_OPERATION_H

#include <stdbool.h>
#include <stdint.h>

enum ferrule_kind {
    FERRULE_ALU,     /* data processing without an inline shift; moves, shifts, comparisons */
    FERRULE_SHIFTED, /* data processing with a shifted register or a shifted constant */
    FERRULE_FIELD,   /* bit fields, extensions, reversals, saturation, DSP without a product */
    FERRULE_MULTIPLY,
    FERRULE_ACCUMULATE,
    FERRULE_MULTIPLY_LONG,
    FERRULE_ACCUMULATE_LONG,
    FERRULE_DIVIDE,
    FERRULE_LOAD,        /* one word */
    FERRULE_LOAD_NARROW, /* a byte or a halfword */
    FERRULE_EXCLUSIVE,
    FERRULE_STORE,
    FERRULE_STORE_REGISTER, /* at an address with a register as its offset */
    FERRULE_LOAD_DOUBLE,
    FERRULE_STORE_DOUBLE,
    FERRULE_LOAD_MULTIPLE,
    FERRULE_STORE_MULTIPLE,
    FERRULE_BRANCH,
    FERRULE_TABLE, /* a table branch */
    FERRULE_IT,
    FERRULE_NOP,
    FERRULE_BARRIER,
    FERRULE_SPECIAL,   /* MRS, MSR */
    FERRULE_STATE,     /* CPS */
    FERRULE_FLOAT_ADD, /* and subtraction, conversion, minimum, rounding */
    FERRULE_FLOAT_MULTIPLY,
    FERRULE_FLOAT_ACCUMULATE, /* rounds the product */
    FERRULE_FLOAT_FUSED,
    FERRULE_FLOAT_DIVIDE,
    FERRULE_FLOAT_ROOT,
    FERRULE_FLOAT_MOVE, /* and absolute value, negation, comparison */
    FERRULE_FLOAT_TRANSFER,
    FERRULE_FLOAT_TRANSFER_DOUBLE, /* of two core registers */
    FERRULE_FLOAT_STATUS,
    FERRULE_FLOAT_LOAD,
    FERRULE_FLOAT_STORE,
    FERRULE_FLOAT_LOAD_DOUBLE,
    FERRULE_FLOAT_STORE_DOUBLE,
    FERRULE_FLOAT_LOAD_MULTIPLE,
    FERRULE_FLOAT_STORE_MULTIPLE,
    FERRULE_DOUBLE_ADD,
    FERRULE_DOUBLE_MULTIPLY,
    FERRULE_DOUBLE_ACCUMULATE,
    FERRULE_DOUBLE_DIVIDE, /* and square root */
};

/* How an instruction may change the program counter. */
enum ferrule_jump {
    FERRULE_JUMP_NONE = 0,
    FERRULE_JUMP_DIRECT = 1,
    FERRULE_JUMP_LINK = 2,     /* BL */
    FERRULE_JUMP_INDIRECT = 3, /* by a register */
    FERRULE_JUMP_LOADED = 4,   /* by a value from memory */
};

/* Registers as bits: core registers by number, then these. */
enum {
    FERRULE_FLAGS = 16,
    FERRULE_FLOAT_FLAGS = 17,
    FERRULE_SINGLE = 18, /* S0; S1 to S31 follow */
    FERRULE_PLACES = FERRULE_SINGLE + 32,
};

struct ferrule_operation {
    uint64_t addresses;   /* registers of the address */
    uint64_t shifted;     /* registers that pass a shifter first */
    uint64_t data;        /* registers that are stored */
    uint64_t accumulated; /* addends of a multiplication */
    uint64_t reads;       /* all others */
    uint64_t writes;
    uint64_t writes_base; /* a base register, with an address */
    uint8_t kind;         /* enum ferrule_kind */
    uint8_t jump;         /* enum ferrule_jump */
    uint8_t count;        /* words of a multiple access; instructions of an IT block */
    uint8_t bytes;        /* of the instruction */
    bool conditional;     /* a jump that may not be taken, even outside an IT block */
    bool early;           /* a sum, move or plain shift: an early unit may do it, if there is one */
    int16_t offset;       /* of an address from its base in bytes, if that is constant */
    uint8_t base;         /* FERRULE_PLACES: there is no constant offset from one base register */
};

/* Decodes an instruction, as each architecture does; `second` is its second halfword, or 0 if it
 * has only one. */
struct ferrule_operation ferrule_operation_of(uint32_t first, uint32_t second);

bool ferrule_operation_accesses(uint32_t kind); /* it reads or writes memory */
bool ferrule_operation_is_load(uint32_t kind);
bool ferrule_operation_is_store(uint32_t kind);
bool ferrule_operation_is_product(uint32_t kind);
bool ferrule_operation_is_float(uint32_t kind); /* it occupies the floating-point unit */

#endif
