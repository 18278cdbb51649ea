/* cuUserObject*, and the user objects that graphs own. */
#include <limits.h>
#include <stdlib.h>

#include "sim/driver/api/entry.h"
#include "sim/driver/core/handle_table.h"
#include "sim/driver/exec/callback_thread.h"
#include "sim/driver/graph/graph.h"
#include "sim/driver/graph/user_object.h"

SIM_API(cuUserObjectCreate, SIM_INITIALIZED,
        (CUuserObject * object_out, void *ptr, CUhostFn destroy, unsigned int initialRefcount,
         unsigned int flags))
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

SIM_API(cuUserObjectRetain, SIM_INITIALIZED, (CUuserObject object, unsigned int count))
{
    struct sim_user_object *found = sim_handle_object(SIM_HANDLE_USER_OBJECT, object);

    if (found == NULL || count == 0 || count > INT_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    found->refs += count;
    return CUDA_SUCCESS;
}

SIM_API(cuUserObjectRelease, SIM_INITIALIZED, (CUuserObject object, unsigned int count))
{
    struct sim_user_object *found = sim_handle_object(SIM_HANDLE_USER_OBJECT, object);

    if (found == NULL || count == 0 || count > found->refs) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_user_object_release(found, count);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphRetainUserObject, SIM_INITIALIZED,
        (CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags))
{
    struct sim_graph *owner = sim_graph_of(graph);
    struct sim_user_object *found = sim_handle_object(SIM_HANDLE_USER_OBJECT, object);

    if (owner == NULL || found == NULL || count == 0 || count > INT_MAX ||
        (flags & ~(unsigned int)CU_GRAPH_USER_OBJECT_MOVE) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return flags == CU_GRAPH_USER_OBJECT_MOVE ? sim_graph_adopt_object(owner, found, count)
                                              : sim_graph_own_object(owner, found, count);
}

SIM_API(cuGraphReleaseUserObject, SIM_INITIALIZED,
        (CUgraph graph, CUuserObject object, unsigned int count))
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
