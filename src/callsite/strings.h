/* Interned strings: each text is stored once, is never removed, and has a small number.
 *
 * The space is bounded. When it is used up, the empty text takes the place of new texts. Nothing
 * moves or is freed, so numbers and texts stay valid for the life of the process. Locking: the
 * caller serialises interning. spw_callsite_strings_text takes no lock and may run at the same
 * time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spw_strings {
    char *base;        /* the texts, each preceded by its length */
    uint32_t *slots;   /* numbers, by hash; 0: unused slot */
    uint32_t used;     /* bytes used */
    uint32_t capacity; /* size in bytes */
    uint32_t slot_mask;
    uint32_t count;
};

/* Reserves room for `bytes` of text and `slots` texts (a power of two). Memory is committed when it
 * is first accessed. Returns false if no address space is available. */
bool spw_callsite_strings_init(struct spw_strings *strings, uint32_t bytes, uint32_t slots);
void spw_callsite_strings_fini(struct spw_strings *strings);

/* Returns the number of a text of `length` bytes, which may have any values. Returns 0 for the
 * empty text, and for a new text if there is no room. */
uint32_t spw_callsite_strings_intern(struct spw_strings *strings, const void *text, size_t length);

/* Returns the text with a number, terminated by a zero byte. */
const char *spw_callsite_strings_text(const struct spw_strings *strings, uint32_t number);
