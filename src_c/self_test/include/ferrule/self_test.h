/* SPDX-License-Identifier: Apache-2.0 */
/** @file Compares code, constants and weights with the CRC-32 of each, which a step after the link
 * records in the firmware: `python3 seal.py firmware.elf`. */
#ifndef FERRULE_SELF_TEST_H
#define FERRULE_SELF_TEST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FERRULE_SELF_TEST_MAGIC   0x54535246u /* "FRST" in memory */
#define FERRULE_SELF_TEST_VERSION 1u
#define FERRULE_SELF_TEST_RANGES  16u

/** What a range of memory holds, and the result of a test: the first part that is damaged. */
enum ferrule_self_test_part {
    FERRULE_SELF_TEST_EQUAL = 0,        /* nothing is damaged */
    FERRULE_SELF_TEST_CODE = 1,         /* with the vector table */
    FERRULE_SELF_TEST_CONSTANTS = 2,    /* also the initial values of variables */
    FERRULE_SELF_TEST_WEIGHTS = 3,      /* the constants of the network */
    FERRULE_SELF_TEST_RECORD = 4,       /* the record itself */
    FERRULE_SELF_TEST_NOT_RECORDED = 5, /* no step after the link has filled the record */
};

/** A range of memory that does not change. */
struct ferrule_self_test_range {
    uint32_t start;
    uint32_t bytes;
    uint32_t part; /* FERRULE_SELF_TEST_CODE to FERRULE_SELF_TEST_WEIGHTS */
    uint32_t crc;  /* CRC-32 (IEEE 802.3) */
};

/** The record in the firmware; it is part of no range. */
struct ferrule_self_test_record {
    uint32_t magic;   /* FERRULE_SELF_TEST_MAGIC */
    uint32_t version; /* FERRULE_SELF_TEST_VERSION, of this struct */
    uint32_t count;   /* of the ranges in use; 0: not recorded */
    uint32_t crc;     /* CRC-32 of all ranges, those not in use among them */
    struct ferrule_self_test_range ranges[FERRULE_SELF_TEST_RANGES];
};

/**
 * @brief Compare all ranges of the record with the memory.
 *
 * Takes a few dozen cycles per byte; any thread. Ferrule's start-up calls it before main; a program
 * with its own start-up calls it itself.
 * @retval FERRULE_SELF_TEST_EQUAL nothing is damaged
 * @retval FERRULE_SELF_TEST_NOT_RECORDED the record is empty, so that nothing was compared
 * @retval others the part that is damaged: enum ferrule_self_test_part
 */
uint32_t ferrule_self_test(void);

/** @brief Return the result of the last test; FERRULE_SELF_TEST_NOT_RECORDED if there was none. */
uint32_t ferrule_self_test_result(void);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_SELF_TEST_H */
