/* Memory is not given out again before the work that uses it is done. In each case a stream is busy
 * for a while and then copies a tensor, which is freed meanwhile; another tensor is allocated and
 * written. The copy must be of the first one. */
#include "allocator.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 8 * MIB, WORDS = BYTES / 4, FIRST = 11, SECOND = 22 };

static CUfunction spin, copy;
static CUdeviceptr out;
static _Atomic uint32_t *flag;

static void enter(void)
{
    CUmodule module;

    MUST(cudaFree(NULL));
    MUST(cuModuleLoadData(&module, "any image will do"));
    MUST(cuModuleGetFunction(&spin, module, "spw_spin"));
    MUST(cuModuleGetFunction(&copy, module, "spw_copy"));
    MUST(cuMemAlloc(&out, BYTES));
    MUST(cuMemHostAlloc((void **)&flag, sizeof(*flag), 0));
    atomic_store(flag, 0);
}

static cudaStream_t new_stream(void)
{
    cudaStream_t stream;

    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static void keep_busy(cudaStream_t stream, void *memory)
{
    CUdeviceptr from = (CUdeviceptr)(uintptr_t)memory, there = (CUdeviceptr)(uintptr_t)flag;
    size_t words = WORDS;
    void *wait[] = {&there}, *move[] = {&out, &from, &words};

    MUST(cuLaunchKernel(spin, 1, 1, 1, 32, 1, 1, 0, stream, wait, NULL));
    MUST(cuLaunchKernel(copy, 1, 1, 1, 32, 1, 1, 0, stream, move, NULL));
}

/* Ends the wait a little later: a free may wait for the work. */
static void *release_later(void *unused)
{
    usleep(300 * 1000);
    atomic_store(flag, 1);
    return unused;
}

static pthread_t releaser;

static void release(void)
{
    MUST(pthread_create(&releaser, NULL, release_later, NULL));
}

/* Writes to what is allocated now, and looks at the copy. */
static void end(void *second, cudaStream_t stream)
{
    HOLD(second != NULL);
    fill(second, BYTES, SECOND, stream);
    HOLD(count_wrong(second, BYTES, SECOND, stream) == 0);
    MUST(pthread_join(releaser, NULL));
    MUST(cudaDeviceSynchronize());
    printf("wrong: %zu\n", count_wrong((void *)(uintptr_t)out, BYTES, FIRST, NULL));
}

/* A tensor with content, on a stream that is the current one. */
static struct spw_torch_data_ptr first_tensor(cudaStream_t stream)
{
    struct spw_torch_data_ptr tensor;

    fake_set_stream(stream);
    tensor = tensor_new(BYTES);
    fill(tensor.data, BYTES, FIRST, stream);
    MUST(cudaStreamSynchronize(stream));
    return tensor;
}

static void end_with_tensor(struct spw_torch_data_ptr *first, cudaStream_t stream)
{
    struct spw_torch_data_ptr second;

    release();
    tensor_end(first);
    second = tensor_new(BYTES);
    end(second.data, stream);
    tensor_end(&second);
}

static void recorded(void)
{
    cudaStream_t own = new_stream(), other = new_stream();
    struct spw_torch_data_ptr first = first_tensor(own);

    keep_busy(other, first.data);
    tensor_use(&first, other);
    tensor_use(&first, other);
    end_with_tensor(&first, own);
}

/* The native part's memory, by the same call. */
static void recorded_natively(void)
{
    cudaStream_t own = new_stream(), other = new_stream();
    struct spw_torch_data_ptr first;

    pool_begin(1);
    first = first_tensor(own);
    pool_end(1);
    keep_busy(other, first.data);
    tensor_use(&first, other);
    pool_begin(1);
    end_with_tensor(&first, own);
    pool_end(1);
}

/* The other stream is gone at the free of the tensor; its work is not. */
static void destroyed_other(void)
{
    cudaStream_t own = new_stream(), other = new_stream();
    struct spw_torch_data_ptr first = first_tensor(own);

    keep_busy(other, first.data);
    tensor_use(&first, other);
    MUST(cudaStreamDestroy(other));
    end_with_tensor(&first, own);
}

/* As before, and a new stream may have the handle of the other one. */
static void replaced_other(void)
{
    cudaStream_t own = new_stream(), other = new_stream();
    struct spw_torch_data_ptr first = first_tensor(own);

    keep_busy(other, first.data);
    tensor_use(&first, other);
    MUST(cudaStreamDestroy(other));
    (void)new_stream();
    end_with_tensor(&first, own);
}

/* The stream of the tensor itself is gone. */
static void destroyed_own(void)
{
    cudaStream_t own = new_stream(), other = new_stream();
    struct spw_torch_data_ptr first = first_tensor(own);

    keep_busy(own, first.data);
    MUST(cudaStreamDestroy(own));
    fake_set_stream(other);
    end_with_tensor(&first, other);
}

/* As before, and a new stream may have the handle of its stream. */
static void replaced_own(void)
{
    cudaStream_t own = new_stream(), other;
    struct spw_torch_data_ptr first = first_tensor(own);

    keep_busy(own, first.data);
    MUST(cudaStreamDestroy(own));
    other = new_stream();
    fake_set_stream(other);
    end_with_tensor(&first, other);
}

/* The order of a free on no stream in particular is that of the stream of the allocation. */
static void raw(void)
{
    cudaStream_t own = new_stream(), other = new_stream();
    void *first = raw_new_on(BYTES, own);

    fill(first, BYTES, FIRST, own);
    keep_busy(own, first);
    release();
    raw_end(first);
    end(raw_new_on(BYTES, other), other);
}

static void *use_own_stream(void *tensor)
{
    MUST(cudaSetDevice(0));
    keep_busy(cudaStreamPerThread, ((struct spw_torch_data_ptr *)tensor)->data);
    tensor_use(tensor, cudaStreamPerThread);
    return NULL;
}

/* Another thread uses the tensor on its own stream. */
static void threads_stream(void)
{
    cudaStream_t own = new_stream();
    struct spw_torch_data_ptr first = first_tensor(own);
    pthread_t thread;

    MUST(pthread_create(&thread, NULL, use_own_stream, &first));
    MUST(pthread_join(thread, NULL));
    end_with_tensor(&first, own);
}

/* The allocator waits for memory that other streams use before it refuses a request. */
static void waited(void)
{
    cudaStream_t own = new_stream(), other = new_stream();
    struct spw_torch_data_ptr tensor;

    fake_set_stream(own);
    for (int i = 0; i < 4; i++) {
        tensor = tensor_new((size_t)40 * MIB);
        HOLD(tensor.data != NULL);
        if (i > 0) {
            MUST(pthread_join(releaser, NULL));
        }
        MUST(cudaDeviceSynchronize());
        atomic_store(flag, 0);
        keep_busy(other, tensor.data);
        tensor_use(&tensor, other);
        release();
        tensor_end(&tensor);
    }
    empty_cache();
    MUST(pthread_join(releaser, NULL));
    printf("allocated: %d\n", (int)allocated_bytes());
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"recorded", recorded},
                 {"recorded natively", recorded_natively},
                 {"destroyed other", destroyed_other},
                 {"replaced other", replaced_other},
                 {"destroyed own", destroyed_own},
                 {"replaced own", replaced_own},
                 {"raw", raw},
                 {"thread's stream", threads_stream},
                 {"waited", waited}};

    enter();
    for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            return 0;
        }
    }
    fprintf(stderr, "usage: order CASE\n");
    return 2;
}
