/* The ledger: a table of the allocations that the real driver made for the program, both device
 * memory and page-locked host memory. Each entry holds the facts that are needed to account for the
 * free.
 *
 * Locking: spw_locks.ledger; nothing is called with it held. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum spw_ledger_kind {
    SPW_LEDGER_PASSED,  /* device memory, not charged to the limit */
    SPW_LEDGER_CHARGED, /* device memory, charged to the limit */
    SPW_LEDGER_PINNED,  /* host memory that was allocated page-locked or registered */
};

struct spw_ledger_entry {
    enum spw_ledger_kind kind;
    int ordinal;
    uint64_t bytes;
    uint32_t site;       /* call site that is charged; 0: none */
    const void *context; /* context whose end frees the memory; NULL: none */
};

/* Enters an allocation. Replaces an older entry with the same address. If there is no memory for
 * the entry, the allocation is not accounted for. */
void spw_program_ledger_add(uint64_t address, const struct spw_ledger_entry *entry);

/* Removes the entry of the allocation at `address`. Returns false if there is no entry. */
bool spw_program_ledger_remove(uint64_t address, struct spw_ledger_entry *ret_entry);

/* Removes the entries of allocations that are freed with a context. Calls `visit` for each entry,
 * without a lock. */
void spw_program_ledger_end_context(const void *context,
                                    void (*visit)(uint64_t address,
                                                  const struct spw_ledger_entry *entry));

/* In a child after fork: empties the ledger. */
void spw_program_ledger_reset(void);
