/* A short program in which tensors of both parts are made, spilled, used on other streams and
 * freed, and which goes on after each failure. What fails of its own calls ends it with status 1; a
 * tensor that it was given must hold what was written. */
#include "allocator.h"

#include <stdbool.h>

enum { COUNT = 6, BYTES = 16 * MIB };

static size_t wrong;

/* False if the tensor was refused. */
static bool make(struct spw_torch_data_ptr *ret_tensor, bool privately, uint32_t value)
{
    if (privately) {
        pool_begin(1);
    }
    *ret_tensor = tensor_new(BYTES);
    if (privately) {
        pool_end(1);
    }
    if (ret_tensor->data != NULL) {
        fill(ret_tensor->data, BYTES, value, NULL);
    }
    return ret_tensor->data != NULL;
}

int main(void)
{
    struct spw_torch_data_ptr tensors[COUNT] = {0};
    cudaStream_t other;
    int had = 0;

    MUST(cudaFree(NULL));
    MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    for (int i = 0; i < COUNT; i++) {
        had += make(&tensors[i], i == 2, 50 + (uint32_t)i);
    }
    for (int i = 0; i < COUNT; i++) {
        if (tensors[i].data == NULL) {
            continue;
        }
        wrong += count_wrong(tensors[i].data, BYTES, 50 + (uint32_t)i, NULL);
        if (i % 2 == 1) {
            MUST(cudaMemsetAsync(tensors[i].data, 1, 4096, other));
            tensor_use(&tensors[i], other);
        }
        tensor_end(&tensors[i]);
    }
    MUST(cudaDeviceSynchronize());
    empty_cache();
    printf("had %d, wrong %zu, lost %d\n", had, wrong,
           fake_native_count() + (int)(allocated_bytes() / BYTES));
    return 0;
}
