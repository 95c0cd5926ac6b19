/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "ferrule/kernels/math.h"

union bits {
    float value;
    uint32_t word;
};

/* 32 zeros, then the binary digits of 2 / pi */
static const uint32_t two_over_pi[8] = {0u,          0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u,
                                        0xF534DDC0u, 0xDB629599u, 0x3C439041u, 0xFE5163ABu};

/* An angle: a number of quarter turns, and a rest within +-pi / 4 as the sum of two floats. */
struct angle {
    float high;
    float low;
    uint32_t quarters;
};

static uint32_t digits_from(int32_t word, uint32_t shift)
{
    uint64_t pair = ((uint64_t)two_over_pi[word] << 32) | two_over_pi[word + 1];

    return (uint32_t)((pair << shift) >> 32);
}

/* Multiplies by 2 / pi with 94 fractional bits, modulo 4; x is finite and at least pi / 4. */
static struct angle reduced(float x)
{
    union bits bits = {.value = x};
    int32_t offset = (int32_t)(bits.word >> 23) - 120; /* of the first digit that counts */
    int32_t word = offset >> 5;
    uint32_t shift = (uint32_t)offset & 31u;
    uint64_t mantissa = (bits.word & UINT32_C(0x007FFFFF)) | UINT32_C(0x00800000);
    uint64_t low = mantissa * digits_from(word + 2, shift);
    uint64_t middle = mantissa * digits_from(word + 1, shift) + (low >> 32);
    uint32_t top = (uint32_t)(mantissa * digits_from(word, shift)) + (uint32_t)(middle >> 32);
    uint32_t quarters = top >> 30;
    uint64_t fraction =
        ((uint64_t)top << 34) | ((middle & UINT32_MAX) << 2) | ((low & UINT32_MAX) >> 30);
    uint64_t further = (low & UINT32_MAX) << 34;
    float sign = 1.0f;

    if ((fraction >> 63) != 0u) { /* the next quarter turn is nearer */
        ++quarters;
        fraction = ~fraction;
        further = ~further;
        sign = -1.0f;
    }

    int32_t zeros = 0;
    while ((fraction >> 63) == 0u && zeros < 64) {
        fraction = (fraction << 1) | (further >> 63);
        further <<= 1;
        ++zeros;
    }

    /* times pi / 2, which is the factor here with 31 fractional bits */
    uint32_t rest = (uint32_t)(((fraction >> 32) * UINT32_C(0xC90FDAA2)) >> 32);
    bits.word = (uint32_t)(127 - 31 - zeros) << 23;
    return (struct angle){
        .high = sign * bits.value * (float)(rest & UINT32_C(0xFFFFFF00)),
        .low = sign * bits.value * (float)(rest & UINT32_C(0x000000FF)),
        .quarters = quarters,
    };
}

static float sine(const struct angle *angle)
{
    float r = angle->high;
    float square = r * r;
    float p = 2.7249391e-06f; /* fitted to 2^-35 */
    p = p * square - 0.00019840083f;
    p = p * square + 0.008333332f;
    p = p * square - 0.16666667f;

    return r + (p * square * r + angle->low * (1.0f - 0.5f * square));
}

static float cosine(const struct angle *angle)
{
    float r = angle->high;
    float square = r * r;
    float half = 0.5f * square;
    float p = 2.4547537e-05f; /* fitted to 2^-30 */
    p = p * square - 0.0013888301f;
    p = p * square + 0.041666664f;

    float difference = 1.0f - half;
    float lost = (1.0f - difference) - half;
    return difference + (lost + (p * square * square - r * angle->low));
}

static struct angle angle_of(float magnitude)
{
    if (magnitude < 0.78539813f) {
        return (struct angle){.high = magnitude};
    }
    return reduced(magnitude);
}

static float not_a_number(void)
{
    union bits bits = {.word = UINT32_C(0x7FC00000)};

    return bits.value;
}

float ferrule_sinf(float x)
{
    float magnitude = x < 0.0f ? -x : x;

    if (magnitude <
        2.44140625e-4f) { /* x^3 / 6 is below a quarter of an ULP; zeros keep their sign */
        return x;
    }
    if (!(magnitude <= 3.4028235e38f)) {
        return not_a_number();
    }

    struct angle angle = angle_of(magnitude);
    float result = (angle.quarters & 1u) != 0u ? cosine(&angle) : sine(&angle);

    return ((angle.quarters & 2u) != 0u) != (x < 0.0f) ? -result : result;
}

float ferrule_cosf(float x)
{
    float magnitude = x < 0.0f ? -x : x;

    if (!(magnitude <= 3.4028235e38f)) {
        return not_a_number();
    }

    struct angle angle = angle_of(magnitude);
    float result = (angle.quarters & 1u) != 0u ? sine(&angle) : cosine(&angle);

    return ((angle.quarters + 1u) & 2u) != 0u ? -result : result;
}
