/* Policies: JSON files with rules for the memory of call sites, and the one in force. It does not
 * know devices.
 *
 *   check      checks that involve several keys or rules
 *   complain   messages about a policy, each with its place in the file
 *   decision   the rule that matches an allocation, and the placement it asks for
 *   find       the paths of installed policies
 *   glob       matches names with patterns
 *   json       cJSON's functions, linked or loaded
 *   keys       the keys of the language, one row for each
 *   load       reads and destroys policies
 *   match      the conditions of rules on a site and on one allocation
 *   open       reads the policy file of this process, once
 *   parse      reads the objects of a file by the table of keys
 *   policy     the rules as structs, and the questions about them
 *   reader     what the parts of the parser share
 *   scan       a strict syntax check, which notes the place of every value
 *   state      the policy in force
 *   table      the keys as tables, for the parser, the schema and the documents
 *   values     reads values: numbers, sizes, words, lists
 *
 * The language is defined by keys.def and explained in policies/README.md.
 *
 * A policy is loaded as a whole or not at all. After that it is only read, so any number of threads
 * may ask it without a lock; asking allocates nothing. Questions about a site (frames, thread,
 * process) are answered once, by spw_policy_candidates, and the caller keeps the answer with the
 * site. Questions about one allocation (size, device, API, count) are answered by
 * spw_policy_decide.
 *
 * Pure: no environment, no CUDA. cJSON comes as a table of functions (json.h), because the
 * preloaded object does not link it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/text.h"
#include "policy/glob.h"
#include "policy/json.h"
#include "policy/table.h"

enum {
    SPW_POLICY_RULES = 64,               /* most rules: bits of a set of candidates */
    SPW_POLICY_LIST_ITEMS = 64,          /* most items of any other list */
    SPW_POLICY_FILE_BYTES = 1024 * 1024, /* largest file */
    SPW_POLICY_NO_RULE = -1
};

/* One of these must match; count 0: the key is not in the file. */
struct spw_policy_globs {
    const struct spw_glob *items;
    size_t count;
};

struct spw_policy_range {
    int64_t first;
    int64_t last; /* INT64_MAX: no end */
};

struct spw_policy_ranges {
    const struct spw_policy_range *items;
    size_t count;
};

/* One of these objects must match; the key determines their type. */
struct spw_policy_list {
    const void *items;
    size_t count;
};

/* A size in bytes or, when `percent` is set, in permille of something. */
struct spw_policy_amount {
    bool set;
    bool percent;
    uint64_t bytes;
    uint32_t permille;
};

struct spw_policy_number {
    bool set;
    int64_t value;
};

/* The objects of a file. A row of keys.def names a key and the member that holds the key's value.
 * Words and switches are 0 when the key is not in the file. */
struct spw_policy_python {
    struct spw_policy_globs file;
    struct spw_policy_globs function;
    struct spw_policy_ranges lines;
    int frame; /* enum spw_policy_frame_word */
};

struct spw_policy_native {
    struct spw_policy_globs symbol;
    struct spw_policy_globs library;
    int frame;
};

struct spw_policy_size {
    struct spw_policy_amount min;
    struct spw_policy_amount max;
};

struct spw_policy_match {
    struct spw_policy_list python; /* struct spw_policy_python */
    struct spw_policy_list native; /* struct spw_policy_native */
    struct spw_policy_globs thread;
    struct spw_policy_globs tag;
    struct spw_policy_globs node;
    struct spw_policy_globs module_class;
    struct spw_policy_globs module;
    struct spw_policy_list size; /* struct spw_policy_size */
    struct spw_policy_ranges device;
    struct spw_policy_globs api;
    struct spw_policy_globs process;
    struct spw_policy_ranges rank;
    struct spw_policy_ranges nth;
    struct spw_policy_ranges nth_in_step;
};

struct spw_policy_limit {
    struct spw_policy_amount max; /* not set: no limit */
    int then;                     /* enum spw_policy_then */
};

/* The action of a rule. */
struct spw_policy_action {
    int placement; /* enum spw_policy_placement */
    int movable;   /* enum spw_policy_switch */
    struct spw_policy_number priority;
    struct spw_policy_limit limit;
    struct spw_policy_amount host_share; /* a percentage */
    const char *region;                  /* NULL: the common region */
    int commit;                          /* enum spw_policy_commit */
    int log;                             /* enum spw_policy_switch */
};

struct spw_policy_rule {
    const char *name;
    struct spw_policy_list comment; /* const char *, a line each */
    struct spw_policy_match match;
    struct spw_policy_action action;
    size_t line; /* of the file */
};

struct spw_policy_file {
    struct spw_policy_list schema; /* const char * */
    struct spw_policy_number version;
    struct spw_policy_list comment; /* const char *, a line each */
    struct spw_policy_list rules;   /* struct spw_policy_rule */
};

struct spw_policy_memory;

/* A loaded policy. */
struct spw_policy {
    struct spw_policy_file file;
    const struct spw_policy_rule *rules;
    size_t rule_count;
    uint64_t certain; /* bit i: rule i has no condition on single allocations */
    bool uses_python; /* a rule needs Python frames: for a condition on them or on modules */
    bool uses_native; /* a rule needs native frames: for a condition on them or on the node */
    bool uses_tags;   /* a rule has a condition on tags */
    struct spw_policy_memory *memory;
};

/* A mistake in a file. */
struct spw_policy_complaint {
    size_t offset; /* in bytes */
    size_t line;   /* from 1; 1:1 when the mistake has no place */
    size_t column; /* characters, from 1 */
    char *text;    /* one line: the problem, the expectation, the nearest key */
};

/* All mistakes of a file, in the order of the text. */
struct spw_policy_complaints {
    struct spw_policy_complaint *items;
    size_t count;
};

/* Parses the text of a policy. Returns NULL, with every mistake in *ret_complaints, when it is not
 * valid; NULL without complaints when there is no memory. The caller frees policy and complaints;
 * the text is not kept. */
struct spw_policy *spw_policy_parse(const char *text, size_t length, const struct spw_json *json,
                                    struct spw_policy_complaints *ret_complaints);

/* Reads and parses a file; otherwise like spw_policy_parse. */
struct spw_policy *spw_policy_load(const char *path, const struct spw_json *json,
                                   struct spw_policy_complaints *ret_complaints);

/* Frees a policy; NULL is fine. */
void spw_policy_destroy(struct spw_policy *policy);

/* Frees complaints. */
void spw_policy_complaints_fini(struct spw_policy_complaints *complaints);

/* The rules that can match allocations of this site: bit i for rule i. The caller keeps the result
 * with the site. 0: no rule ever does. */
uint64_t spw_policy_candidates(const struct spw_policy *policy,
                               const struct spw_callsite_facts *site);

/* Returns true when the candidates depend on native frames or the node. `site` may lack them, so
 * that the caller can avoid looking up symbols. */
bool spw_policy_needs_native(const struct spw_policy *policy,
                             const struct spw_callsite_facts *site);

/* The index of the first matching rule, or SPW_POLICY_NO_RULE. `candidates` is the result of
 * spw_policy_candidates for the allocation's site. */
int spw_policy_decide(const struct spw_policy *policy, uint64_t candidates,
                      const struct spw_request_facts *request);

/* The first key of a rule's `match`, in the order of keys.def, that the allocation does not
 * satisfy; NULL when the rule matches. */
const struct spw_policy_row *spw_policy_mismatch(const struct spw_policy_rule *rule,
                                                 const struct spw_callsite_facts *site,
                                                 const struct spw_request_facts *request);
