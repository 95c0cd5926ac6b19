/* SPDX-License-Identifier: Apache-2.0 */
/* The log of the module, whose sources depend on the configuration. */
#include <zephyr/logging/log.h>

LOG_MODULE_REGISTER(ferrule, CONFIG_FERRULE_LOG_LEVEL);
