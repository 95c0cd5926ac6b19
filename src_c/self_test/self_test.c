/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/self_test.h"

#include <stdbool.h>

#include "ferrule/core.h"
#include "ferrule/frame.h"

#ifdef FERRULE_CORE_HAS_SECTIONS
#define RECORD_SECTION __attribute__((section(".rodata.ferrule_self_test"), used))
#else
#define RECORD_SECTION
#endif

extern const struct ferrule_self_test_record ferrule_self_test_record;
RECORD_SECTION const struct ferrule_self_test_record ferrule_self_test_record = {
    .magic = FERRULE_SELF_TEST_MAGIC,
    .version = FERRULE_SELF_TEST_VERSION,
    .count = 0,
};

static uint32_t tested; /* the part in `result`, once there is one */
static bool is_tested;

static const uint8_t *at(uint32_t address)
{
    return (const uint8_t *)(uintptr_t)address; /* an address that the linker has assigned */
}

static uint32_t compared(void)
{
    /* Volatile: the compiler must not know the values, which a later step writes. */
    const volatile struct ferrule_self_test_record *record = &ferrule_self_test_record;
    const uint32_t count = record->count;
    if (count == 0) {
        return FERRULE_SELF_TEST_NOT_RECORDED;
    }
    /* The contents do not change any more, so that the CRC may read them as plain bytes. */
    const uint8_t *ranges = (const uint8_t *)(uintptr_t)record->ranges;
    if (record->magic != FERRULE_SELF_TEST_MAGIC || record->version != FERRULE_SELF_TEST_VERSION ||
        count > FERRULE_SELF_TEST_RANGES ||
        ferrule_crc32(ranges, sizeof record->ranges) != record->crc) {
        return FERRULE_SELF_TEST_RECORD;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t crc = ferrule_crc32(at(record->ranges[i].start), record->ranges[i].bytes);
        if (crc != record->ranges[i].crc) {
            return record->ranges[i].part;
        }
    }
    return FERRULE_SELF_TEST_EQUAL;
}

uint32_t ferrule_self_test(void)
{
    tested = compared();
    is_tested = true;
    return tested;
}

uint32_t ferrule_self_test_result(void)
{
    return is_tested ? tested : (uint32_t)FERRULE_SELF_TEST_NOT_RECORDED;
}
