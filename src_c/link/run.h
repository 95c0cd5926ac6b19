/* SPDX-License-Identifier: Apache-2.0 */
/** @file Running the model under measurement. */
#ifndef FERRULE_LINK_RUN_H
#define FERRULE_LINK_RUN_H

#include <stdint.h>

#include "ferrule/link.h"

/** @brief Run the model and fill the result of `link`; the flag FERRULE_RUN_PROFILE also fills the
 * model's counters, FERRULE_RUN_TRACE its calls. */
void ferrule_link_run(struct ferrule_link *link, uint32_t flags);

#endif /* FERRULE_LINK_RUN_H */
