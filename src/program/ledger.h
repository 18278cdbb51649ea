/* The ledger: allocations that the real driver made for the program, device memory and page-locked
 * host memory. Each entry has the facts that accounting for the free needs.
 *
 * Locking: spw_locks.ledger; nothing is called with it held. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum spw_ledger_kind {
    SPW_LEDGER_PASSED,  /* device memory, not charged to the limit */
    SPW_LEDGER_CHARGED, /* device memory, charged to the limit */
    SPW_LEDGER_PINNED,  /* host memory: allocated or registered */
};

struct spw_ledger_entry {
    enum spw_ledger_kind kind;
    int ordinal;
    uint64_t bytes;
    uint32_t site;       /* call site that is charged; 0: none */
    const void *context; /* context that the memory is freed with; NULL: none */
};

/* Enters an allocation, in place of an older one at the address. Without memory for the entry the
 * allocation stays unaccounted. */
void spw_program_ledger_add(uint64_t address, const struct spw_ledger_entry *entry);

/* Removes the allocation at `address`; false when it is not entered. */
bool spw_program_ledger_remove(uint64_t address, struct spw_ledger_entry *ret_entry);

/* Removes the allocations that are freed with a context, and calls `visit` for each, with no lock
 * held. */
void spw_program_ledger_end_context(const void *context,
                                    void (*visit)(uint64_t address,
                                                  const struct spw_ledger_entry *entry));

/* In a child after fork: empties the ledger. */
void spw_program_ledger_reset(void);
