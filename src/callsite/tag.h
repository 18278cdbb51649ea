/* The tag of a thread: a word that the program gives the thread. The tag becomes a part of the call
 * sites of all memory that the thread asks for. PyTorch's backward threads have their own tags.
 *
 * Locking: none; a tag belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Bytes of a tag, including the zero byte at its end. */
enum { SPW_CALLSITE_TAG = 64 };

struct spw_callsite_tag {
    uint64_t hash; /* 0: no tag */
    char name[SPW_CALLSITE_TAG];
};

/* The calling thread's tag. A new thread has none. */
extern _Thread_local struct spw_callsite_tag spw_callsite_this_tag
    __attribute__((tls_model("initial-exec")));

/* Gives the calling thread a tag, which replaces an earlier one. NULL or "" removes the tag. If the
 * name does not fit, is not UTF-8, or has a control character, returns false and changes
 * nothing. */
bool spw_callsite_tag_set(const char *name);
