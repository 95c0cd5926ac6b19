/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Names the tensor whose pages an access must not reach, and ends the process.
 *
 * The table and the note belong to the caller, who changes the note only while no other thread can
 * read it here: between two steps, and before their protection changes.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXIT_OF_A_FAULT 3
#define VISIBLE         __attribute__((visibility("default")))

/** The pages of one tensor in one mapping. */
struct region {
    uint64_t address;
    uint64_t size_bytes;
    int64_t protection;
    const char *label;
};

static const struct region *regions;
static size_t count;
static const char *note;
static int output;
static struct sigaction before;

static void put(const char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        ssize_t done = write(output, text, left);
        if (done <= 0) {
            return;
        }
        text += done;
        left -= (size_t)done;
    }
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    const uint64_t address = (uintptr_t)info->si_addr;

    (void)context;
    for (size_t i = 0; i < count && info->si_code > 0; ++i) {
        if (address - regions[i].address < regions[i].size_bytes) {
            put(note);
            put("\n");
            put((regions[i].protection & PROT_READ) != 0 ? "wrote" : "accessed");
            put("\n");
            put(regions[i].label);
            put("\n");
            _exit(EXIT_OF_A_FAULT);
        }
    }
    (void)sigaction(number, &before, NULL); /* the instruction causes the signal again */
}

/** Watch the regions of a table from now on; return 0, or -1 on a refusal of the system. */
VISIBLE int ferrule_page_watch(const struct region *table, size_t length, const char *text, int fd)
{
    struct sigaction own;

    regions = table;
    count = length;
    note = text;
    output = fd;
    memset(&own, 0, sizeof(own));
    own.sa_sigaction = on_fault;
    own.sa_flags = SA_SIGINFO | SA_ONSTACK;
    (void)sigemptyset(&own.sa_mask); /* cannot fail */
    return sigaction(SIGSEGV, &own, &before);
}

/** Set the protection of a region; return 0, or -1 on a refusal of the system. */
VISIBLE int ferrule_page_protect(struct region *region, int protection)
{
    region->protection = protection;
    return mprotect((void *)(uintptr_t)region->address, (size_t)region->size_bytes, protection);
}
