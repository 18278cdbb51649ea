/* Forks before or after the first use of CUDA, or lets the driver fork inside a call; parent and
 * child print what they see.
 *
 *     forks before | after [poor | refused] | inside
 *
 * poor     the child can map no private memory (RLIMIT_DATA)
 * refused  the child can put no memory in place of other memory */
#include <cuda_runtime_api.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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

/* From now on mmap fails where it would replace memory. */
static void refuse_replacing(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_FIXED, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
    };
    const struct sock_fprog filter = {.len = sizeof(steps) / sizeof(*steps), .filter = steps};

    HOLD(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

/* Forks, with what the child lacks. */
static pid_t fork_as(const char *way)
{
    struct rlimit limit, none;
    pid_t child;

    if (strcmp(way, "refused") == 0) {
        refuse_replacing();
    }
    if (strcmp(way, "poor") != 0) {
        return fork();
    }
    HOLD(getrlimit(RLIMIT_DATA, &limit) == 0);
    none = (struct rlimit){.rlim_cur = 1 << 12, .rlim_max = limit.rlim_max}; /* 0: no limit */
    HOLD(setrlimit(RLIMIT_DATA, &none) == 0);
    child = fork();
    HOLD(child == 0 || setrlimit(RLIMIT_DATA, &limit) == 0);
    return child;
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

    pid_t child = fork_as(argc > 2 ? argv[2] : "");

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
