/* The policy that is in force in this process. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "policy/policy.h"
#include "pool/accounts.h"

struct spw_policy_memo;

/* The policy in force. Written once, before `policy` is set. After that only atomic members
 * change. */
struct spw_policy_state {
    _Atomic(struct spw_policy *) policy; /* NULL: none */
    _Atomic bool was_read;               /* the program's policy file was read, or reading it
                                            failed */
    atomic_flag claimed;                 /* set by the thread that puts the policy into force */
    char file[4096];                     /* path of its file; empty: none */
    char process[256];                   /* name of this process, for rules */
    int64_t rank;
    uint8_t regions[SPW_ACCOUNTS]; /* number of each rule's region; 0: none */
    uint32_t region_count;
    bool hosts;                       /* some rule may place blocks on the host */
    bool counts;                      /* some rule has a condition on the number of an allocation */
    bool counts_in_steps;             /* some rule has a condition on the number of an allocation in
                                         its step */
    _Atomic uint32_t step;            /* number of steps that the program has marked */
    struct spw_policy_memo *memos;    /* by call site */
    _Atomic uint64_t unmet_reported;  /* bits of rules: the report was written that the rule was not
                                         followed */
    _Atomic uint64_t beyond_reported; /* bits of rules: the report was written that the rule's limit
                                         was exceeded */
    _Atomic unsigned lines;           /* number of lines written about call sites */
};

extern struct spw_policy_state spw_policy_state;
