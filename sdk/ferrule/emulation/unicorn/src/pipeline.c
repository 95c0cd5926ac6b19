/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline.h"

#include <stddef.h>
#include <string.h>

/* The cycles from an instruction's begin until the next may begin, and until its result is there.
 */
struct cost {
    uint32_t cycles;
    uint32_t latency;
    uint32_t unit; /* until the floating-point unit is free */
};

void ferrule_pipeline_clear(struct ferrule_pipeline *pipeline)
{
    memset(pipeline, 0, sizeof *pipeline);
    pipeline->kind = FERRULE_NONE;
    pipeline->base = FERRULE_PLACES;
}

static void age(uint8_t *left, uint32_t cycles)
{
    *left = (uint8_t)(*left > cycles ? *left - cycles : 0);
}

static void pass(struct ferrule_pipeline *pipeline, uint32_t cycles)
{
    if (cycles == 0) {
        return;
    }
    for (uint32_t i = 0; i < FERRULE_PLACES; ++i) {
        age(&pipeline->left[i], cycles);
        if (pipeline->left[i] < 2) {
            pipeline->loaded &= ~(UINT64_C(1) << i);
        }
    }
    age(&pipeline->unit_left, cycles);
}

void ferrule_pipeline_pass(struct ferrule_pipeline *pipeline, uint32_t cycles)
{
    pass(pipeline, cycles);
    pipeline->kind = FERRULE_NONE;
    pipeline->alone = 0;
    pipeline->sets_flags = 0;
    pipeline->bytes = 0;
    pipeline->base = FERRULE_PLACES;
    pipeline->offset = 0;
}

static uint32_t multiple(uint32_t base, uint32_t words, uint32_t count)
{
    return base + (words == 0 ? count : (count + words - 1) / words);
}

static struct cost float_cost(const struct ferrule_core_timing *core,
                              const struct ferrule_operation *operation)
{
    const uint32_t words =
        multiple(core->float_multiple, core->float_multiple_words, operation->count);
    switch (operation->kind) {
    case FERRULE_FLOAT_ADD:
        return (struct cost){core->float_add, core->float_add_latency, core->float_add};
    case FERRULE_FLOAT_MULTIPLY:
        return (struct cost){core->float_multiply, core->float_multiply_latency,
                             core->float_multiply};
    case FERRULE_FLOAT_ACCUMULATE:
        return (struct cost){core->float_accumulate, core->float_accumulate_latency,
                             core->float_unit};
    case FERRULE_FLOAT_FUSED:
        return (struct cost){core->float_fused, core->float_fused_latency, core->float_unit};
    case FERRULE_FLOAT_DIVIDE:
        return (struct cost){core->float_holds != 0 ? core->float_divide : 1u,
                             core->float_divide + 1, core->float_divide};
    case FERRULE_FLOAT_ROOT:
        return (struct cost){core->float_holds != 0 ? core->float_root : 1u, core->float_root + 1,
                             core->float_root};
    case FERRULE_FLOAT_MOVE:
        return (struct cost){core->float_move, core->float_move_latency, 0};
    case FERRULE_FLOAT_TRANSFER:
        return (struct cost){core->float_transfer, core->float_transfer_latency, 0};
    case FERRULE_FLOAT_TRANSFER_DOUBLE:
        return (struct cost){core->float_transfer_double, core->float_transfer_latency, 0};
    case FERRULE_FLOAT_STATUS:
        return (struct cost){core->float_status, core->float_status, 0};
    case FERRULE_FLOAT_LOAD:
        return (struct cost){core->float_load, core->float_load_latency, 0};
    case FERRULE_FLOAT_STORE:
        return (struct cost){core->float_store, 1, 0};
    case FERRULE_FLOAT_LOAD_DOUBLE:
        return (struct cost){core->float_load_double, core->float_load_double, 0};
    case FERRULE_FLOAT_STORE_DOUBLE:
        return (struct cost){core->float_store_double, 1, 0};
    case FERRULE_FLOAT_LOAD_MULTIPLE:
    case FERRULE_FLOAT_STORE_MULTIPLE:
        return (struct cost){words, words, 0};
    case FERRULE_DOUBLE_ADD:
        return (struct cost){core->double_add, core->double_add_latency, core->double_add};
    case FERRULE_DOUBLE_MULTIPLY:
        return (struct cost){core->double_multiply, core->double_multiply_latency,
                             core->double_multiply};
    case FERRULE_DOUBLE_ACCUMULATE:
        return (struct cost){core->double_accumulate, core->double_accumulate_latency,
                             core->double_accumulate};
    default:
        return (struct cost){core->double_divide, core->double_divide, core->double_divide};
    }
}

static struct cost cost_of(const struct ferrule_core_timing *core,
                           const struct ferrule_operation *operation)
{
    const uint32_t words = multiple(core->multiple, core->multiple_words, operation->count);
    const bool flags = (operation->writes >> FERRULE_FLAGS & 1u) != 0;
    switch (operation->kind) {
    case FERRULE_ALU:
        return (struct cost){core->alu, core->alu_latency, 0};
    case FERRULE_SHIFTED:
        return (struct cost){core->shifted, core->shifted_latency, 0};
    case FERRULE_FIELD:
        return (struct cost){core->field, core->field_latency, 0};
    case FERRULE_MULTIPLY:
        return (struct cost){core->multiply + (flags ? core->multiply_flags : 0),
                             core->multiply_latency, 0};
    case FERRULE_ACCUMULATE:
        return (struct cost){core->accumulate, core->multiply_latency, 0};
    case FERRULE_MULTIPLY_LONG:
        return (struct cost){core->multiply_long, core->multiply_latency, 0};
    case FERRULE_ACCUMULATE_LONG:
        return (struct cost){core->accumulate_long, core->multiply_latency, 0};
    case FERRULE_DIVIDE:
        return (struct cost){core->divide_least, core->divide_least, 0};
    case FERRULE_LOAD:
    case FERRULE_EXCLUSIVE:
        return (struct cost){core->load, core->load_latency, 0};
    case FERRULE_LOAD_NARROW:
        return (struct cost){core->load, core->load_narrow_latency, 0};
    case FERRULE_STORE:
        return (struct cost){core->store, 1, 0};
    case FERRULE_STORE_REGISTER:
        return (struct cost){core->store + core->store_register, 1, 0};
    case FERRULE_LOAD_DOUBLE:
        return (struct cost){core->load_double, core->load_double, 0};
    case FERRULE_STORE_DOUBLE:
        return (struct cost){core->store_double, 1, 0};
    case FERRULE_LOAD_MULTIPLE:
    case FERRULE_STORE_MULTIPLE:
        return (struct cost){words, words, 0};
    case FERRULE_BRANCH:
        return (struct cost){core->branch, 1, 0};
    case FERRULE_TABLE:
        return (struct cost){core->table_branch, 1, 0};
    case FERRULE_IT:
        return (struct cost){core->it, 1, 0};
    case FERRULE_NOP:
        return (struct cost){core->nop, 1, 0};
    case FERRULE_BARRIER:
        return (struct cost){core->barrier, 1, 0};
    case FERRULE_SPECIAL:
        return (struct cost){core->special, core->special, 0};
    case FERRULE_STATE:
        return (struct cost){core->state, 1, 0};
    default:
        return float_cost(core, operation);
    }
}

/* The cycles that an instruction waits for some registers, which it needs some cycles earlier than
 * others do; less than 0: they are there before. */
static int32_t wait_for(const struct ferrule_pipeline *pipeline, uint64_t registers, int32_t early)
{
    int32_t longest = -1;
    for (uint32_t i = 0; registers >> i != 0; ++i) {
        if ((registers >> i & 1u) != 0) {
            const int32_t wait = (int32_t)pipeline->left[i] - 2 + early;
            longest = wait > longest ? wait : longest;
        }
    }
    return longest;
}

static int32_t most(int32_t one, int32_t other)
{
    return one > other ? one : other;
}

static int32_t wait_of(const struct ferrule_core_timing *core,
                       const struct ferrule_pipeline *pipeline,
                       const struct ferrule_operation *operation)
{
    const uint32_t kind = operation->kind;
    const bool stores_float = kind == FERRULE_FLOAT_STORE;
    const bool rounds = kind == FERRULE_FLOAT_ACCUMULATE || kind == FERRULE_DOUBLE_ACCUMULATE;
    const uint32_t late = rounds                        ? core->float_accumulate_late
                          : kind == FERRULE_FLOAT_FUSED ? core->float_fused_late
                                                        : core->accumulate_late;
    const uint32_t stored = stores_float ? core->float_store_late : core->store_late;
    const bool product = ferrule_operation_is_product(kind);
    int32_t wait = wait_for(pipeline, operation->addresses, (int32_t)core->address_early);
    wait = most(wait, wait_for(pipeline, operation->shifted, (int32_t)core->shifted_early));
    wait = most(wait, wait_for(pipeline, operation->data, -(int32_t)stored));
    wait = most(wait, wait_for(pipeline, operation->accumulated, -(int32_t)late));
    wait = most(wait, wait_for(pipeline, operation->reads, 0));
    if (product) {
        wait = most(wait, wait_for(pipeline, operation->reads & pipeline->loaded,
                                   (int32_t)core->load_multiply));
    }
    if (ferrule_operation_is_float(kind)) {
        wait = most(wait, (int32_t)pipeline->unit_left - 2);
    }
    return wait;
}

/* Whether two loads are known not to need the same bank of a memory, which has the even or the odd
 * words. */
static bool differ_in_bank(const struct ferrule_pipeline *first,
                           const struct ferrule_operation *second, uint32_t pair_loads)
{
    if (first->base == FERRULE_PLACES || first->base != second->base) {
        return pair_loads >= 2;
    }
    return ((first->offset ^ second->offset) & 4) != 0;
}

static bool is_single(uint32_t kind) /* it begins alone */
{
    return kind == FERRULE_DIVIDE || kind == FERRULE_EXCLUSIVE ||
           (kind >= FERRULE_LOAD_DOUBLE && kind <= FERRULE_STORE_MULTIPLE) ||
           (kind >= FERRULE_TABLE && kind <= FERRULE_IT) ||
           (kind >= FERRULE_BARRIER && kind <= FERRULE_STATE) ||
           kind == FERRULE_FLOAT_TRANSFER_DOUBLE || kind == FERRULE_FLOAT_STATUS ||
           kind >= FERRULE_FLOAT_LOAD_DOUBLE;
}

static bool is_memory(uint32_t kind)
{
    return ferrule_operation_is_load(kind) || ferrule_operation_is_store(kind);
}

static bool conflict(uint32_t first, uint32_t second) /* both need a unit that exists once */
{
    const bool float_first = ferrule_operation_is_float(first) || first == FERRULE_FLOAT_MOVE;
    const bool float_second = ferrule_operation_is_float(second) || second == FERRULE_FLOAT_MOVE;
    const bool fused = first == FERRULE_FLOAT_ACCUMULATE || first == FERRULE_FLOAT_FUSED;
    const bool product = ferrule_operation_is_product(first);
    const bool other_product = ferrule_operation_is_product(second);
    return second == FERRULE_FIELD ||
           (product && (other_product || ferrule_operation_is_store(second))) ||
           (other_product && ferrule_operation_is_store(first)) ||
           (ferrule_operation_is_store(first) && ferrule_operation_is_store(second)) ||
           (float_first && float_second) || (fused && is_memory(second)) ||
           (first == FERRULE_BRANCH && second == FERRULE_BRANCH);
}

/* Whether an instruction needs the shifter that is before the unit of the arithmetic. */
static bool shifts(const struct ferrule_operation *operation)
{
    return operation->kind == FERRULE_SHIFTED || operation->shifted != 0;
}

/* Whether an instruction may begin in the same cycle as the one before it. */
static bool pairs(const struct ferrule_core_timing *core, const struct ferrule_pipeline *pipeline,
                  const struct ferrule_operation *operation)
{
    const uint32_t kind = operation->kind;
    if (pipeline->alone == 0) {
        return false;
    }
    if (core->issue == 1) {
        return pipeline->bytes == 2 && operation->bytes == 2 && pipeline->kind != FERRULE_BRANCH &&
               (kind == FERRULE_NOP || (kind == FERRULE_BRANCH && pipeline->kind != FERRULE_NOP));
    }
    if (core->issue != 2 || is_single(kind) || is_single(pipeline->kind) ||
        conflict(pipeline->kind, kind) || (pipeline->shifts != 0 && shifts(operation))) {
        return false;
    }
    return !(ferrule_operation_is_load(kind) && ferrule_operation_is_load(pipeline->kind)) ||
           (core->pair_loads != 0 && differ_in_bank(pipeline, operation, core->pair_loads));
}

static void write_results(const struct ferrule_core_timing *core, struct ferrule_pipeline *pipeline,
                          const struct ferrule_operation *operation, struct cost cost, bool forward)
{
    const bool loads = ferrule_operation_is_load(operation->kind);
    const uint32_t base = core->alu_latency + 2 - core->alu_forward; /* from the address's unit */
    const uint32_t full = cost.latency + 2 - (forward ? core->alu_forward : 0);
    const uint64_t all = operation->writes | operation->writes_base;
    for (uint32_t i = 0; all >> i != 0; ++i) {
        const uint64_t bit = UINT64_C(1) << i;
        if ((all & bit) != 0) {
            const uint32_t ready = (operation->writes & bit) != 0 ? full : base;
            pipeline->left[i] = (uint8_t)(ready > cost.cycles ? ready - cost.cycles : 0);
            pipeline->loaded =
                (pipeline->loaded & ~bit) |
                (loads && (operation->writes & bit) != 0 && pipeline->left[i] >= 2 ? bit : 0);
        }
    }
    if (cost.unit != 0) {
        const uint32_t free_in = cost.unit + 2;
        pipeline->unit_left = (uint8_t)(free_in > cost.cycles ? free_in - cost.cycles : 0);
    }
}

static void find_passage(const struct ferrule_core_timing *core,
                         const struct ferrule_pipeline *pipeline,
                         const struct ferrule_operation *operation, bool together, bool in_it,
                         struct ferrule_passage *passage)
{
    const uint32_t refills[] = {0, core->refill_direct, core->refill_link, core->refill_indirect,
                                core->refill_load};
    passage->jumps = operation->jump != FERRULE_JUMP_NONE;
    passage->conditional = operation->conditional || in_it;
    passage->refill = refills[operation->jump];
    if (together && passage->conditional && pipeline->sets_flags != 0) {
        passage->refill += core->flags_refill;
    }
}

struct ferrule_passage ferrule_pipeline_step(const struct ferrule_core_timing *core,
                                             struct ferrule_pipeline *pipeline,
                                             const struct ferrule_operation *operation)
{
    const uint32_t kind = operation->kind;
    const bool in_it = pipeline->it_left != 0;
    struct cost cost = cost_of(core, operation);
    const int32_t wait = wait_of(core, pipeline, operation);
    struct ferrule_passage passage = {0};
    const bool after_load = ferrule_operation_is_load(pipeline->kind);
    const bool folds = kind == FERRULE_IT && core->it_folds != 0 && pipeline->bytes == 2;
    const bool together = folds || (wait < 0 && pairs(core, pipeline, operation));
    const bool follows = wait < 0 && after_load && core->load_pipelined != 0 && is_memory(kind);
    uint32_t cycles = folds || cost.cycles == 0 ? 0 : cost.cycles - 1; /* the first is shared */
    if (!together) {
        cycles = cost.cycles + (wait > 0 ? (uint32_t)wait : 0);
        if (follows) {
            cycles -= cycles < core->load_pipelined ? cycles : core->load_pipelined;
        } else if (ferrule_operation_is_store(pipeline->kind) && ferrule_operation_is_load(kind)) {
            cycles += core->load_after_store;
        }
    }
    const bool forward =
        operation->early && !together &&
        wait_for(pipeline, operation->reads | operation->shifted, 0) < most(wait, 0);
    find_passage(core, pipeline, operation, together, in_it, &passage);
    pass(pipeline, cycles);
    write_results(core, pipeline, operation, cost, forward);
    pipeline->it_left = (uint8_t)(kind == FERRULE_IT ? operation->count
                                  : in_it            ? pipeline->it_left - 1
                                                     : 0);
    pipeline->kind = (uint8_t)kind;
    pipeline->bytes = (uint8_t)(folds ? 0 : operation->bytes);
    pipeline->alone = (uint8_t)(!together && core->issue != 0);
    pipeline->shifts = shifts(operation);
    pipeline->sets_flags = (operation->writes >> FERRULE_FLAGS & 1u) != 0 &&
                           !(in_it && operation->bytes == 2 && (operation->writes & 0xFFFFu) != 0);
    pipeline->base = is_memory(kind) ? operation->base : FERRULE_PLACES;
    pipeline->offset = (int16_t)(is_memory(kind) ? operation->offset : 0);
    passage.cycles = cycles;
    return passage;
}

static uint32_t significant(uint32_t value)
{
    uint32_t bits = 0;
    for (; value != 0; value >>= 1) {
        ++bits;
    }
    return bits;
}

static uint32_t magnitude(uint32_t value, bool is_signed)
{
    return is_signed && (value >> 31) != 0 ? 0u - value : value;
}

/* Arm states the least and the most cycles, and that the operands' leading zeros and ones decide;
 * here each bit of the quotient takes an equal share of the difference. */
uint32_t ferrule_pipeline_division(const struct ferrule_core_timing *core, uint32_t dividend,
                                   uint32_t divisor, bool is_signed)
{
    const uint32_t upper = significant(magnitude(dividend, is_signed));
    const uint32_t lower = significant(magnitude(divisor, is_signed));
    const uint32_t bits = divisor == 0 || upper < lower ? 0 : upper - lower + 1;
    const uint32_t range =
        core->divide_most > core->divide_least ? core->divide_most - core->divide_least : 0;
    return (bits * range + 31) / 32;
}
