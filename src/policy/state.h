/* The policy in force in this process. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "policy/policy.h"
#include "pool/accounts.h"

struct spw_policy_memo;

/* The policy in force. Written once, before `policy` is set; only atomic members change later. */
struct spw_policy_state {
    _Atomic(struct spw_policy *) policy; /* NULL: none */
    _Atomic bool was_read;               /* the file was read, or could not be */
    atomic_flag claimed;                 /* by the thread that puts it into force */
    char file[4096];                     /* its path; empty: none */
    char process[256];                   /* name of this process, for the rules */
    int64_t rank;
    uint8_t regions[SPW_ACCOUNTS]; /* number of each rule's region; 0: none */
    uint32_t region_count;
    bool hosts;                       /* a rule may place blocks on the host */
    bool counts;                      /* a rule asks for an allocation's number */
    bool counts_in_steps;             /* a rule asks for an allocation's number in a step */
    _Atomic uint32_t step;            /* steps that the program marked so far */
    struct spw_policy_memo *memos;    /* by call site */
    _Atomic uint64_t unmet_reported;  /* bits of the rules that were reported as not followed */
    _Atomic uint64_t beyond_reported; /* bits of the rules whose limit was reported */
    _Atomic unsigned lines;           /* number of lines written about call sites */
};

extern struct spw_policy_state spw_policy_state;
