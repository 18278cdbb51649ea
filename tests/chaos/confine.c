/* Takes from this process what a program may lack: resources, and system calls that are optional.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "chaos.h"

static const struct {
    const char *name;
    int resource;
} limits[] = {{"as", RLIMIT_AS},         {"data", RLIMIT_DATA},   {"fsize", RLIMIT_FSIZE},
              {"nofile", RLIMIT_NOFILE}, {"nproc", RLIMIT_NPROC}, {"memlock", RLIMIT_MEMLOCK}};

static const struct {
    const char *name;
    unsigned int number;
    int error;
} calls[] = {
    {"membarrier", SYS_membarrier, ENOSYS},
    {"memfd_create", SYS_memfd_create, EPERM},
    {"process_vm_readv", SYS_process_vm_readv, EPERM},
    {"mbind", SYS_mbind, EPERM},
    {"pipe2", SYS_pipe2, EPERM},
    {"sched_getaffinity", SYS_sched_getaffinity, EPERM},
    {"prctl", SYS_prctl, EPERM},
    {"clone3", SYS_clone3, ENOSYS},
    {"statx", SYS_statx, ENOSYS},
    {"mlock", SYS_mlock, EPERM},
    {"fallocate", SYS_fallocate, EOPNOTSUPP},
    {"renameat2", SYS_renameat2, ENOSYS},
    {"linkat", SYS_linkat, EPERM},
    {"rseq", SYS_rseq, ENOSYS},
};

/* A filter that makes one system call fail. Those of several denials are all asked. */
static bool deny(unsigned int number, int error)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned int)error),
    };
    const struct sock_fprog filter = {.len = sizeof(steps) / sizeof(*steps), .filter = steps};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

static bool limit(int resource, unsigned long long most)
{
    struct rlimit value = {.rlim_cur = most, .rlim_max = most};

    if (resource == RLIMIT_FSIZE) {
        /* The simulated driver has memory files that are longer than any limit. */
        (void)signal(SIGXFSZ, SIG_IGN);
    }
    return setrlimit(resource, &value) == 0;
}

bool confine(const char *word)
{
    size_t length = strcspn(word, "=");

    if (word[length] == '\0') {
        return false;
    }
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        if (strncmp(word, limits[i].name, length) == 0 && limits[i].name[length] == '\0') {
            return limit(limits[i].resource, strtoull(word + length + 1, NULL, 10));
        }
    }
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (strncmp(word, "deny=", length + 1) == 0 &&
            strcmp(word + length + 1, calls[i].name) == 0) {
            return deny(calls[i].number, calls[i].error);
        }
    }
    return false;
}
