/* Forks before or after the first use of CUDA, or lets the driver fork inside a call; parent and
 * child print what they see. */
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void use_memory(const char *who)
{
    unsigned char byte = 0;
    void *block = NULL;
    cudaError_t err = cudaMalloc(&block, 1 << 20);

    printf("%s: cudaMalloc: %s\n", who, cudaGetErrorName(err));
    if (err == cudaSuccess) {
        MUST(cudaMemset(block, 3, 1 << 20));
        MUST(cudaMemcpy(&byte, block, 1, cudaMemcpyDeviceToHost));
        HOLD(byte == 3);
        MUST(cudaFree(block));
    }
    fflush(stdout);
}

static bool driver_forks;
static int driver_forked;

/* Replaces the C library's function, by which the simulated driver frees memory. */
__attribute__((visibility("default"))) int fallocate(int fd, int mode, off_t offset, off_t length)
{
    if (driver_forks) {
        pid_t child = fork();
        int status = 0;

        if (child == 0) {
            _exit(0);
        }
        HOLD(waitpid(child, &status, 0) == child);
        driver_forked++;
    }
    return (int)syscall(SYS_fallocate, fd, mode, offset, length);
}

int main(int argc, char **argv)
{
    int after = argc > 1 && strcmp(argv[1], "after") == 0;
    void *held = NULL; /* across the fork: the child must leave the parent's figures alone */
    int status = 0;

    /* A child that ends must not write a file, even where a sanitizer flushes in _exit. */
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1 && strcmp(argv[1], "inside") == 0) {
        driver_forks = true;
        use_memory("parent");
        MUST(cudaDeviceReset());
        HOLD(driver_forked > 0);
        return 0;
    }
    if (after) {
        use_memory("parent");
        MUST(cudaMalloc(&held, 1 << 20));
    }

    /* The kernel's process start time has a resolution of 10 ms; wait, so that the child's file is
     * not older. */
    usleep(30000);
    fflush(stdout);

    pid_t child = fork();

    if (child == 0) {
        use_memory("child");
        exit(0);
    }
    HOLD(waitpid(child, &status, 0) == child);
    HOLD(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    use_memory("parent");
    if (after) {
        MUST(cudaFree(held));
    }
    return 0;
}
