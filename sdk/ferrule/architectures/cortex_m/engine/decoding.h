/* SPDX-License-Identifier: Apache-2.0 */
/* What the decoders of instructions share: fields of their encodings, and parts of an operation. */
#ifndef FERRULE_EMULATION_DECODING_H
#define FERRULE_EMULATION_DECODING_H

#include "operation.h"

enum { SP = 13, LR = 14, PC = 15 };

#define BIT(place) (UINT64_C(1) << (place))

static inline uint32_t field(uint32_t value, uint32_t low, uint32_t bits)
{
    return value >> low & ((1u << bits) - 1u);
}

static inline uint64_t unless_pc(uint32_t place)
{
    return place == PC ? 0 : BIT(place);
}

static inline uint8_t ones(uint32_t value)
{
    uint8_t found = 0;
    for (; value != 0; value &= value - 1) {
        ++found;
    }
    return found;
}

/* Turns an operation that writes the program counter into a jump. */
static inline void find_jump(struct ferrule_operation *found, uint32_t jump)
{
    if ((found->writes & BIT(PC)) != 0) {
        found->writes &= ~BIT(PC);
        found->jump = (uint8_t)jump;
    }
}

static inline void access(struct ferrule_operation *found, bool load, uint32_t target)
{
    if (load) {
        found->writes |= BIT(target);
        find_jump(found, FERRULE_JUMP_LOADED);
    } else {
        found->data |= BIT(target);
    }
}

static inline void place_at(struct ferrule_operation *found, uint32_t base, int32_t offset)
{
    found->addresses = unless_pc(base);
    found->base = (uint8_t)base;
    found->offset = (int16_t)offset;
}

static inline void move_multiple(struct ferrule_operation *found, bool load, uint32_t base,
                                 uint32_t list, bool written_back)
{
    found->kind = load ? FERRULE_LOAD_MULTIPLE : FERRULE_STORE_MULTIPLE;
    found->count = ones(list);
    found->addresses = BIT(base);
    found->writes_base = written_back ? BIT(base) : 0;
    if (load) {
        found->writes = list;
        find_jump(found, FERRULE_JUMP_LOADED);
    } else {
        found->data = list;
    }
}

/* Decode instructions of 16 bits, of 32 bits, and among those, the ones of the floating-point unit.
 */
void ferrule_decode_narrow(struct ferrule_operation *found, uint32_t code);
void ferrule_decode_wide(struct ferrule_operation *found, uint32_t first, uint32_t second);
void ferrule_decode_float(struct ferrule_operation *found, uint32_t first, uint32_t second);

#endif
