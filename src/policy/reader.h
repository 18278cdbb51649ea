/* What the parts of the parser share while one file is read: its text, the places of its values,
 * the memory of the policy in the making, the complaints. One thread. */
#pragma once

#include "policy/policy.h"
#include "policy/scan.h"

enum { SPW_POLICY_SHOWN = 68 }; /* room for a piece of the file in a message */

struct spw_policy_reader {
    const char *text;
    size_t length;
    const struct spw_scan *scan;
    struct spw_policy_memory *memory; /* the policy's */
    struct spw_policy_complaints *complaints;
    bool no_memory;
};

/* Zeroed memory that lives as long as the policy; NULL, noted in the reader, when there is none. */
void *spw_policy_allocate(struct spw_policy_reader *reader, size_t bytes);

/* Frees all memory of a policy; NULL is fine. */
void spw_policy_memory_free(struct spw_policy_memory *memory);

/* Adds a complaint about what stands at `offset`. */
void spw_policy_complain(struct spw_policy_reader *reader, size_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Where a value of cJSON's tree stands; its valueint is its number in the scan (parse.c). */
size_t spw_policy_place(const struct spw_policy_reader *reader, const cJSON *node);

/* The string, number or word at `offset` as the file has it, cut where it is long: one line,
 * whatever it holds. Written to `text`, which is returned. */
const char *spw_policy_source(const struct spw_policy_reader *reader, size_t offset,
                              char text[SPW_POLICY_SHOWN]);

/* The value of `row` is not what it should be: "KEY is VALUE[, WHY], expected EXPECTED", with the
 * nearest word, if there is one. `why` and `nearest` may be NULL. */
void spw_policy_complain_value(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                               const cJSON *node, const char *why, const char *nearest);

/* Reads a value that holds no object, by the type of its row, into the member at `member`. */
void spw_policy_read_value(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                           const cJSON *node, void *member);

/* Reads an object into the struct of its kind, and everything below it. */
void spw_policy_read_object(struct spw_policy_reader *reader, enum spw_policy_object kind,
                            const cJSON *node, void *object);

/* What must hold between the keys of an object; `seen` are the keys that stand in the file, good,
 * bad or mistyped, bit 1 << enum spw_policy_key. */
void spw_policy_check_object(struct spw_policy_reader *reader, enum spw_policy_object kind,
                             const cJSON *node, const void *object, uint64_t seen);

/* What must hold between the rules of a file. */
void spw_policy_check_rules(struct spw_policy_reader *reader, const cJSON *root,
                            const struct spw_policy_file *file);

/* Whether a rule asks for anything that differs between the allocations of a site (match.c). */
bool spw_policy_asks_request(const struct spw_policy_rule *rule);
