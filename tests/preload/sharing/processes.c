#include "processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef IPC_RUNTIME
#    include <cuda_runtime_api.h>
#endif

long number;
const char *word;
pid_t other_pid;

static int in = -1, out = -1;

/* ---- CUDA ---- */

void enter(int ordinal)
{
    CUcontext context = NULL;
    CUdevice device;

    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, ordinal));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
}

#ifdef IPC_RUNTIME

CUdeviceptr allocate(size_t bytes)
{
    void *pointer = NULL;

    MUST(cudaMalloc(&pointer, bytes));
    return (CUdeviceptr)(uintptr_t)pointer;
}

int get(CUipcMemHandle *handle, CUdeviceptr address)
{
    return (int)cudaIpcGetMemHandle((cudaIpcMemHandle_t *)handle, (void *)(uintptr_t)address);
}

int open_handle(CUdeviceptr *address, const CUipcMemHandle *handle)
{
    cudaIpcMemHandle_t copy;
    void *pointer = NULL;
    int result;

    memcpy(&copy, handle, sizeof(copy));
    result = (int)cudaIpcOpenMemHandle(&pointer, copy, cudaIpcMemLazyEnablePeerAccess);
    *address = (CUdeviceptr)(uintptr_t)pointer;
    return result;
}

int close_address(CUdeviceptr address)
{
    return (int)cudaIpcCloseMemHandle((void *)(uintptr_t)address);
}

#else

CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr address = 0;

    MUST(cuMemAlloc(&address, bytes));
    return address;
}

int get(CUipcMemHandle *handle, CUdeviceptr address)
{
    return (int)cuIpcGetMemHandle(handle, address);
}

int open_handle(CUdeviceptr *address, const CUipcMemHandle *handle)
{
    return (int)cuIpcOpenMemHandle(address, *handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

int close_address(CUdeviceptr address)
{
    return (int)cuIpcCloseMemHandle(address);
}

#endif

void fill(CUdeviceptr address, size_t bytes, int byte)
{
    MUST(cuMemsetD8(address, (unsigned char)byte, bytes));
    MUST(cuCtxSynchronize());
}

bool has(CUdeviceptr address, size_t bytes, int byte)
{
    static unsigned char content[MIB];

    for (size_t at = 0, count; at < bytes; at += count) {
        count = bytes - at < sizeof(content) ? bytes - at : sizeof(content);
        MUST(cuMemcpyDtoH(content, address + at, count));
        for (size_t i = 0; i < count; i++) {
            if (content[i] != byte) {
                return false;
            }
        }
    }
    return true;
}

size_t free_bytes(void)
{
    size_t left, total;

    MUST(cuCtxSynchronize());
    MUST(cuMemGetInfo(&left, &total));
    return left;
}

/* ---- the process ---- */

int count_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    HOLD(folder != NULL);
    while (readdir(folder) != NULL) {
        count++;
    }
    (void)closedir(folder);
    return count;
}

int count_lines(const char *path, const char *part)
{
    char line[4096];
    FILE *file = fopen(path, "r");
    int count = 0;

    HOLD(file != NULL);
    while (fgets(line, sizeof(line), file) != NULL) {
        count += part == NULL || strstr(line, part) != NULL;
    }
    (void)fclose(file);
    return count;
}

/* ---- the other process ---- */

void send_to_other(const void *data, size_t bytes)
{
    HOLD(write(out, data, bytes) == (ssize_t)bytes);
}

bool receive(void *data, size_t bytes)
{
    ssize_t got = read(in, data, bytes);

    HOLD(got == 0 || got == (ssize_t)bytes);
    return got > 0;
}

void say(char letter)
{
    send_to_other(&letter, 1);
}

char hear(void)
{
    char letter = 0;

    return receive(&letter, 1) ? letter : 0;
}

void offer(CUdeviceptr address, size_t bytes, size_t offset, int byte)
{
    struct offer made = {.bytes = bytes, .byte = byte};

    fill(address, bytes, byte);
    MUST(get(&made.handle, address + offset));
    send_to_other(&made, sizeof(made));
    HOLD(hear() == 'w');
    HOLD(has(address, bytes, byte ^ 0xff));
}

long take_offers(void)
{
    struct offer taken;
    long count = 0;

    for (; receive(&taken, sizeof(taken)); count++) {
        CUdeviceptr address = 0;

        MUST(open_handle(&address, &taken.handle));
        HOLD(has(address, taken.bytes, taken.byte));
        fill(address, taken.bytes, taken.byte ^ 0xff);
        MUST(close_address(address));
        say('w');
    }
    return count;
}

static void run_other(const char *program, const char *way, int from, int to)
{
    char count[32], descriptor[32];

    HOLD(dup2(from, STDIN_FILENO) >= 0);
    (void)snprintf(count, sizeof(count), "%ld", number);
    (void)snprintf(descriptor, sizeof(descriptor), "%d", dup(to));
    HOLD(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    (void)unsetenv("SPILLWAY_STATS"); /* the parent's */
    (void)execl(program, program, way, count, word, descriptor, (char *)NULL);
    _exit(127);
}

void start_other(const char *program, const char *way)
{
    int to[2], from[2];

    HOLD(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
    other_pid = fork();
    HOLD(other_pid >= 0);
    if (other_pid == 0) {
        run_other(program, way, to[0], from[1]);
    }
    in = from[0];
    out = to[1];
    (void)close(to[0]);
    (void)close(from[1]);
}

void become_other(const char *descriptor)
{
    in = STDIN_FILENO;
    out = (int)strtol(descriptor, NULL, 10);
}

void end_other(void)
{
    int status = 0;

    (void)close(out);
    HOLD(waitpid(other_pid, &status, 0) == other_pid);
    HOLD(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    other_pid = 0;
}
