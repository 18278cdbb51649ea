/* The tag of a thread: a word of the program's, which the call sites of all memory have that the
 * thread asks for. PyTorch's backward threads are threads of their own.
 *
 * Locking: none; a tag belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Bytes of a tag, with the zero byte at its end. */
enum { SPW_CALLSITE_TAG = 64 };

struct spw_callsite_tag {
    uint64_t hash; /* 0: there is no tag */
    char name[SPW_CALLSITE_TAG];
};

/* Of the calling thread; empty at its begin. */
extern _Thread_local struct spw_callsite_tag spw_callsite_this_tag
    __attribute__((tls_model("initial-exec")));

/* Gives the calling thread a tag, which replaces an earlier one; NULL and "" end it. False, with
 * nothing changed, when the name is too long or not UTF-8, or has a control character. */
bool spw_callsite_tag_set(const char *name);
