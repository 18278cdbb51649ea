#include "torch/share.h"

#include "serve/direct.h"

#include <string.h>

/* Bytes in front of the driver's handle: the version and the kind of memory. */
enum { HEAD_MOST = 16 };

/* Returns the length of a string. In the newer form it is a member; in the older form it is in
 * front of the text. */
static size_t length_of(const struct spw_torch_shareable *handle)
{
    size_t words[3];

    if (handle->length >= sizeof(CUipcMemHandle) &&
        handle->length <= sizeof(CUipcMemHandle) + HEAD_MOST) {
        return handle->length;
    }
    memcpy(words, handle->text - sizeof(words), sizeof(words));
    return words[0];
}

bool spw_torch_share(const struct spw_torch_library *library, const struct spw_torch_tensor *tensor,
                     struct spw_torch_shareable *ret_handle)
{
    const int *slots = library->row->slots;
    spw_torch_raw_alloc_function *alloc =
        (spw_torch_raw_alloc_function *)library->table[slots[SPW_TORCH_RAW_ALLOC]];
    CUipcMemHandle own;
    void *model;
    size_t length;

    if (!spw_serve_direct_share(tensor->device, tensor->address, &own)) {
        return false;
    }
    model = alloc(library->native, 1);
    SPW_TORCH_CALL(spw_torch_share_function, library->table[slots[SPW_TORCH_SHARE_IPC_HANDLE]],
                   ret_handle, library->native, model);
    library->deleter(model);
    length = length_of(ret_handle);
    if (length < sizeof(own) || length > sizeof(own) + HEAD_MOST) {
        return false;
    }
    memcpy(ret_handle->text + length - sizeof(own), &own, sizeof(own));
    ret_handle->offset = 0;
    return true;
}
