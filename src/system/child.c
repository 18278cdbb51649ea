#include "system/child.h"

#include "system/backoff.h"
#include "system/fd.h"
#include "system/start.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK_BYTES = 64 << 10, CANNOT_START = 127 };

static const uint64_t reap_ns = UINT64_C(200) * 1000 * 1000;

/* ---- the helper and its keeper ---- */

/* ThreadSanitizer intercepts clone() and handles it like fork(): it would reset its state, in
 * memory that the child shares with the program. It does not intercept __clone. */
#ifdef __has_feature
#    if __has_feature(thread_sanitizer)
#        define SANITIZE_THREAD
#    endif
#endif
#if defined(SANITIZE_THREAD) || defined(__SANITIZE_THREAD__)
extern int __clone(int (*function)(void *), void *stack, int flags, void *context, ...);
#    define clone __clone
#endif

/* The keeper is a child of the program, and never calls execve. It starts the helper, waits for it,
 * and kills it after the time limit. The helper itself could not be hidden, since execve would
 * reset its exit signal, which would have to be 0. Keeper and program share their memory, and the
 * calling thread stands still until the keeper ends. An emulator such as valgrind gives the keeper
 * a copy of the memory instead, so the result is in a shared mapping. */
struct keeper {
    const char *const *arguments;
    int output;
    uint64_t limit_ns;
    char *helper_stack; /* its upper end */
    struct spw_child_result *result;
};

/* Gives an open file another descriptor. All calls about descriptors in this file bypass the C
 * library: a sanitizer intercepts the library's functions and would record, in the program's
 * memory, that the program's own descriptors have changed. */
static bool redirect(int from, int to)
{
    return from == to || syscall(SYS_dup3, from, to, 0) >= 0;
}

/* Becomes the helper, in the memory of the program. Returns the exit code if the helper cannot be
 * executed; on success it never returns. So AddressSanitizer's marks around its variables would
 * stay in memory that is used again. */
__attribute__((no_sanitize("address"))) static int be_helper(void *context)
{
    const struct keeper *keeper = context;
    sigset_t none;
    int null = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (null < 0 || !redirect(null, STDIN_FILENO) || !redirect(keeper->output, STDOUT_FILENO) ||
        !redirect(null, STDERR_FILENO)) {
        return CANNOT_START;
    }
    /* Relative paths in variables such as LD_LIBRARY_PATH start at the folder that the process was
     * started in. They lead to nothing if that folder is gone or may no longer be entered. */
    if ((spw_start_folder() == NULL || syscall(SYS_chdir, spw_start_folder()) != 0) &&
        syscall(SYS_chdir, "/") != 0) {
        return CANNOT_START;
    }
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)execve(keeper->arguments[0], (char *const *)keeper->arguments, spw_start_environment());
    return CANNOT_START;
}

/* Waits until the process has ended. False when it has not ended after `limit_ns`. */
static bool await(pid_t pid, uint64_t limit_ns, int *ret_status)
{
    struct spw_backoff backoff = {.limit_ns = limit_ns};

    while (waitpid(pid, ret_status, __WALL | WNOHANG) != pid) {
        if (!spw_backoff_pause(&backoff)) {
            return false;
        }
    }
    return true;
}

static void await_helper(pid_t pid, const struct keeper *keeper)
{
    struct spw_child_result *result = keeper->result;
    int status = 0;

    if (!await(pid, keeper->limit_ns, &status)) {
        (void)kill(-pid, SIGKILL);
        (void)await(pid, reap_ns, &status);
        result->end = SPW_CHILD_TIMED_OUT;
    } else if (WIFSIGNALED(status)) {
        result->end = SPW_CHILD_KILLED;
        result->code = WTERMSIG(status);
    } else if (WEXITSTATUS(status) != CANNOT_START) {
        result->end = SPW_CHILD_EXITED;
        result->code = WEXITSTATUS(status);
    }
}

static int be_keeper(void *context)
{
    static const unsigned long ordinary[4]; /* the kernel's form: SIG_DFL, no flags, no mask */
    struct keeper *keeper = context;
    pid_t pid;

    /* The program's handlers must not run here. The call bypasses sigaction(): a sanitizer
     * intercepts it and would record, in the program's memory, that the program has no handlers. */
    for (int number = 1; number < NSIG; number++) {
        (void)syscall(SYS_rt_sigaction, number, ordinary, NULL, (NSIG - 1) / 8);
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    pid = clone(be_helper, keeper->helper_stack, CLONE_VM | CLONE_VFORK | SIGCHLD, keeper);
    if (pid > 0) {
        await_helper(pid, keeper);
    }
    return 0;
}

/* Runs the keeper to its end, with all signals of the calling thread blocked. */
static void keep(struct keeper *keeper)
{
    const size_t stacks_bytes = 2 * (size_t)STACK_BYTES;
    const size_t bytes = stacks_bytes + sizeof(struct spw_child_result);
    char *stacks =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    struct spw_child_result *program_result = keeper->result;
    sigset_t all, previous;
    int cancel;
    pid_t pid;

    if (stacks == MAP_FAILED) {
        return;
    }
    keeper->helper_stack = stacks + stacks_bytes;
    keeper->result = (struct spw_child_result *)(stacks + stacks_bytes);
    *keeper->result = *program_result;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &previous);
    pid = clone(be_keeper, stacks + STACK_BYTES, CLONE_VM | CLONE_VFORK, keeper);
    while (pid > 0 && waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR) {
        continue;
    }
    (void)pthread_sigmask(SIG_SETMASK, &previous, NULL);
    (void)pthread_setcancelstate(cancel, NULL);
    *program_result = *keeper->result;
    (void)munmap(stacks, bytes);
}

static void read_line(int output, char said[SPW_CHILD_TEXT])
{
    ssize_t length = pread(output, said, SPW_CHILD_TEXT - 1, 0);

    said[length > 0 ? length : 0] = '\0';
    said[strcspn(said, "\n")] = '\0';
}

static void describe(struct spw_child_result *result, int output)
{
    switch (result->end) {
    case SPW_CHILD_EXITED:
        read_line(output, result->said);
        break;
    case SPW_CHILD_KILLED:
        (void)snprintf(result->said, sizeof(result->said),
                       "no: the process that tried it was killed by signal %d", result->code);
        break;
    case SPW_CHILD_TIMED_OUT:
        (void)snprintf(result->said, sizeof(result->said), "no answer in time");
        break;
    default:
        (void)snprintf(result->said, sizeof(result->said), "no process could be started");
        break;
    }
}

void spw_child_run(const char *const *arguments, uint64_t limit_ns,
                   struct spw_child_result *ret_result)
{
    int saved = errno, output = memfd_create("spillway", MFD_CLOEXEC);
    struct keeper keeper = {.arguments = arguments, .limit_ns = limit_ns, .result = ret_result};

    *ret_result = (struct spw_child_result){.end = SPW_CHILD_NOT_STARTED};
    if (output >= 0) {
        keeper.output = output = spw_fd_park(output);
        keep(&keeper);
        describe(ret_result, output);
        close(output);
    }
    errno = saved;
}
