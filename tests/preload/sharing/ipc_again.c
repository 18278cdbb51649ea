/* A process opens blocks of another one, which does something odd meanwhile.
 *
 *     ipc_again exec           it executes itself and offers a new block
 *     ipc_again interrupted    it is stopped for half a second, and signals arrive here
 *     ipc_again closed         it closes all descriptors, and asks for the handle again
 *     ipc_again owner N        the other one, with a block of the number N; 0: as `closed` */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda.h>

#include "../check.h"

enum { BYTES = 4 << 20, OFFERS = 10, TURNS = 11 }; /* and descriptors of the owner */

static void enter_device(void)
{
    CUcontext context;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
}

/* Offers a block, and executes itself with the next number when it is its turn. */
static void own(const char *program, int number)
{
    CUipcMemHandle handle;
    CUdeviceptr block;
    char turn, next[16];

    enter_device();
    MUST(cuMemAlloc(&block, BYTES));
    MUST(cuMemsetD32(block, (unsigned)number, BYTES / 4));
    MUST(cuCtxSynchronize());
    MUST(cuIpcGetMemHandle(&handle, block));
    if (number == 0) {
        HOLD(close_range(TURNS + 1, ~0u, 0) == 0);
        MUST(cuIpcGetMemHandle(&handle, block));
    }
    HOLD(write(OFFERS, &handle, sizeof(handle)) == (ssize_t)sizeof(handle));
    if (read(TURNS, &turn, 1) == 1) {
        (void)snprintf(next, sizeof(next), "%d", number + 1);
        execl("/proc/self/exe", program, "owner", next, NULL);
    }
}

static pid_t start_owner(const char *program, const char *number, int *ret_offers, int *ret_turns)
{
    int offers[2], turns[2];
    pid_t pid;

    HOLD(pipe(offers) == 0 && pipe(turns) == 0);
    pid = fork();
    if (pid == 0) {
        dup2(offers[1], OFFERS);
        dup2(turns[0], TURNS);
        close(offers[0]);
        close(turns[1]);
        execl("/proc/self/exe", program, "owner", number, NULL);
    }
    close(offers[1]);
    close(turns[0]);
    *ret_offers = offers[0];
    *ret_turns = turns[1];
    return pid;
}

static CUdeviceptr open_next(int offers)
{
    CUipcMemHandle handle;
    CUdeviceptr block;

    HOLD(read(offers, &handle, sizeof(handle)) == (ssize_t)sizeof(handle));
    MUST(cuIpcOpenMemHandle(&block, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    return block;
}

static unsigned first_word(CUdeviceptr block)
{
    unsigned word = 0;

    MUST(cuMemcpyDtoH(&word, block, sizeof(word)));
    return word;
}

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    signals++;
}

/* A timer's signal arrives each tenth of a second. The owner goes on after half a second. */
static void interrupt(pid_t owner)
{
    const struct itimerval timer = {.it_interval.tv_usec = 100000, .it_value.tv_usec = 100000};
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};

    kill(owner, SIGSTOP);
    (void)waitpid(owner, NULL, WUNTRACED);
    sigaction(SIGALRM, &action, NULL);
    if (fork() == 0) {
        usleep(500000);
        kill(owner, SIGCONT);
        _exit(0);
    }
    setitimer(ITIMER_REAL, &timer, NULL);
}

int main(int argc, char **argv)
{
    CUdeviceptr first, second;
    int offers, turns;
    pid_t owner;

    if (argc == 3) {
        own(argv[0], atoi(argv[2]));
        return 0;
    }
    owner = start_owner(argv[0], argc == 2 && strcmp(argv[1], "closed") == 0 ? "0" : "1", &offers,
                        &turns);
    enter_device();
    if (argc == 2 && strcmp(argv[1], "interrupted") == 0) {
        CUipcMemHandle handle;

        HOLD(read(offers, &handle, sizeof(handle)) == (ssize_t)sizeof(handle));
        interrupt(owner);
        MUST(cuIpcOpenMemHandle(&first, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
        printf("read %u, %s\n", first_word(first), signals > 0 ? "interrupted" : "in peace");
    } else if (argc == 2 && strcmp(argv[1], "closed") == 0) {
        first = open_next(offers);
        printf("read %u\n", first_word(first));
    } else {
        first = open_next(offers);
        HOLD(write(turns, "x", 1) == 1);
        second = open_next(offers);
        printf("read %u and %u\n", first_word(first), first_word(second));
    }
    close(turns);
    kill(owner, SIGKILL);
    (void)waitpid(owner, NULL, 0);
    return 0;
}
