/* Interned strings: each text is kept once, for good, and named by a small number.
 *
 * Bounded: when the space is used up, what is new becomes the empty text. Nothing ever moves or
 * goes, so a number and a text stay valid as long as the process (or the object) lives.
 * Locking: adding is the caller's to serialise; spw_callsite_strings_text takes no lock and may run
 * beside it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spw_strings {
    char *base;        /* of the texts; each is preceded by its length */
    uint32_t *slots;   /* numbers, by hash; 0 is free */
    uint32_t used;     /* bytes */
    uint32_t capacity; /* bytes */
    uint32_t slot_mask;
    uint32_t count;
};

/* Room for `bytes` of texts and `slots` of them (a power of two); pages are taken when they are
 * touched. False when the addresses cannot be had. */
bool spw_callsite_strings_init(struct spw_strings *strings, uint32_t bytes, uint32_t slots);
void spw_callsite_strings_fini(struct spw_strings *strings);

/* The number of a text of `length` bytes, which need not be text; 0 for the empty one, and for a
 * new one without room. */
uint32_t spw_callsite_strings_intern(struct spw_strings *strings, const void *text, size_t length);

/* The text of a number, terminated with a zero byte. */
const char *spw_callsite_strings_text(const struct spw_strings *strings, uint32_t number);
