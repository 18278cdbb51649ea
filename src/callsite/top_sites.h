/* The sites that hold most memory of a device now, and a policy rule that would place some of this
 * memory on the host. They are for an out-of-memory report.
 *
 * For use inside the program's process. Locking: no lock may be held, because names are looked up
 * (facts.h). Figures are read while other threads may change them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "callsite/label.h"
#include "callsite/rule.h"
#include "pool/accounts.h"

enum { SPW_CALLSITE_HOLDERS = 10 };

struct spw_callsite_holder {
    uint32_t site; /* 0: unknown */
    uint64_t bytes;
    uint64_t blocks;
    char label[SPW_CALLSITE_LABEL];
};

struct spw_callsite_holding {
    uint64_t sites; /* number of sites that hold memory */
    uint64_t bytes; /* memory that all these sites hold */
    int count;
    struct spw_callsite_holder holders[SPW_CALLSITE_HOLDERS]; /* the largest is first */
    char rule[SPW_CALLSITE_RULE]; /* policy rule, as JSON, chosen by spw_callsite_group_choose();
                                     "": none */
    uint64_t rule_bytes;          /* lower bound of the memory that the rule matches */
};

/* Fills *ret_holding, a large struct, from the charges of one device. The rule should free
 * `missing_bytes`; 0 if unknown. */
void spw_callsite_holding(const struct spw_charges *charges, uint64_t missing_bytes,
                          struct spw_callsite_holding *ret_holding);

/* Writes the label of one site, truncated to `capacity`; "not known" for site 0. */
void spw_callsite_label_of(uint32_t site, char *ret_label, size_t capacity);
