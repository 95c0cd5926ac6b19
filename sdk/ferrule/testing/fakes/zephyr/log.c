/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <zephyr/logging/log.h>

#include "fake.h"
#include "ferrule_fake_zephyr.h"

enum { LOG_BYTES = 4096 };

static char text[LOG_BYTES];

/* Appends a line; what does not fit is cut off. */
void ferrule_fake_log(const char *level, const char *format, ...)
{
    va_list arguments;
    char line[256];

    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fake_lock();
    const size_t used = strlen(text);
    (void)snprintf(text + used, sizeof text - used, "<%s> %s\n", level, line);
    fake_unlock();
}

const char *ferrule_fake_log_text(void)
{
    return text;
}

void ferrule_fake_log_clear(void)
{
    text[0] = '\0';
}
