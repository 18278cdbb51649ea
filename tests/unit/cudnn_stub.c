/* Stands in for NVIDIA's cuDNN: it has the functions of the backend interface that the launcher
 * calls. Heuristics name three engines, whose workspaces depend on the graph and on the device. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cudnn_stub.h"

#ifndef VERSION
#    define VERSION 90800
#endif

struct descriptor {
    int kind;
    int64_t sum; /* of the integers that were set, here and in descriptors inside */
    bool finalized;
    int64_t index; /* of an engine */
};

static int live;

int stub_live(void)
{
    return live;
}

size_t cudnnGetVersion(void)
{
    return VERSION;
}

int cudnnBackendCreateDescriptor(int kind, struct descriptor **ret_descriptor)
{
    if (kind < 0 || kind > 50) {
        return 1;
    }
    *ret_descriptor = calloc(1, sizeof(**ret_descriptor));
    (*ret_descriptor)->kind = kind;
    live++;
    return 0;
}

int cudnnBackendDestroyDescriptor(struct descriptor *descriptor)
{
    free(descriptor);
    live--;
    return 0;
}

/* The bytes of a device count, too. */
int cudnnBackendSetAttribute(struct descriptor *self, int name, int type, int64_t count,
                             const void *elements)
{
    if (self->finalized || name == STUB_REFUSED) {
        return 1;
    }
    for (int64_t i = 0; i < count; i++) {
        if (type == STUB_DESCRIPTOR) {
            const struct descriptor *child = ((struct descriptor *const *)elements)[i];

            if (!child->finalized) {
                return 2;
            }
            self->sum += child->sum;
        } else if (type == STUB_INT64) {
            self->sum += ((const int64_t *)elements)[i];
        } else if (type == STUB_CHAR) {
            self->sum += ((const unsigned char *)elements)[i];
        }
    }
    return 0;
}

int cudnnBackendFinalize(struct descriptor *self)
{
    self->finalized = true;
    return 0;
}

static int get_notes(const struct descriptor *self, int name, int64_t *ret_count, int *ret_notes)
{
    ret_notes[0] = name == STUB_NUMERICAL ? 4 : 0;
    ret_notes[1] = 9;
    *ret_count = self->index == 12 ? 2 : 1;
    return 0;
}

int cudnnBackendGetAttribute(const struct descriptor *self, int name, int type, int64_t count,
                             int64_t *ret_count, void *ret_elements)
{
    if (name == STUB_RESULTS) {
        *ret_count = 3;
        for (int64_t i = 0; i < count && i < 3; i++) {
            struct descriptor *config = ((struct descriptor **)ret_elements)[i];

            *config = *self;
            config->index = 10 + i;
        }
        return 0;
    }
    if (name == STUB_NUMERICAL || name == STUB_BEHAVIOR) {
        return get_notes(self, name, ret_count, ret_elements);
    }
    *ret_count = 1;
    if (name == STUB_ENGINE) {
        **(struct descriptor **)ret_elements = *self;
    } else if (name == STUB_INDEX) {
        *(int64_t *)ret_elements = self->index;
    } else {
        *(int64_t *)ret_elements = self->sum * (self->index - 9);
    }
    return 0;
}
