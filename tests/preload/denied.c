/* Executes a command that may not make pipes: a filter of system calls denies it, as sandboxes do.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

#ifdef SYS_pipe
#    define OLD_PIPE SYS_pipe
#else
#    define OLD_PIPE SYS_pipe2
#endif

int main(int argc, char **argv)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pipe2, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OLD_PIPE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    const struct sock_fprog program = {.len = sizeof(steps) / sizeof(*steps), .filter = steps};
    int ends[2];

    HOLD(argc > 1);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        return 77;
    }
    HOLD(pipe(ends) != 0 && errno == EPERM);
    (void)execv(argv[1], argv + 1);
    return 1;
}
