#include "sim/driver/graph/user_object.h"

#include <stdlib.h>

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
