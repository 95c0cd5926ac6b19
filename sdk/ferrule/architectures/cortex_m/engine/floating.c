/* SPDX-License-Identifier: Apache-2.0 */
/* The encodings are those of Armv7-M ARM, A5 and A6, with the additions of Armv8-M ARM, C2. */
#include "decoding.h"

struct floats {
    bool twice; /* double precision */
    uint64_t target;
    uint64_t one;
    uint64_t other;
};

static uint64_t float_place(uint32_t four, uint32_t extra, bool twice)
{
    const uint32_t number = twice ? (four | extra << 4) * 2 : four << 1 | extra;
    const uint64_t first = number < 32 ? BIT(FERRULE_SINGLE + number) : 0;
    return twice ? first | first << 1 : first;
}

static void float_memory(struct ferrule_operation *found, uint32_t first, uint32_t second,
                         const struct floats *all)
{
    const bool load = (first & 0x0010u) != 0;
    const uint32_t base = field(first, 0, 4);
    const uint32_t words = field(second, 0, 8);
    if ((first & 0xFFE0u) == 0xEC40u) { /* VMOV of two core registers */
        const uint64_t core = BIT(field(second, 12, 4)) | BIT(field(first, 0, 4));
        found->kind = FERRULE_FLOAT_TRANSFER_DOUBLE;
        found->reads = load ? all->other : core;
        found->writes = load ? core : all->other;
        return;
    }
    if ((first & 0x0120u) == 0x0100u) { /* VLDR, VSTR */
        const int32_t distance = (int32_t)(4 * words);
        place_at(found, base, (first & 0x0080u) != 0 ? distance : -distance);
        found->base = (uint8_t)(base == PC ? (uint32_t)FERRULE_PLACES : base);
        found->kind =
            (uint8_t)(load ? (all->twice ? FERRULE_FLOAT_LOAD_DOUBLE : FERRULE_FLOAT_LOAD)
                           : (all->twice ? FERRULE_FLOAT_STORE_DOUBLE : FERRULE_FLOAT_STORE));
        found->writes = load ? all->target : 0;
        found->data = load ? 0 : all->target;
        return;
    }
    found->kind = load ? FERRULE_FLOAT_LOAD_MULTIPLE : FERRULE_FLOAT_STORE_MULTIPLE;
    found->count = (uint8_t)words;
    found->addresses = BIT(base);
    found->writes_base = (first & 0x0020u) != 0 ? BIT(base) : 0;
    const uint64_t target = all->target & (0 - all->target);
    for (uint32_t i = 0; i < words && i < 32; ++i) {
        const uint64_t each = target << i & ~(UINT64_MAX << FERRULE_PLACES);
        *(load ? &found->writes : &found->data) |= each;
    }
}

static void float_other(struct ferrule_operation *found, uint32_t first, uint32_t second,
                        const struct floats *all) /* VMOV, VABS, VNEG, VSQRT, VCMP, VCVT */
{
    const uint32_t what = field(first, 0, 4);
    const uint32_t which = field(second, 6, 2);
    found->reads = all->other;
    found->writes = all->target;
    if ((which & 1u) == 0) {
        found->kind = FERRULE_FLOAT_MOVE;
        found->reads = 0;
    } else if (what == 4 || what == 5) {
        found->kind = FERRULE_FLOAT_MOVE;
        found->reads = all->other | all->target;
        found->writes = BIT(FERRULE_FLOAT_FLAGS);
    } else if (what == 1 && which == 3) {
        found->kind = all->twice ? FERRULE_DOUBLE_DIVIDE : FERRULE_FLOAT_ROOT;
    } else if (what < 2) {
        found->kind = FERRULE_FLOAT_MOVE;
    } else {
        found->kind = all->twice ? FERRULE_DOUBLE_ADD : FERRULE_FLOAT_ADD;
    }
}

static void float_data(struct ferrule_operation *found, uint32_t first, uint32_t second,
                       const struct floats *all)
{
    static const uint8_t SINGLE[] = {FERRULE_FLOAT_ACCUMULATE, FERRULE_FLOAT_ACCUMULATE,
                                     FERRULE_FLOAT_MULTIPLY,   FERRULE_FLOAT_ADD,
                                     FERRULE_FLOAT_DIVIDE,     FERRULE_FLOAT_FUSED,
                                     FERRULE_FLOAT_FUSED};
    static const uint8_t DOUBLE[] = {FERRULE_DOUBLE_ACCUMULATE, FERRULE_DOUBLE_ACCUMULATE,
                                     FERRULE_DOUBLE_MULTIPLY,   FERRULE_DOUBLE_ADD,
                                     FERRULE_DOUBLE_DIVIDE,     FERRULE_DOUBLE_ACCUMULATE,
                                     FERRULE_DOUBLE_ACCUMULATE};
    const uint32_t operation = field(first, 4, 2) | (first >> 5 & 4u);
    found->reads = all->one | all->other;
    found->writes = all->target;
    if (first >= 0xFE00u) { /* VSEL, VMAXNM, VRINT */
        found->kind = all->twice ? FERRULE_DOUBLE_ADD : FERRULE_FLOAT_ADD;
    } else if (operation == 7) {
        float_other(found, first, second, all);
    } else {
        found->kind = (all->twice ? DOUBLE : SINGLE)[operation];
        found->accumulated = operation < 2 || operation > 4 ? all->target : 0;
    }
}

void ferrule_decode_float(struct ferrule_operation *found, uint32_t first, uint32_t second)
{
    const bool twice = (second & 0x0100u) != 0;
    const struct floats all = {
        .twice = twice,
        .target = float_place(field(second, 12, 4), field(first, 6, 1), twice),
        .one = float_place(field(first, 0, 4), field(second, 7, 1), twice),
        .other = float_place(field(second, 0, 4), field(second, 5, 1), twice),
    };
    const uint64_t core = unless_pc(field(second, 12, 4));
    const bool to_core = (first & 0x0010u) != 0;
    if ((first & 0xFE00u) == 0xEC00u) {
        float_memory(found, first, second, &all);
    } else if ((second & 0x0010u) == 0) {
        float_data(found, first, second, &all);
    } else if ((first & 0xFFE0u) == 0xEEE0u) { /* VMRS, VMSR */
        found->kind = FERRULE_FLOAT_STATUS;
        found->reads = to_core ? BIT(FERRULE_FLOAT_FLAGS) : core;
        found->writes =
            to_core ? (core != 0 ? core : BIT(FERRULE_FLAGS)) : BIT(FERRULE_FLOAT_FLAGS);
    } else {
        found->kind = FERRULE_FLOAT_TRANSFER;
        found->reads = to_core ? all.one : core;
        found->writes = to_core ? core : all.one;
    }
}
