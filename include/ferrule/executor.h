/* SPDX-License-Identifier: Apache-2.0 */
/** @file What every generated executor shares: the optional information about one run. */
#ifndef FERRULE_EXECUTOR_H
#define FERRULE_EXECUTOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The value of `failed_operator` while no operator has failed. */
#define FERRULE_NO_OPERATOR UINT32_MAX

/** Handed to `ferrule_<model>_run` by the caller, who owns it; NULL there means that nobody asks.
 */
struct ferrule_run_info {
    uint32_t failed_operator; /* out: index of the operator that failed, or FERRULE_NO_OPERATOR */
    /* in, may be NULL: called before operator `index` runs, and once more with the number of
     * operators at the end; in the caller's thread */
    void (*on_operator)(void *context, uint32_t index);
    void *context; /* in: first argument of on_operator */
};

/** @brief Forget the failure of an earlier run. For generated executors; `info` may be NULL. */
static inline void ferrule_run_begin(struct ferrule_run_info *info)
{
    if (info != NULL) {
        info->failed_operator = FERRULE_NO_OPERATOR;
    }
}

/** @brief Tell the caller that operator `index` comes next. For generated executors; `info` may be
 * NULL. */
static inline void ferrule_run_notify(const struct ferrule_run_info *info, uint32_t index)
{
    if (info != NULL && info->on_operator != NULL) {
        info->on_operator(info->context, index);
    }
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_EXECUTOR_H */
