/* SPDX-License-Identifier: Apache-2.0 */
/** @file The same as without ESP-IDF. */
#include "../task.h"
