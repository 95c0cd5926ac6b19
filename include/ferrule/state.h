/* SPDX-License-Identifier: Apache-2.0 */
/** @file The state that generated executors keep from run to run: whether it is valid, and its
 * update at the end of a run. */
#ifndef FERRULE_STATE_H
#define FERRULE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @brief Begin a run: until ferrule_state_end(), the state is invalid. For generated executors.
 * @retval true   the state is valid
 * @retval false  nothing has been written there for this model, or a run has begun and not ended
 */
static inline bool ferrule_state_begin(void *word, uint32_t valid)
{
    volatile uint32_t *const mark = (volatile uint32_t *)word;
    const bool is_valid = *mark == valid;
    *mark = 0u;
    return is_valid;
}

/** @brief Mark the state as valid, after it was written as a whole. For generated executors. */
static inline void ferrule_state_end(void *word, uint32_t valid)
{
    *(volatile uint32_t *)word = valid;
}

/** @brief Exchange the values of two states of the same size. For generated executors. */
static inline void ferrule_state_exchange(void *one, void *other, size_t bytes)
{
    uint8_t *const left = (uint8_t *)one;
    uint8_t *const right = (uint8_t *)other;
    for (size_t i = 0; i < bytes; ++i) {
        const uint8_t byte = left[i];
        left[i] = right[i];
        right[i] = byte;
    }
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_STATE_H */
