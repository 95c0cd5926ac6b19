/* SPDX-License-Identifier: Apache-2.0 */
#include "nvic.h"

enum { WORDS = FERRULE_EXCEPTIONS / 32 };

bool ferrule_set_has(const struct ferrule_exception_set *set, uint32_t exception)
{
    return (set->words[exception / 32] >> (exception % 32) & 1u) != 0;
}

void ferrule_set_put(struct ferrule_exception_set *set, uint32_t exception, bool member)
{
    const uint32_t bit = 1u << (exception % 32);
    if (member) {
        set->words[exception / 32] |= bit;
    } else {
        set->words[exception / 32] &= ~bit;
    }
}

void ferrule_nvic_reset(struct ferrule_nvic *nvic, uint32_t lines, uint32_t priority_mask)
{
    static const uint32_t always[] = {
        FERRULE_RESET,         FERRULE_NMI,    FERRULE_HARD_FAULT, FERRULE_SVCALL,
        FERRULE_DEBUG_MONITOR, FERRULE_PENDSV, FERRULE_SYSTICK,
    };
    *nvic = (struct ferrule_nvic){0};
    nvic->count = FERRULE_FIRST_LINE + lines;
    nvic->priority_mask = priority_mask;
    nvic->priority[FERRULE_RESET] = -3;
    nvic->priority[FERRULE_NMI] = -2;
    nvic->priority[FERRULE_HARD_FAULT] = -1;
    for (uint32_t i = 0; i < sizeof always / sizeof always[0]; ++i) {
        ferrule_set_put(&nvic->enabled, always[i], true);
    }
}

int32_t ferrule_nvic_group_priority(const struct ferrule_nvic *nvic, int32_t priority)
{
    if (priority < 0 || priority >= FERRULE_PRIORITY_NONE) {
        return priority;
    }
    return priority & (int32_t)(0xFFu & ~((2u << nvic->group) - 1u));
}

/* Returns the lowest priority value in a set, or FERRULE_PRIORITY_NONE if it is empty; ties go to
 * the lowest number. */
static int32_t most_urgent(const struct ferrule_nvic *nvic, const uint32_t *words, uint32_t *which)
{
    int32_t best = FERRULE_PRIORITY_NONE;
    for (uint32_t i = 0; i < WORDS; ++i) {
        for (uint32_t rest = words[i], bit = 0; rest != 0; rest >>= 1, ++bit) {
            const uint32_t exception = 32 * i + bit;
            if ((rest & 1u) != 0 && nvic->priority[exception] < best) {
                best = nvic->priority[exception];
                *which = exception;
            }
        }
    }
    return best;
}

int32_t ferrule_nvic_active_priority(const struct ferrule_nvic *nvic)
{
    uint32_t exception = 0;
    return ferrule_nvic_group_priority(nvic, most_urgent(nvic, nvic->active.words, &exception));
}

uint32_t ferrule_nvic_next(const struct ferrule_nvic *nvic, int32_t *priority)
{
    uint32_t candidates[WORDS];
    uint32_t exception = 0;
    for (uint32_t i = 0; i < WORDS; ++i) {
        candidates[i] = nvic->pending.words[i] & nvic->enabled.words[i];
    }
    *priority = ferrule_nvic_group_priority(nvic, most_urgent(nvic, candidates, &exception));
    return exception;
}

uint32_t ferrule_nvic_active_count(const struct ferrule_nvic *nvic)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < WORDS; ++i) {
        for (uint32_t rest = nvic->active.words[i]; rest != 0; rest &= rest - 1) {
            ++count;
        }
    }
    return count;
}

void ferrule_nvic_activate(struct ferrule_nvic *nvic, uint32_t exception)
{
    ferrule_set_put(&nvic->pending, exception, false);
    ferrule_set_put(&nvic->active, exception, true);
}

void ferrule_nvic_deactivate(struct ferrule_nvic *nvic, uint32_t exception)
{
    ferrule_set_put(&nvic->active, exception, false);
    if (ferrule_set_has(&nvic->high, exception)) {
        ferrule_set_put(&nvic->pending, exception, true);
    }
}

void ferrule_nvic_set_level(struct ferrule_nvic *nvic, uint32_t exception, bool high)
{
    if (high && !ferrule_set_has(&nvic->high, exception)) {
        ferrule_set_put(&nvic->pending, exception, true);
    }
    ferrule_set_put(&nvic->high, exception, high);
}

void ferrule_nvic_clear_pending(struct ferrule_nvic *nvic, uint32_t exception)
{
    const bool held =
        ferrule_set_has(&nvic->high, exception) && !ferrule_set_has(&nvic->active, exception);
    if (!held) {
        ferrule_set_put(&nvic->pending, exception, false);
    }
}
