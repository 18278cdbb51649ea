/* Descriptors of cuDNN's backend interface. Every kind of descriptor is a list of attributes.
 *
 * Descriptors are reference-counted. An attribute that contains a descriptor holds a reference to
 * it. The caller may therefore destroy a descriptor that other descriptors use.
 *
 * Locking: the reference counts are atomic. As the library documents, only one thread may use a
 * descriptor while the descriptor changes. */
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

/* Returns a new descriptor with one reference; NULL without host memory. */
struct sim_cudnn_descriptor *sim_cudnn_descriptor_create(cudnnBackendDescriptorType_t kind);
struct sim_cudnn_descriptor *sim_cudnn_descriptor_ref(struct sim_cudnn_descriptor *descriptor);
void sim_cudnn_descriptor_unref(struct sim_cudnn_descriptor *descriptor);

/* The attribute of that name, or NULL. Valid until the attribute is set again. */
const struct sim_cudnn_attribute *
sim_cudnn_descriptor_find(const struct sim_cudnn_descriptor *descriptor,
                          cudnnBackendAttributeName_t name);

/* Sets an attribute to a copy of the elements. Errors: CUDNN_STATUS_BAD_PARAM for an unknown type
 * or a bad count; the status for missing host memory. */
cudnnStatus_t sim_cudnn_descriptor_set(struct sim_cudnn_descriptor *descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *elements);

/* The n-th descriptor in an attribute, or NULL. Takes no reference. `attribute` may be NULL. */
struct sim_cudnn_descriptor *sim_cudnn_descriptor_child(const struct sim_cudnn_attribute *attribute,
                                                        int64_t n);

/* The first element of an integer attribute; `otherwise` if it is not set. */
int64_t sim_cudnn_descriptor_integer(const struct sim_cudnn_descriptor *descriptor,
                                     cudnnBackendAttributeName_t name, int64_t otherwise);

/* Makes `to` a finalized copy of `from`. */
cudnnStatus_t sim_cudnn_descriptor_assign(struct sim_cudnn_descriptor *to,
                                          const struct sim_cudnn_descriptor *from);

/* Bytes of an element of that type; 0 for an unknown type. */
size_t sim_cudnn_descriptor_element_bytes(cudnnBackendAttributeType_t type);
