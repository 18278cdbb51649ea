/* Descriptors of cuDNN's backend interface: each is a list of attributes, whatever its kind.
 *
 * A descriptor is shared by reference with those it was made an attribute of, so it may be
 * destroyed by its owner while they are in use.
 *
 * Locking: references are counted atomically; a descriptor that is being changed belongs to one
 * thread, as the library documents. */
#pragma once

#include "sim/libs/cudnn/handle.h"

struct sim_descriptor;

struct sim_attribute {
    struct sim_attribute *next;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t count;
    unsigned char data[]; /* count elements */
};

struct sim_descriptor {
    unsigned int refs;
    cudnnBackendDescriptorType_t kind;
    bool finalized;
    struct sim_attribute *attributes;
};

/* A new one with one reference; NULL when host memory is out. */
struct sim_descriptor *sim_descriptor_new(cudnnBackendDescriptorType_t kind);
struct sim_descriptor *sim_descriptor_ref(struct sim_descriptor *descriptor);
void sim_descriptor_unref(struct sim_descriptor *descriptor);

/* The attribute of that name, or NULL. */
const struct sim_attribute *sim_descriptor_find(const struct sim_descriptor *descriptor,
                                                cudnnBackendAttributeName_t name);

/* Sets an attribute to a copy of the elements. CUDNN_STATUS_BAD_PARAM, or out of host memory. */
cudnnStatus_t sim_descriptor_set(struct sim_descriptor *descriptor,
                                 cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                 int64_t count, const void *elements);

/* The n-th descriptor that an attribute holds, or NULL. */
struct sim_descriptor *sim_descriptor_child(const struct sim_attribute *attribute, int64_t n);

/* The first element of an integer attribute, or a default. */
int64_t sim_descriptor_integer(const struct sim_descriptor *descriptor,
                               cudnnBackendAttributeName_t name, int64_t otherwise);

/* Makes `to` the same as `from`, finalized. */
cudnnStatus_t sim_descriptor_assign(struct sim_descriptor *to, const struct sim_descriptor *from);

/* Bytes of an element of that type; 0 for an unknown one. */
size_t sim_descriptor_element_bytes(cudnnBackendAttributeType_t type);
