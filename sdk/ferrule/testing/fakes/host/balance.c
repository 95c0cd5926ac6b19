/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fake.h"

enum { MAX_HELD = 256 };

/* A copy of what is known of an object, because a test may free it. */
struct held {
    const void *object; /* NULL: of a handle whose storage was initialised again */
    char text[FERRULE_FAKE_TEXT];
};

static struct held things[MAX_HELD];
static uint32_t count;

static struct held *thing_at(const void *object)
{
    for (struct held *thing = things; thing < &things[count]; thing++) {
        if (thing->object == object) {
            return thing;
        }
    }
    return NULL;
}

void fake_hold(const void *object, const char *format, ...)
{
    struct held *thing = thing_at(object);
    if (thing == NULL && count == MAX_HELD) {
        fake_misuse("more than %d objects are held", MAX_HELD);
        return;
    }
    if (thing == NULL) {
        thing = &things[count++];
    }
    va_list arguments;
    va_start(arguments, format);
    thing->object = object;
    (void)vsnprintf(thing->text, sizeof thing->text, format, arguments);
    va_end(arguments);
}

void fake_give_back(const void *object)
{
    struct held *thing = thing_at(object);
    if (thing != NULL) {
        count--;
        for (; thing < &things[count]; thing++) {
            *thing = thing[1]; /* the others stay in order */
        }
    }
}

void fake_forget_object(const void *object)
{
    struct held *thing = thing_at(object);
    if (thing != NULL) {
        static const char again[] = ", although its storage was initialised again";
        thing->object = NULL;
        (void)strncat(thing->text, again, sizeof thing->text - strlen(thing->text) - 1u);
    }
}

uint32_t ferrule_fake_left_count(void)
{
    return count;
}

const char *ferrule_fake_left(uint32_t index)
{
    return things[index].text;
}

void fake_reset_balance(void)
{
    count = 0;
}
