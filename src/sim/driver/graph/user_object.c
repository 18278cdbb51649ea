#include "sim/driver/graph/user_object.h"

#include <stdlib.h>

#include "common/grow.h"
#include "sim/driver/core/handle_table.h"
#include "sim/driver/exec/callback.h"

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

CUresult sim_graph_adopt_object(struct sim_graph *graph, struct sim_user_object *object,
                                unsigned int count)
{
    for (size_t i = 0; i < graph->object_count; i++) {
        if (graph->objects[i].object == object) {
            graph->objects[i].count += count;
            return CUDA_SUCCESS;
        }
    }
    if (!SPW_RESIZE(&graph->objects, graph->object_count + 1)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    graph->objects[graph->object_count++] = (struct sim_object_ref){object, count};
    return CUDA_SUCCESS;
}

CUresult sim_graph_own_object(struct sim_graph *graph, struct sim_user_object *object,
                              unsigned int count)
{
    CUresult result = sim_graph_adopt_object(graph, object, count);

    if (result == CUDA_SUCCESS) {
        object->refs += count;
    }
    return result;
}
