#include "sim/libs/cudnn/descriptor.h"

#include <stdlib.h>
#include <string.h>

size_t sim_cudnn_descriptor_element_bytes(cudnnBackendAttributeType_t type)
{
    switch ((int)type) {
    case CUDNN_TYPE_BOOLEAN:
        return sizeof(bool);
    case CUDNN_TYPE_CHAR:
        return sizeof(char);
    case CUDNN_TYPE_INT64:
        return sizeof(int64_t);
    case CUDNN_TYPE_DOUBLE:
        return sizeof(double);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return sizeof(void *);
    case CUDNN_TYPE_FRACTION:
        return sizeof(cudnnFraction_t);
    default:
        /* Enumerations, int32_t and float. */
        return sizeof(int32_t);
    }
}

struct sim_cudnn_descriptor *sim_cudnn_descriptor_create(cudnnBackendDescriptorType_t kind)
{
    struct sim_cudnn_descriptor *self = calloc(1, sizeof(*self));

    if (self != NULL) {
        self->refs = 1;
        self->kind = kind;
    }
    return self;
}

struct sim_cudnn_descriptor *sim_cudnn_descriptor_ref(struct sim_cudnn_descriptor *descriptor)
{
    __atomic_add_fetch(&descriptor->refs, 1, __ATOMIC_RELAXED);
    return descriptor;
}

static void free_attribute(struct sim_cudnn_attribute *attribute)
{
    for (int64_t i = 0; i < attribute->count; i++) {
        struct sim_cudnn_descriptor *child = sim_cudnn_descriptor_child(attribute, i);

        if (child != NULL) {
            sim_cudnn_descriptor_unref(child);
        }
    }
    free(attribute);
}

static void clear(struct sim_cudnn_descriptor *descriptor)
{
    while (descriptor->attributes != NULL) {
        struct sim_cudnn_attribute *attribute = descriptor->attributes;

        descriptor->attributes = attribute->next;
        free_attribute(attribute);
    }
}

void sim_cudnn_descriptor_unref(struct sim_cudnn_descriptor *descriptor)
{
    if (__atomic_sub_fetch(&descriptor->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        clear(descriptor);
        free(descriptor);
    }
}

const struct sim_cudnn_attribute *
sim_cudnn_descriptor_find(const struct sim_cudnn_descriptor *descriptor,
                          cudnnBackendAttributeName_t name)
{
    const struct sim_cudnn_attribute *attribute = descriptor->attributes;

    while (attribute != NULL && attribute->name != name) {
        attribute = attribute->next;
    }
    return attribute;
}

struct sim_cudnn_descriptor *sim_cudnn_descriptor_child(const struct sim_cudnn_attribute *attribute,
                                                        int64_t n)
{
    struct sim_cudnn_descriptor *child;

    if (attribute == NULL || attribute->type != CUDNN_TYPE_BACKEND_DESCRIPTOR || n < 0 ||
        n >= attribute->count) {
        return NULL;
    }
    memcpy(&child, attribute->data + (size_t)n * sizeof(child), sizeof(child));
    return child;
}

int64_t sim_cudnn_descriptor_integer(const struct sim_cudnn_descriptor *descriptor,
                                     cudnnBackendAttributeName_t name, int64_t otherwise)
{
    const struct sim_cudnn_attribute *attribute = sim_cudnn_descriptor_find(descriptor, name);
    int64_t wide = 0;
    int32_t narrow = 0;

    if (attribute == NULL || attribute->count < 1) {
        return otherwise;
    }
    switch (sim_cudnn_descriptor_element_bytes(attribute->type)) {
    case sizeof(wide):
        memcpy(&wide, attribute->data, sizeof(wide));
        return wide;
    case sizeof(narrow):
        memcpy(&narrow, attribute->data, sizeof(narrow));
        return narrow;
    default:
        return attribute->data[0];
    }
}

static void unlink_attribute(struct sim_cudnn_descriptor *descriptor,
                             cudnnBackendAttributeName_t name)
{
    struct sim_cudnn_attribute **link = &descriptor->attributes;

    while (*link != NULL && (*link)->name != name) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        struct sim_cudnn_attribute *found = *link;

        *link = found->next;
        free_attribute(found);
    }
}

cudnnStatus_t sim_cudnn_descriptor_set(struct sim_cudnn_descriptor *descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *elements)
{
    size_t bytes = (size_t)count * sim_cudnn_descriptor_element_bytes(type);
    struct sim_cudnn_attribute *self;

    if (count < 0 || (count > 0 && elements == NULL)) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    self = malloc(sizeof(*self) + bytes);
    if (self == NULL) {
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    }
    self->name = name;
    self->type = type;
    self->count = count;
    if (bytes > 0) {
        memcpy(self->data, elements, bytes);
    }
    for (int64_t i = 0; i < count; i++) {
        struct sim_cudnn_descriptor *child = sim_cudnn_descriptor_child(self, i);

        if (child != NULL) {
            sim_cudnn_descriptor_ref(child);
        }
    }
    unlink_attribute(descriptor, name);
    self->next = descriptor->attributes;
    descriptor->attributes = self;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t sim_cudnn_descriptor_assign(struct sim_cudnn_descriptor *to,
                                          const struct sim_cudnn_descriptor *from)
{
    clear(to);
    for (const struct sim_cudnn_attribute *a = from->attributes; a != NULL; a = a->next) {
        cudnnStatus_t status = sim_cudnn_descriptor_set(to, a->name, a->type, a->count, a->data);

        if (status != CUDNN_STATUS_SUCCESS) {
            return status;
        }
    }
    to->finalized = true;
    return CUDNN_STATUS_SUCCESS;
}
