/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/cpu_acc/sequence.h"

#include <string.h>

typedef void three(void *a, void *b, void *c);
typedef void four(void *a, void *b, void *c, void *d);
typedef void five(void *a, void *b, void *c, void *d, void *e);
typedef void six(void *a, void *b, void *c, void *d, void *e, void *f);

/* C leaves calls through a pointer to another function type undefined, even if the types differ
 * only in what pointers point to. On the hosts' platforms (x86-64, AArch64), all pointers to data
 * are passed alike, and the types do not differ otherwise. */
void ferrule_host_run(const struct ferrule_host_call *calls, int32_t count)
{
    for (const struct ferrule_host_call *end = calls + count; calls != end; ++calls) {
        void *const *with = calls->arguments;

        switch (calls->count) {
        case 3:
            ((three *)calls->function)(with[0], with[1], with[2]);
            break;
        case 4:
            ((four *)calls->function)(with[0], with[1], with[2], with[3]);
            break;
        case 5:
            ((five *)calls->function)(with[0], with[1], with[2], with[3], with[4]);
            break;
        default:
            ((six *)calls->function)(with[0], with[1], with[2], with[3], with[4], with[5]);
            break;
        }
    }
}

void ferrule_host_copy(const struct ferrule_host_copy_params *params, const void *input,
                       void *output)
{
    (void)memcpy(output, input, (size_t)params->bytes);
}
