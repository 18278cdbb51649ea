/* Functions for all parts of the parser: they read objects and values, check them, and write
 * complaints. All of them use one struct while a file is read.
 *
 * cJSON's tree has the content of every value, and the scan of the text has its position. The
 * parser walks the tree once, in the order of the text, together with the positions (struct
 * spw_policy_node). One thread. */
#pragma once

#include "policy/policy.h"
#include "policy/scan.h"

enum { SPW_POLICY_SHOWN = 68 }; /* most bytes of a piece of the file in a message */

struct spw_policy_reader {
    const char *text;
    size_t length;
    const struct spw_scan *scan;
    struct spw_scan_cursor cursor;    /* position of the last rule that was read */
    size_t first_all;                 /* index of the first rule that matches all allocations;
                                         SPW_POLICY_RULES: none */
    bool behind_all;                  /* a complaint names the rule behind that rule */
    struct spw_policy_memory *memory; /* memory of the policy */
    struct spw_policy_complaints *complaints;
    bool no_memory;
    bool torn; /* the tree and the scan differ in structure */
};

/* A value of the tree and its place in the text. */
struct spw_policy_node {
    const cJSON *json; /* NULL: there is no value */
    size_t place;      /* index in the scan's places */
    size_t end;        /* index behind the last value of the group that contains this one */
};

/* Returns the first member or item of a group. */
struct spw_policy_node spw_policy_first(struct spw_policy_reader *reader,
                                        struct spw_policy_node group);

/* Returns the member or item behind this one. */
struct spw_policy_node spw_policy_next(struct spw_policy_reader *reader,
                                       struct spw_policy_node node);

/* Returns the byte offset of a value. */
size_t spw_policy_place(const struct spw_policy_reader *reader, struct spw_policy_node node);

/* Allocates zeroed memory that lives as long as the policy. If there is no memory, returns NULL and
 * sets `no_memory`. */
void *spw_policy_allocate(struct spw_policy_reader *reader, size_t bytes);

/* Frees all memory of a policy. Takes NULL. */
void spw_policy_memory_free(struct spw_policy_memory *memory);

/* Adds a complaint about the text at `offset`. */
void spw_policy_complain(struct spw_policy_reader *reader, size_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Copies the string, number or word at `offset` as it is in the file, truncated if it is long. The
 * copy is always one line. Returns `text`. */
const char *spw_policy_source(const struct spw_policy_reader *reader, size_t offset,
                              char text[SPW_POLICY_SHOWN]);

/* Complains about a bad value: "KEY is VALUE[, WHY], expected EXPECTED (did you mean NEAREST?)".
 * `why` and `nearest` may be NULL. */
void spw_policy_complain_value(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                               struct spw_policy_node node, const char *why, const char *nearest);

/* Reads a value that contains no object into `member`, by the type of its row. */
void spw_policy_read_value(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                           struct spw_policy_node node, void *member);

/* Reads an object, with all objects in it, into the struct of its kind. */
void spw_policy_read_object(struct spw_policy_reader *reader, enum spw_policy_object kind,
                            struct spw_policy_node node, void *object);

/* Checks the keys of an object against each other. `seen` has bit 1 << enum spw_policy_key for
 * every key in the file, including keys with bad values and misspelt keys. */
void spw_policy_check_object(struct spw_policy_reader *reader, enum spw_policy_object kind,
                             struct spw_policy_node node, const void *object, uint64_t seen);

/* Checks rule `number` against the rules before it. Called for each rule in order. */
void spw_policy_check_rule(struct spw_policy_reader *reader, struct spw_policy_node node,
                           const struct spw_policy_rule *rules, size_t number);

/* Returns true if the conditions of a rule on the process and its rank hold (match.c). */
bool spw_policy_concerns(const struct spw_policy_rule *rule,
                         const struct spw_callsite_facts *facts);

/* Returns true if a rule has a condition that differs between allocations of one site (match.c). */
bool spw_policy_asks_request(const struct spw_policy_rule *rule);
