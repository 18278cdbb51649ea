/* Interned strings: each text is stored once, for good, and has a small number.
 *
 * Bounded: when the space is used up, new texts become the empty one. Nothing moves or is freed, so
 * numbers and texts stay valid for the life of the process. Locking: the caller serialises
 * interning; spw_callsite_strings_text takes no lock and may run at the same time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spw_strings {
    char *base;        /* the texts, each behind its length */
    uint32_t *slots;   /* numbers, by hash; 0: free */
    uint32_t used;     /* bytes */
    uint32_t capacity; /* bytes */
    uint32_t slot_mask;
    uint32_t count;
};

/* Reserves room for `bytes` of text and `slots` texts (a power of two). Memory is committed when it
 * is touched. Returns false when no address space is available. */
bool spw_callsite_strings_init(struct spw_strings *strings, uint32_t bytes, uint32_t slots);
void spw_callsite_strings_fini(struct spw_strings *strings);

/* Returns the number of a text of `length` bytes, which may have any values. 0 for the empty text,
 * and for a new text when there is no room. */
uint32_t spw_callsite_strings_intern(struct spw_strings *strings, const void *text, size_t length);

/* The text of a number, terminated with a zero byte. */
const char *spw_callsite_strings_text(const struct spw_strings *strings, uint32_t number);
