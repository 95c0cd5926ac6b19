/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The plain body of a table look-up; each element is read before that of the same index is
 * written. A source file defines FERRULE_KERNEL (its name), FERRULE_PARAMS (struct tag) and
 * FERRULE_OUTPUT (element type), then includes this file.
 */
void FERRULE_KERNEL(const struct FERRULE_PARAMS *params, const int8_t *input,
                    FERRULE_OUTPUT *output)
{
    const FERRULE_OUTPUT *table = params->table;
    int32_t left = params->elements;

    for (; left > 7; left -= 8) {
        output[0] = table[(uint8_t)input[0]];
        output[1] = table[(uint8_t)input[1]];
        output[2] = table[(uint8_t)input[2]];
        output[3] = table[(uint8_t)input[3]];
        output[4] = table[(uint8_t)input[4]];
        output[5] = table[(uint8_t)input[5]];
        output[6] = table[(uint8_t)input[6]];
        output[7] = table[(uint8_t)input[7]];
        input += 8;
        output += 8;
    }
    for (; left > 0; --left) {
        *output++ = table[(uint8_t)*input++];
    }
}
