/* SPDX-License-Identifier: Apache-2.0 */
/** @file Running the model under measurement. */
#ifndef FERRULE_LINK_RUN_H
#define FERRULE_LINK_RUN_H

#include <stdbool.h>

#include "ferrule/link.h"

/** @brief Run the model and fill the result of `link`, and with `profile` the model's counters. */
void ferrule_link_run(struct ferrule_link *link, bool profile);

#endif /* FERRULE_LINK_RUN_H */
