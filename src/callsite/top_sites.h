/* Who holds the memory of a device at this moment, and the policy rule that would move the most of
 * it: what an out-of-memory report is made of.
 *
 * For use inside somebody else's process. Locking: that of names (facts.h), so not to be called
 * with a lock held. The figures are read while others may change them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "callsite/label.h"
#include "pool/accounts.h"

enum { SPW_CALLSITE_HOLDERS = 10, SPW_CALLSITE_RULE = 768 };

struct spw_callsite_holder {
    uint32_t site; /* 0: memory whose call site is not known */
    uint64_t bytes;
    uint64_t blocks;
    char label[SPW_CALLSITE_LABEL];
};

struct spw_callsite_holding {
    uint64_t sites; /* that hold something */
    uint64_t bytes; /* of all of them */
    int count;
    struct spw_callsite_holder holders[SPW_CALLSITE_HOLDERS]; /* the largest first */
    char rule[SPW_CALLSITE_RULE]; /* one rule of a policy file, as JSON: the largest holder that a
                                 rule can name to the host; "" when there is none */
    uint64_t rule_bytes;          /* held by the sites that the rule matches, at least */
};

/* Fills *ret_holding, a large struct, for a device's charges. */
void spw_callsite_holding(const struct spw_charges *charges,
                          struct spw_callsite_holding *ret_holding);

/* Writes a few words about one site, cut at `capacity`; "not known" for 0. Names of native
 * functions are looked up only where no Python frame tells (facts.h). */
void spw_callsite_label_of(uint32_t site, char *ret_label, size_t capacity);
