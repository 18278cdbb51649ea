/* Tensors that outlive what they belong to, and tensors in another process.
 *
 *     endings fork | exit | reset | share [wait] | open HANDLE */
#include "allocator.h"

#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 3 * MIB };

static struct spw_torch_data_ptr tensors[3];

/* One of the pool, one of the native part, and one that another stream uses. */
static void make(void)
{
    cudaStream_t stream;

    MUST(cudaFree(NULL));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    tensors[0] = tensor_new(BYTES);
    pool_begin(1);
    tensors[1] = tensor_new(BYTES);
    pool_end(1);
    tensors[2] = tensor_new(BYTES);
    tensor_use(&tensors[2], stream);
    for (int i = 0; i < 3; i++) {
        fill(tensors[i].data, BYTES, 30 + (uint32_t)i, NULL);
    }
    MUST(cudaDeviceSynchronize());
}

static void end_all(void)
{
    for (int i = 0; i < 3; i++) {
        tensor_end(&tensors[i]);
    }
}

static void forked(void)
{
    int status;
    pid_t child;

    make();
    child = fork();
    if (child == 0) {
        end_all();
        tensors[0] = tensor_new(BYTES);
        printf("child: %s\n", tensors[0].data != NULL ? "had" : "refused");
        tensor_end(&tensors[0]);
        fflush(stdout);
        _exit(0);
    }
    HOLD(waitpid(child, &status, 0) == child);
    printf("status %d\n", status);
    for (int i = 0; i < 3; i++) {
        HOLD(count_wrong(tensors[i].data, BYTES, 30 + (uint32_t)i, NULL) == 0);
    }
    end_all();
    printf("allocated: %d\n", (int)allocated_bytes());
}

static void reset(void)
{
    make();
    MUST(cudaDeviceReset());
    tensor_end(&tensors[0]);
    tensor_end(&tensors[2]);
    tensors[0] = tensor_new(BYTES);
    HOLD(tensors[0].data != NULL);
    fill(tensors[0].data, BYTES, 5, NULL);
    HOLD(count_wrong(tensors[0].data, BYTES, 5, NULL) == 0);
    tensor_end(&tensors[0]);
    printf("done\n");
}

/* Prints a handle of each tensor; with `waits`, keeps them until a line comes. */
static void share(bool waits)
{
    char line[16];

    make();
    for (int i = 0; i < 2; i++) {
        struct spw_torch_shareable handle;

        memset(&handle, 0xff, sizeof(handle));
        CALL_INTO(SHARE_IPC_HANDLE, into_memory_function, &handle, fake_allocator, tensors[i].data);
        HOLD(handle.length == 66 && handle.text[1] == 'c' && handle.offset == 0);
        for (size_t at = 2; at < handle.length; at++) {
            printf("%02x", (unsigned char)handle.text[at]);
        }
        printf("\n");
        fake_delete(handle.text);
    }
    fflush(stdout);
    if (waits) {
        (void)!fgets(line, sizeof(line), stdin);
    }
    end_all();
}

static void open_other(const char *text)
{
    cudaIpcMemHandle_t handle;
    void *memory;
    uint32_t word;

    HOLD(strlen(text) == 2 * sizeof(handle));
    for (size_t i = 0; i < sizeof(handle); i++) {
        unsigned int byte;

        HOLD(sscanf(text + 2 * i, "%2x", &byte) == 1);
        ((unsigned char *)&handle)[i] = (unsigned char)byte;
    }
    MUST(cudaFree(NULL));
    MUST(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess));
    MUST(cudaMemcpy(&word, memory, sizeof(word), cudaMemcpyDeviceToHost));
    printf("%u, wrong: %zu\n", word, count_wrong(memory, BYTES, word, NULL));
    MUST(cudaIpcCloseMemHandle(memory));
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";

    if (strcmp(way, "fork") == 0) {
        forked();
    } else if (strcmp(way, "exit") == 0) {
        make();
        MUST(atexit(end_all));
    } else if (strcmp(way, "reset") == 0) {
        reset();
    } else if (strcmp(way, "share") == 0) {
        share(argc > 2);
    } else if (strcmp(way, "open") == 0 && argc > 2) {
        open_other(argv[2]);
    } else {
        fprintf(stderr, "usage: endings fork | exit | reset | share [wait] | open HANDLE\n");
        return 2;
    }
    return 0;
}
