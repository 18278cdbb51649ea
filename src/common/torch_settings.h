/* The text of PyTorch's allocator settings: "key:value,key:[16:2,>:1]". Blanks mean nothing.
 *
 * torch_keys.def gives every key its class. No locks, no allocation; the text is the caller's. */
#pragma once

#include <stddef.h>

/* What tensor mode may do with settings. */
enum spw_torch_verdict {
    SPW_TORCH_OPEN,      /* each key is served by tensor mode or kept, or there is none */
    SPW_TORCH_SAME,      /* they name the backend of tensor mode */
    SPW_TORCH_CHOICE,    /* they hold a key that is the user's choice, such as another backend */
    SPW_TORCH_UNKNOWN,   /* they hold a key that is not in torch_keys.def */
    SPW_TORCH_MALFORMED, /* they are not of the form above */
};

enum { SPW_TORCH_NAME = 48, SPW_TORCH_QUOTE = 128, SPW_TORCH_ANSWER = 512 };

/* The verdict; the key that decided it, cut to fit, or "" when there is none. */
enum spw_torch_verdict spw_torch_settings_judge(const char *text, char ret_key[SPW_TORCH_NAME]);

/* Writes the settings that tensor mode puts in the place of `text`: the backend, and each entry of
 * `text` that concerns page-locked memory. Entries that no longer fit are left out. */
void spw_torch_settings_replace(const char *text, char ret_answer[SPW_TORCH_ANSWER]);
