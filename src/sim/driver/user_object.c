#include "sim/driver/user_object.h"

#include <limits.h>
#include <stdlib.h>

#include "sim/driver/callback.h"
#include "sim/driver/entry.h"
#include "sim/driver/handle.h"

struct sim_user_object {
    CUuserObject handle;
    unsigned int refs;
    CUhostFn destroy;
    void *data;
};

void sim_user_object_release(struct sim_user_object *object, unsigned int count)
{
    struct sim_call *call;

    object->refs -= count < object->refs ? count : object->refs;
    if (object->refs > 0) {
        return;
    }
    call = sim_callback_post(object->destroy, object->data);
    if (call != NULL) {
        sim_call_unref(call);
    }
    sim_handle_destroy(SIM_HANDLE_USER_OBJECT, object->handle);
    free(object);
}

/* Takes references over from the caller. */
static CUresult own(struct sim_graph *graph, struct sim_user_object *object, unsigned int count)
{
    struct sim_object_ref *objects;

    for (size_t i = 0; i < graph->object_count; i++) {
        if (graph->objects[i].object == object) {
            graph->objects[i].count += count;
            return CUDA_SUCCESS;
        }
    }
    objects = realloc(graph->objects, (graph->object_count + 1) * sizeof(*objects));
    if (objects == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    graph->objects = objects;
    objects[graph->object_count].object = object;
    objects[graph->object_count].count = count;
    graph->object_count++;
    return CUDA_SUCCESS;
}

CUresult sim_graph_own_object(struct sim_graph *graph, struct sim_user_object *object,
                              unsigned int count)
{
    CUresult result = own(graph, object, count);

    if (result == CUDA_SUCCESS) {
        object->refs += count;
    }
    return result;
}

SIM_API(cuUserObjectCreate, SIM_INITIALIZED,
        (CUuserObject * object_out, void *ptr, CUhostFn destroy, unsigned int initialRefcount,
         unsigned int flags),
        (object_out, ptr, destroy, initialRefcount, flags))
{
    struct sim_user_object *object;
    CUresult result;

    if (object_out == NULL || destroy == NULL || initialRefcount == 0 ||
        initialRefcount > INT_MAX || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_callback_start();
    if (result != CUDA_SUCCESS) {
        return result;
    }
    object = calloc(1, sizeof(*object));
    if (object == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    object->handle = sim_handle_create(SIM_HANDLE_USER_OBJECT, object);
    if (object->handle == NULL) {
        free(object);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    object->refs = initialRefcount;
    object->destroy = destroy;
    object->data = ptr;
    *object_out = object->handle;
    return CUDA_SUCCESS;
}

SIM_API(cuUserObjectRetain, SIM_INITIALIZED, (CUuserObject object, unsigned int count),
        (object, count))
{
    struct sim_user_object *found = sim_handle_object(SIM_HANDLE_USER_OBJECT, object);

    if (found == NULL || count == 0 || count > INT_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    found->refs += count;
    return CUDA_SUCCESS;
}

SIM_API(cuUserObjectRelease, SIM_INITIALIZED, (CUuserObject object, unsigned int count),
        (object, count))
{
    struct sim_user_object *found = sim_handle_object(SIM_HANDLE_USER_OBJECT, object);

    if (found == NULL || count == 0 || count > found->refs) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_user_object_release(found, count);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphRetainUserObject, SIM_INITIALIZED,
        (CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags),
        (graph, object, count, flags))
{
    struct sim_graph *owner = sim_graph_of(graph);
    struct sim_user_object *found = sim_handle_object(SIM_HANDLE_USER_OBJECT, object);

    if (owner == NULL || found == NULL || count == 0 || count > INT_MAX ||
        (flags & ~(unsigned int)CU_GRAPH_USER_OBJECT_MOVE) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return flags == CU_GRAPH_USER_OBJECT_MOVE ? own(owner, found, count)
                                              : sim_graph_own_object(owner, found, count);
}

SIM_API(cuGraphReleaseUserObject, SIM_INITIALIZED,
        (CUgraph graph, CUuserObject object, unsigned int count), (graph, object, count))
{
    struct sim_graph *owner = sim_graph_of(graph);
    struct sim_user_object *found = sim_handle_object(SIM_HANDLE_USER_OBJECT, object);

    if (owner == NULL || found == NULL || count == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < owner->object_count; i++) {
        if (owner->objects[i].object != found || owner->objects[i].count < count) {
            continue;
        }
        owner->objects[i].count -= count;
        if (owner->objects[i].count == 0) {
            owner->objects[i] = owner->objects[--owner->object_count];
        }
        sim_user_object_release(found, count);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}
