/* Descriptors of cuDNN's backend interface: each is a list of attributes, whatever its kind.
 *
 * A descriptor is shared by reference with those it was made an attribute of, so it may be
 * destroyed by its owner while they are in use.
 *
 * Locking: references are counted atomically; a descriptor that is being changed belongs to one
 * thread, as the library documents. */
#pragma once

#include "sim/libs/cudnn/handle.h"

struct sim_cudnn_descriptor;

struct sim_cudnn_attribute {
    struct sim_cudnn_attribute *next;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t count;
    unsigned char data[]; /* count elements */
};

struct sim_cudnn_descriptor {
    unsigned int refs;
    cudnnBackendDescriptorType_t kind;
    bool finalized;
    struct sim_cudnn_attribute *attributes;
};

/* A new one with one reference; NULL when host memory is out. */
struct sim_cudnn_descriptor *sim_cudnn_descriptor_create(cudnnBackendDescriptorType_t kind);
struct sim_cudnn_descriptor *sim_cudnn_descriptor_ref(struct sim_cudnn_descriptor *descriptor);
void sim_cudnn_descriptor_unref(struct sim_cudnn_descriptor *descriptor);

/* The attribute of that name, or NULL. */
const struct sim_cudnn_attribute *
sim_cudnn_descriptor_find(const struct sim_cudnn_descriptor *descriptor,
                          cudnnBackendAttributeName_t name);

/* Sets an attribute to a copy of the elements. CUDNN_STATUS_BAD_PARAM, or out of host memory. */
cudnnStatus_t sim_cudnn_descriptor_set(struct sim_cudnn_descriptor *descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *elements);

/* The n-th descriptor that an attribute holds, or NULL. */
struct sim_cudnn_descriptor *sim_cudnn_descriptor_child(const struct sim_cudnn_attribute *attribute,
                                                        int64_t n);

/* The first element of an integer attribute, or a default. */
int64_t sim_cudnn_descriptor_integer(const struct sim_cudnn_descriptor *descriptor,
                                     cudnnBackendAttributeName_t name, int64_t otherwise);

/* Makes `to` the same as `from`, finalized. */
cudnnStatus_t sim_cudnn_descriptor_assign(struct sim_cudnn_descriptor *to,
                                          const struct sim_cudnn_descriptor *from);

/* Bytes of an element of that type; 0 for an unknown one. */
size_t sim_cudnn_descriptor_element_bytes(cudnnBackendAttributeType_t type);
