/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include "ferrule/conformance.h"

static const char *const status_names[] = {
    "OK",   "ARGUMENT", "UNSUPPORTED", "MEMORY", "FAILED", "UNAVAILABLE", "HANDLE",     "STATE",
    "BUSY", "TIMEOUT",  "INTERRUPT",   "OWNER",  "DEVICE", "CANCELLED",   "ITERATIONS",
};

static const char *group = "";
static uint32_t checks;
static uint32_t failed;

static void say(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        conformance_put(*at);
    }
}

static void say_number(uint32_t number)
{
    char digits[11];
    uint32_t at = sizeof digits - 1u;

    digits[at] = '\0';
    do {
        at--;
        digits[at] = (char)('0' + (char)(number % 10u));
        number /= 10u;
    } while (number > 0u);
    say(&digits[at]);
}

static void say_status(int32_t status)
{
    const int32_t count = (int32_t)(sizeof status_names / sizeof *status_names);

    if (status <= 0 && status > -count) {
        say(status_names[-status]);
    } else {
        say(status < 0 ? "-" : "");
        say_number(status < 0 ? 0u - (uint32_t)status : (uint32_t)status);
    }
}

static void say_name(const char *kind, const char *name)
{
    say(kind);
    say(group);
    say(".");
    say(name);
    say(": ");
}

static void judge(const char *name, bool is_right)
{
    checks++;
    failed += is_right ? 0u : 1u;
    say_name(is_right ? "ok     " : "FAILED ", name);
}

void report_begin(void)
{
    say("conformance of ");
    say(conformance_kernel);
    say(", ticks of ");
    say_number(conformance_tick_hz);
    say(" Hz\n");
}

void report_group(const char *name)
{
    group = name;
}

void report_status(const char *name, int32_t found, int32_t expected)
{
    judge(name, found == expected);
    say_status(found);
    say(" (");
    say_status(expected);
    say(")\n");
}

void report_number(const char *name, uint32_t found, uint32_t low, uint32_t high)
{
    judge(name, found >= low && found <= high);
    say_number(found);
    say(" (");
    say_number(low);
    if (high != low) {
        say("..");
        say_number(high);
    }
    say(")\n");
}

void report_note(const char *name, uint32_t found)
{
    say_name("note   ", name);
    say_number(found);
    say("\n");
}

void report_end(void)
{
    say("end of ");
    say_number(checks);
    say(" checks, ");
    say_number(failed);
    say(" failed\n");
}
