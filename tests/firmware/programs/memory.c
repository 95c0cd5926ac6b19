/* SPDX-License-Identifier: Apache-2.0 */
/* Tests memcpy, memmove, memset and memcmp over all alignments; on the host they are renamed to
 * test_.... */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void *test_memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *test_memmove(void *to, const void *from, size_t bytes);
void *test_memset(void *to, int value, size_t bytes);
int test_memcmp(const void *one, const void *other, size_t bytes);

#define LONGEST 40u
#define ROOM    64u

static int failures;

static void check(int holds, const char *what, size_t a, size_t b, size_t bytes)
{
    if (!holds) {
        failures++;
        (void)printf("%s: %zu %zu %zu\n", what, a, b, bytes);
    }
}

static void fill(uint8_t *block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        block[i] = (uint8_t)(i * 7 + 1);
    }
}

static void try_copies(size_t to, size_t from, size_t bytes)
{
    uint8_t *source =
        malloc(from + bytes + 1); /* exact size: a sanitizer detects any read beyond it */
    uint8_t *target = malloc(to + bytes + 1);
    int right = 1;

    fill(source, from + bytes);
    target[to + bytes] = 0xEE;
    check(test_memcpy(target + to, source + from, bytes) == target + to, "memcpy returns", to, from,
          bytes);
    for (size_t i = 0; i < bytes; i++) {
        right &= target[to + i] == source[from + i];
    }
    check(right && target[to + bytes] == 0xEE, "memcpy copies", to, from, bytes);
    free(source);
    free(target);
}

static void try_moves(size_t to, size_t from, size_t bytes)
{
    uint8_t block[ROOM * 2];
    uint8_t wanted[ROOM * 2];

    fill(block, sizeof block);
    fill(wanted, sizeof wanted);
    for (size_t i = 0; i < bytes; i++) {
        wanted[to + i] = (uint8_t)((from + i) * 7 + 1);
    }
    check(test_memmove(block + to, block + from, bytes) == block + to, "memmove returns", to, from,
          bytes);
    for (size_t i = 0; i < sizeof block; i++) {
        check(block[i] == wanted[i], "memmove moves", to, from, bytes);
    }
}

static void try_set(size_t to, size_t bytes)
{
    uint8_t block[ROOM * 2];

    fill(block, sizeof block);
    check(test_memset(block + to, 0x1A5, bytes) == block + to, "memset returns", to, 0, bytes);
    for (size_t i = 0; i < sizeof block; i++) {
        uint8_t wanted = i >= to && i < to + bytes ? 0xA5 : (uint8_t)(i * 7 + 1);
        check(block[i] == wanted, "memset sets", to, i, bytes);
    }
}

static void try_compare(size_t a, size_t b, size_t bytes)
{
    uint8_t *one = malloc(a + bytes + 1);
    uint8_t *other = malloc(b + bytes + 1);

    fill(one + a, bytes);
    fill(other + b, bytes);
    check(test_memcmp(one + a, other + b, bytes) == 0, "memcmp of equals", a, b, bytes);
    for (size_t i = 0; i < bytes; i++) {
        one[a + i] = 0x80;
        other[b + i] = 0x7F;
        check(test_memcmp(one + a, other + b, bytes) > 0, "memcmp of a greater one", a, b, i);
        check(test_memcmp(other + b, one + a, bytes) < 0, "memcmp of a smaller one", a, b, i);
        one[a + i] = other[b + i] = (uint8_t)(i * 7 + 1);
    }
    free(one);
    free(other);
}

int main(void)
{
    for (size_t bytes = 0; bytes <= LONGEST; bytes++) {
        for (size_t a = 0; a < 5; a++) {
            try_set(a, bytes);
            for (size_t b = 0; b < 5; b++) {
                try_copies(a, b, bytes);
                try_compare(a, b, bytes);
            }
            for (size_t b = 0; b < ROOM; b += 1) {
                try_moves(a + 20, b, bytes);
            }
        }
    }
    (void)printf("%d failures\n", failures);
    return failures != 0;
}
