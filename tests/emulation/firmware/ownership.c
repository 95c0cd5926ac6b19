/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An executor with two devices, in the shape of a generated one, and drivers with one mistake that
 * the host chooses: it sends the number of the mistake, the cache's state, and then one byte for
 * each inference. The devices copy: a descriptor in memory has the places and the sizes.
 */
#include "guest.h"

#define NPU0 0x4F000000u
#define NPU1 0x4F001000u

#define SCB_CCR      0xE000ED14u
#define SCB_DCIMVAC  0xE000EF5Cu
#define SCB_DCCMVAC  0xE000EF68u
#define SCB_DCCIMVAC 0xE000EF70u
#define SCB_DCISW    0xE000EF60u
#define SCB_DCCISW   0xE000EF74u
#define LINE         32u

/* Places in the workspace; tests/emulation/test_ownership.py has the same plan. */
enum {
    X = 0,
    A = 64,
    B = 128,
    C = 192,
    S = 240,
    D = 0,
    Y = 384,
    FREE = 448,
    SIZE = 64,
    SHORT = 48,
    SCRATCH = 46 /* bytes of S: its end is aligned to a halfword only */
};

struct descriptor {
    uint32_t source, read_bytes, target, write_bytes;
};

__attribute__((aligned(1024))) uint8_t workspace[512];
__attribute__((aligned(32))) struct descriptor npu0_context, npu1_context;
const uint8_t table[SIZE] = {1, 2, 3};
static uint32_t mistake, cached;

enum mistake {
    NONE,
    INPUT_AT_WRONG_OFFSET,
    OUTPUT_AT_WRONG_OFFSET,
    OUTPUT_BEFORE_ITS_PLACE,
    WRITES_UNUSED_BYTES,
    READS_UNUSED_BYTES,
    READS_ANOTHER_LAYERS_TENSOR,
    READS_A_DEAD_TENSOR,
    WRITES_OVER_A_LIVE_INPUT,
    WRITES_OVER_A_LATER_INPUT,
    SCRATCH_READ_FIRST,
    SCRATCH_TOO_LONG,
    STORE_TOO_WIDE,
    OUTPUT_INCOMPLETE,
    INPUT_INCOMPLETE,
    OVERREAD_BY_A_WORD,
    UNALIGNED_OVERREAD,
    OVERREAD_BY_CONSECUTIVE_WORDS,
    CONSTANT_WRITTEN,
    LAYERS_SWAPPED,
    READ_WHILE_RUNNING,
    OUTPUT_WRITTEN_WHILE_RUNNING,
    INPUT_WRITTEN_WHILE_RUNNING,
    NOT_WAITED,
    READ_EARLY,
    DEVICE_WRITES_TOO_MUCH,
    DEVICE_READS_TOO_MUCH,
    DEVICE_READS_WRONG_TENSOR,
    DEVICE_WRITES_OVER_ITS_INPUT,
    DEVICE_WRITES_OVER_A_LIVE_TENSOR,
    DEVICE_SWAPS_ENDS,
    TWO_DEVICES_IN_ONE_PLACE,
    WRONG_DEVICE,
    STARTED_AFTER_ITS_LAYER,
    STARTED_BETWEEN_INFERENCES,
    DEVICE_WRITES_A_CONSTANT,
    INPUT_NOT_CLEANED,
    DESCRIPTOR_NOT_CLEANED,
    OUTPUT_NOT_INVALIDATED,
    LINES_DIRTY_BEFORE_START,
    INPUT_INVALIDATED_INSTEAD,
    CLEANED_TOO_LITTLE,
    INVALIDATED_TOO_LITTLE,
    CLEANED_BEFORE_WRITING,
    INVALIDATED_TOO_MUCH,
    INVALIDATED_BEFORE_CLEANING,
    LINE_SHARED,
    WHOLE_CACHE_INVALIDATED,
    NONE_BESIDE,
    READS_ITS_OUTPUT_EARLY,
    READS_ITS_OUTPUT_BEFORE_THE_END,
    WRITES_ITS_INPUT,
    WRITES_ITS_OUTPUT,
    NEVER_COLLECTED,
    COLLECTED_UNFINISHED,
    STARTED_AFTER_ITS_END,
    WRITES_BESIDE_ITS_OUTPUT,
    READS_WHAT_THE_CORE_WRITES,
    ANOTHER_DEVICE_WRITES,
    RESULT_NOT_INVALIDATED,
    INPUT_NOT_CLEANED_BEFORE,
};

static int has(enum mistake which)
{
    return mistake == (uint32_t)which;
}

static void maintain(uint32_t action, const volatile void *start, uint32_t bytes)
{
    const uint32_t first = (uint32_t)(uintptr_t)start & ~(LINE - 1u);
    for (uint32_t at = first; cached != 0 && at < (uint32_t)(uintptr_t)start + bytes; at += LINE) {
        REGISTER(action) = at;
    }
}

static uint8_t *place(uint32_t offset)
{
    return workspace + offset;
}

/* Volatile accesses of bytes, so that the compiler calls no function and removes none. */
static void fill(uint32_t offset, uint32_t bytes, uint32_t value)
{
    for (uint32_t i = 0; i < bytes; ++i) {
        *(volatile uint8_t *)(place(offset) + i) = (uint8_t)(value + i);
    }
}

static uint32_t sum(uint32_t offset, uint32_t bytes)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < bytes; ++i) {
        found += *(volatile uint8_t *)(place(offset) + i);
    }
    return found;
}

__attribute__((noinline)) void ferrule_held_next(void *held, uint32_t index)
{
    __asm volatile("" : : "r"(held), "r"(index) : "memory");
}

__attribute__((noinline)) int32_t ferrule_held_ran(const void *held, uint32_t device,
                                                   int32_t status)
{
    __asm volatile("" : : "r"(held), "r"(device) : "memory");
    return status;
}

static void start(uint32_t base, struct descriptor *own, uint32_t source, uint32_t target,
                  uint32_t bytes)
{
    *own = (struct descriptor){(uint32_t)(uintptr_t)place(source), bytes,
                               (uint32_t)(uintptr_t)place(target), bytes};
    own->write_bytes += has(DEVICE_WRITES_TOO_MUCH) ? 4u : 0u;
    own->read_bytes += has(DEVICE_READS_TOO_MUCH) ? 4u : 0u;
    if (!has(DESCRIPTOR_NOT_CLEANED)) {
        maintain(SCB_DCCMVAC, own, sizeof *own);
    }
    REGISTER(base + 4u) = (uint32_t)(uintptr_t)own;
}

static void wait(uint32_t base)
{
    while (REGISTER(base) != 0) {
    }
}

static void run_device(uint32_t base, struct descriptor *own, uint32_t source, uint32_t target,
                       uint32_t bytes)
{
    if (has(INPUT_INVALIDATED_INSTEAD) || has(INVALIDATED_BEFORE_CLEANING)) {
        maintain(SCB_DCIMVAC, place(source), bytes);
    }
    if (!has(INPUT_NOT_CLEANED) && !has(CLEANED_BEFORE_WRITING)) {
        maintain(SCB_DCCMVAC, place(source), has(CLEANED_TOO_LITTLE) ? bytes - LINE : bytes);
    }
    if (has(WHOLE_CACHE_INVALIDATED) && cached != 0) {
        REGISTER(SCB_DCISW) = 0;
    } else if (!has(LINES_DIRTY_BEFORE_START)) {
        maintain(SCB_DCCIMVAC, place(target), bytes);
    } else {
        fill(target, 4, 0);
    }
    if (has(INVALIDATED_TOO_MUCH)) {
        maintain(SCB_DCIMVAC, place(Y), LINE);
    }
    start(base, own, source, target, bytes);
    if (has(READ_WHILE_RUNNING)) {
        (void)sum(target, 1);
    }
    if (has(OUTPUT_WRITTEN_WHILE_RUNNING)) {
        fill(target, 1, 0);
    }
    if (has(INPUT_WRITTEN_WHILE_RUNNING)) {
        fill(source, 1, 0);
    }
    if (!has(NOT_WAITED) && !has(READ_EARLY)) {
        wait(base);
    }
    if (!has(OUTPUT_NOT_INVALIDATED)) {
        maintain(SCB_DCCIMVAC, place(target),
                 has(INVALIDATED_TOO_LITTLE) || has(LINE_SHARED) ? bytes - LINE : bytes);
    }
}

static void first(void) /* the core: X -> A, and Y */
{
    uint32_t found = sum(has(INPUT_AT_WRONG_OFFSET) ? X + 8 : X, SIZE);
    if (has(CLEANED_BEFORE_WRITING)) {
        maintain(SCB_DCCMVAC, place(A), SIZE);
    }
    found += has(READS_UNUSED_BYTES) ? sum(FREE, 1) : 0;
    found += has(OVERREAD_BY_A_WORD) ? *(volatile uint32_t *)(place(X) + SIZE) : 0;
    found += has(UNALIGNED_OVERREAD) ? *(volatile uint32_t *)(place(X) + SIZE + 2) : 0;
    found += *(volatile uint32_t *)(place(X) + SIZE - 5); /* unaligned, and allowed */
    const uint32_t output = has(OUTPUT_AT_WRONG_OFFSET) ? A + 8 : A;
    fill(has(OUTPUT_BEFORE_ITS_PLACE) ? A - 8 : output, has(OUTPUT_INCOMPLETE) ? SIZE - 4 : SIZE,
         found);
    fill(Y, SIZE, found);
    if (has(WRITES_UNUSED_BYTES)) {
        fill(FREE, 1, 0);
    }
    if (has(CONSTANT_WRITTEN)) {
        *(volatile uint8_t *)(uintptr_t)table = 1;
    }
}

static void second(void) /* npu0: A -> B */
{
    const uint32_t source = has(DEVICE_READS_WRONG_TENSOR) ? Y : A;
    uint32_t target = has(DEVICE_WRITES_OVER_ITS_INPUT) ? A : B;
    target = has(DEVICE_WRITES_OVER_A_LIVE_TENSOR) ? Y : target;
    target = has(DEVICE_WRITES_A_CONSTANT) ? (uint32_t)((uintptr_t)table - (uintptr_t)workspace)
                                           : target;
    if (has(WRONG_DEVICE)) {
        run_device(NPU1, &npu1_context, source, target, SIZE);
    } else if (has(DEVICE_SWAPS_ENDS)) {
        run_device(NPU0, &npu0_context, B, A, SIZE);
    } else if (!has(STARTED_AFTER_ITS_LAYER)) {
        run_device(NPU0, &npu0_context, source, target, SIZE);
    }
    (void)ferrule_held_ran(0, 0, 0);
    if (has(STARTED_AFTER_ITS_LAYER)) {
        run_device(NPU0, &npu0_context, A, B, SIZE);
    }
}

static void third(void) /* npu1: B -> C */
{
    if (has(READ_EARLY)) {
        wait(NPU0);
    }
    run_device(NPU1, &npu1_context, B, has(TWO_DEVICES_IN_ONE_PLACE) ? A : C, SHORT);
    (void)ferrule_held_ran(0, 1, 0);
}

static uint32_t fourth(void) /* the core: C, A, Y -> D, with scratch S */
{
    uint32_t found = has(SCRATCH_READ_FIRST) ? sum(S, 1) : 0;
    if (!has(LINE_SHARED)) {
        found += sum(C, SHORT);
    }
    if (has(STORE_TOO_WIDE)) { /* after a narrower store that is allowed */
        *(volatile uint16_t *)(place(S) + SCRATCH - 4) = 0;
        *(volatile uint32_t *)(place(S) + SCRATCH - 2) = 0;
    }
    fill(S, has(SCRATCH_TOO_LONG) ? SIZE : SCRATCH, found);
    found += sum(C, SHORT) + sum(A, SIZE) + sum(Y, SIZE) + sum(S, SCRATCH);
    if (has(OVERREAD_BY_CONSECUTIVE_WORDS)) { /* the last word has two bytes behind the scratch */
        found += *(volatile uint32_t *)(place(S) + SCRATCH - 6);
        found += *(volatile uint32_t *)(place(S) + SCRATCH - 2);
    }
    found += has(READS_ANOTHER_LAYERS_TENSOR) ? sum(B, 1) : 0;
    found += has(READS_A_DEAD_TENSOR) ? sum(X, 1) : 0;
    fill(has(WRITES_OVER_A_LIVE_INPUT) ? A : D, SIZE, found);
    return found;
}

__attribute__((noinline)) uint32_t executor_run(void)
{
    ferrule_held_next(0, has(LAYERS_SWAPPED) ? 3 : 0);
    first();
    ferrule_held_next(0, 1);
    if (has(WRITES_OVER_A_LATER_INPUT)) {
        fill(Y, 1, 0);
    }
    second();
    ferrule_held_next(0, 2);
    third();
    ferrule_held_next(0, 3);
    const uint32_t found = fourth();
    ferrule_held_next(0, 4);
    return found + sum(D, 1);
}

__attribute__((noinline)) int32_t ferrule_held_finish(void *held, uint32_t device, uint32_t index,
                                                      uint32_t timeout_us)
{
    __asm volatile("" : : "r"(held), "r"(device), "r"(index), "r"(timeout_us) : "memory");
    if (!has(COLLECTED_UNFINISHED)) {
        wait(NPU0);
    }
    return 0;
}

static void begin_second(void) /* npu0: A -> B */
{
    const uint32_t source = has(READS_WHAT_THE_CORE_WRITES) ? FREE : A;
    const uint32_t target = has(WRITES_BESIDE_ITS_OUTPUT) ? C : B;
    if (!has(INPUT_NOT_CLEANED_BEFORE)) {
        maintain(SCB_DCCMVAC, place(source), SIZE);
    }
    maintain(SCB_DCCIMVAC, place(B), SIZE);
    if (has(ANOTHER_DEVICE_WRITES)) {
        start(NPU1, &npu1_context, A, B, SIZE);
    } else if (!has(STARTED_AFTER_ITS_END) && !has(COLLECTED_UNFINISHED)) {
        start(NPU0, &npu0_context, source, target, SIZE);
    }
    (void)ferrule_held_ran(0, 0, 0);
}

static void beside(void) /* the core, while npu0 works: Y -> FREE */
{
    if (has(READS_ITS_OUTPUT_EARLY)) {
        (void)sum(B, 1);
    }
    if (has(WRITES_ITS_INPUT)) {
        fill(A, 1, 0);
    }
    if (has(WRITES_ITS_OUTPUT)) {
        fill(B, 1, 0);
    }
    fill(FREE, SIZE, sum(Y, SIZE));
    if (has(COLLECTED_UNFINISHED)) { /* the late start is no mistake, the missing wait is */
        start(NPU0, &npu0_context, A, B, SIZE);
    }
    if (has(READS_ITS_OUTPUT_BEFORE_THE_END)) {
        wait(NPU0);
        (void)sum(B, 1);
    }
}

__attribute__((noinline)) uint32_t executor_beside(void)
{
    ferrule_held_next(0, 0);
    first();
    ferrule_held_next(0, 1);
    begin_second();
    ferrule_held_next(0, 2);
    beside();
    if (!has(NEVER_COLLECTED)) {
        (void)ferrule_held_finish(0, 0, 1, 0);
    }
    if (!has(RESULT_NOT_INVALIDATED)) {
        maintain(SCB_DCCIMVAC, place(B), SIZE);
    }
    if (has(STARTED_AFTER_ITS_END)) {
        start(NPU0, &npu0_context, A, B, SIZE);
        wait(NPU0);
    }
    if (has(COLLECTED_UNFINISHED)) {
        wait(NPU0);
    }
    ferrule_held_next(0, 3);
    fill(D, SIZE, sum(B, SIZE) + sum(FREE, SIZE));
    ferrule_held_next(0, 4);
    return sum(D, SIZE);
}

int main(void)
{
    start_uart();
    mistake = get();
    cached = get();
    for (uint32_t round = 0;; ++round) {
        const uint32_t seed = get();
        fill(X, has(INPUT_INCOMPLETE) ? SIZE - 1 : SIZE, seed);
        if (cached != 0 && round == 0) {
            REGISTER(SCB_DCCISW) = 0;
            REGISTER(SCB_CCR) |= 1u << 16;
        }
        if (has(STARTED_BETWEEN_INFERENCES) && round > 0) {
            start(NPU0, &npu0_context, A, B, SIZE);
            wait(NPU0);
        }
        put_word(/* the mistakes from NONE_BESIDE on are those beside a device */
                 mistake < NONE_BESIDE ? executor_run() : executor_beside());
    }
}
