/* Policies: files that say what becomes of the memory of a call site. The language is keys.def and
 * policies/README.md.
 *
 * A policy is loaded whole or not at all, and only read from then on: any number of threads may ask
 * it, without a lock; asking allocates nothing. What is asked about a site as such (frames, thread,
 * process) is answered once per site by spw_policy_candidates, for the caller to keep with the
 * site; what differs between its allocations (size, device, API, count) by spw_policy_decide.
 *
 * Pure: no environment, no CUDA. cJSON comes in by a table of functions (json.h), because the
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
    SPW_POLICY_RULES = 64,               /* what a set of candidates has room for */
    SPW_POLICY_LIST_ITEMS = 64,          /* most items of any other list */
    SPW_POLICY_FILE_BYTES = 1024 * 1024, /* largest file */
    SPW_POLICY_NO_RULE = -1
};

/* Any of these; count 0: the file does not say. */
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

/* Any of these objects; their type follows from the key. */
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

/* The objects of a file. A member is what the key of its row in keys.def holds; words and switches
 * are 0 where the file does not say. */
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
    struct spw_policy_globs node;
    struct spw_policy_list size; /* struct spw_policy_size */
    struct spw_policy_ranges device;
    struct spw_policy_globs api;
    struct spw_policy_globs process;
    struct spw_policy_ranges rank;
    struct spw_policy_ranges nth;
};

struct spw_policy_limit {
    struct spw_policy_amount max; /* not set: no limit */
    int then;                     /* enum spw_policy_then */
};

/* A decision: what becomes of the blocks of a rule. */
struct spw_policy_action {
    int placement; /* enum spw_policy_placement */
    int movable;   /* enum spw_policy_switch */
    struct spw_policy_number priority;
    struct spw_policy_limit limit;
    struct spw_policy_amount host_share; /* a percentage */
    const char *region;                  /* NULL: the common one */
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
    uint64_t certain; /* bit i: rule i asks only for facts of sites */
    bool uses_python; /* whether any rule asks for Python frames */
    bool uses_native; /* or for native ones, or the node, which follows from them */
    struct spw_policy_memory *memory;
};

/* Something wrong with a file. */
struct spw_policy_complaint {
    size_t offset; /* in bytes */
    size_t line;   /* from 1; 1:1 where there is no place */
    size_t column; /* characters, from 1 */
    char *text;    /* what, expected, nearest valid key; one line */
};

/* All that is wrong with a file, by place. */
struct spw_policy_complaints {
    struct spw_policy_complaint *items;
    size_t count;
};

/* Reads the text of a policy. NULL, with a complaint for everything that is wrong with it; without
 * any when there is no memory. Policy and complaints are the caller's to free, the text is not
 * kept. */
struct spw_policy *spw_policy_parse(const char *text, size_t length, const struct spw_json *json,
                                    struct spw_policy_complaints *ret_complaints);

/* Reads a file, likewise. */
struct spw_policy *spw_policy_load(const char *path, const struct spw_json *json,
                                   struct spw_policy_complaints *ret_complaints);

/* Frees a policy; NULL is fine. Nobody may use it any more. */
void spw_policy_destroy(struct spw_policy *policy);

/* Frees complaints. */
void spw_policy_complaints_fini(struct spw_policy_complaints *complaints);

/* The rules that may decide allocations of this site, bit i for rule i; to be kept with the site.
 * 0: none ever does. */
uint64_t spw_policy_candidates(const struct spw_policy *policy,
                               const struct spw_callsite_facts *site);

/* Whether the rules that may decide are not known without the native frames and the node of a site,
 * which `site` need not have. */
bool spw_policy_needs_native(const struct spw_policy *policy,
                             const struct spw_callsite_facts *site);

/* The index of the rule that decides this allocation, or SPW_POLICY_NO_RULE; `candidates` are those
 * of its site. */
int spw_policy_decide(const struct spw_policy *policy, uint64_t candidates,
                      const struct spw_request_facts *request);

/* The first key of a rule's match, in the order of keys.def, that this allocation does not satisfy;
 * NULL when the rule matches. */
const struct spw_policy_row *spw_policy_mismatch(const struct spw_policy_rule *rule,
                                                 const struct spw_callsite_facts *site,
                                                 const struct spw_request_facts *request);
