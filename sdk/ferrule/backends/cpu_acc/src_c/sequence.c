/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/cpu_acc/sequence.h"

#include <string.h>

typedef void two(void *a, void *b);
typedef void three(void *a, void *b, void *c);
typedef void four(void *a, void *b, void *c, void *d);
typedef void five(void *a, void *b, void *c, void *d, void *e);
typedef void six(void *a, void *b, void *c, void *d, void *e, void *f);
typedef void seven(void *a, void *b, void *c, void *d, void *e, void *f, void *g);
typedef void eight(void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h);
typedef void nine(void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h, void *i);
typedef void ten(void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h, void *i,
                 void *j);

/* C leaves calls through a pointer to another function type undefined, even if the types differ
 * only in what pointers point to. On the hosts' platforms (x86-64, AArch64), all pointers to data
 * are passed alike, and the types do not differ otherwise. */
void ferrule_host_run(const struct ferrule_host_call *calls, int32_t count)
{
    for (const struct ferrule_host_call *end = calls + count; calls != end; ++calls) {
        void *const *with = calls->arguments;

        switch (calls->count) {
        case 2:
            ((two *)calls->function)(with[0], with[1]);
            break;
        case 3:
            ((three *)calls->function)(with[0], with[1], with[2]);
            break;
        case 4:
            ((four *)calls->function)(with[0], with[1], with[2], with[3]);
            break;
        case 5:
            ((five *)calls->function)(with[0], with[1], with[2], with[3], with[4]);
            break;
        case 6:
            ((six *)calls->function)(with[0], with[1], with[2], with[3], with[4], with[5]);
            break;
        case 7:
            ((seven *)calls->function)(with[0], with[1], with[2], with[3], with[4], with[5],
                                       with[6]);
            break;
        case 8:
            ((eight *)calls->function)(with[0], with[1], with[2], with[3], with[4], with[5],
                                       with[6], with[7]);
            break;
        case 9:
            ((nine *)calls->function)(with[0], with[1], with[2], with[3], with[4], with[5], with[6],
                                      with[7], with[8]);
            break;
        default:
            ((ten *)calls->function)(with[0], with[1], with[2], with[3], with[4], with[5], with[6],
                                     with[7], with[8], with[9]);
            break;
        }
    }
}

void ferrule_host_copy(const struct ferrule_host_copy_params *params, const void *input,
                       void *output)
{
    (void)memcpy(output, input, (size_t)params->bytes);
}
