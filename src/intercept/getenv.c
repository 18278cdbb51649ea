/* The exported getenv. It selects PyTorch's allocator backend where the user leaves that open.
 *
 * PyTorch reads its two allocator variables while libc10_cuda is loaded. Where tensor mode may
 * serve it, both read as the backend that calls the driver for every tensor, with the user's
 * settings of page-locked memory. The environment is not changed, and every other name costs a
 * comparison of two characters.
 *
 * PyTorch 2.8 and older read PYTORCH_CUDA_ALLOC_CONF only; later ones read PYTORCH_ALLOC_CONF if
 * that is not set. So the older name is in force, and where spillway answers, a name that is not
 * set reads as the other one does.
 *
 * A sanitizer's runtime calls getenv before it has started, so this file is compiled without a
 * sanitizer. No locks. */
#include "common/torch_settings.h"
#include "driver/dl.h"
#include "track/process.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char new_name[] = "PYTORCH_ALLOC_CONF";
static const char old_name[] = "PYTORCH_CUDA_ALLOC_CONF";

typedef char *getenv_function(const char *name);

static _Atomic(getenv_function *) real_getenv;

static getenv_function *find_real(void)
{
    getenv_function *found =
        (getenv_function *)(uintptr_t)spw_driver_dl_symbol(RTLD_NEXT, "getenv");

    atomic_store_explicit(&real_getenv, found, memory_order_relaxed);
    return found;
}

static inline getenv_function *real(void)
{
    getenv_function *known = atomic_load_explicit(&real_getenv, memory_order_relaxed);

    return SPW_LIKELY(known != NULL) ? known : find_real();
}

/* Reads a variable. One that is set to nothing holds no settings: NULL. */
static const char *settings_of(const char *name)
{
    const char *text = real()(name);

    return text != NULL && text[strspn(text, " ,")] != '\0' ? text : NULL;
}

/* The user's settings. */
struct settings {
    const char *old_text; /* NULL: none */
    const char *new_text;
    const char *in_force;           /* one of them, or "" */
    enum spw_torch_verdict verdict; /* of both */
    bool new_decides;               /* the verdict is that of new_text */
    char key[SPW_TORCH_NAME];       /* that decides it */
};

/* Settings are open if neither variable holds anything else. Of the one that is not in force, the
 * backend of tensor mode is nothing else. */
static void read_settings(struct settings *ret_settings)
{
    struct settings *found = ret_settings;
    enum spw_torch_verdict other;

    *found = (struct settings){
        .old_text = settings_of(old_name), .new_text = settings_of(new_name), .in_force = ""};
    found->new_decides = found->old_text == NULL;
    if (found->old_text != NULL || found->new_text != NULL) {
        found->in_force = found->old_text != NULL ? found->old_text : found->new_text;
        found->verdict = spw_torch_settings_judge(found->in_force, found->key);
    }
    if (found->verdict == SPW_TORCH_OPEN && found->old_text != NULL && found->new_text != NULL) {
        other = spw_torch_settings_judge(found->new_text, found->key);
        if (other != SPW_TORCH_OPEN && other != SPW_TORCH_SAME) {
            found->verdict = other;
            found->new_decides = true;
        }
    }
}

/* Chooses the answer that PyTorch gets. */
static enum spw_torch_answer choose(const struct settings *settings)
{
    int mode = spw_option_get(SPW_OPT_SPILLWAY_MODE, NULL, 0).word;

    if (spw_track_off() || (mode != SPW_MODE_TENSOR && mode != SPW_MODE_AUTO)) {
        return SPW_TORCH_OBEYED;
    }
    if (settings->verdict == SPW_TORCH_OPEN) {
        return settings->in_force[0] == '\0' ? SPW_TORCH_UNSET : SPW_TORCH_REPLACED;
    }
    return mode == SPW_MODE_TENSOR && settings->verdict != SPW_TORCH_SAME ? SPW_TORCH_OVERRIDDEN
                                                                          : SPW_TORCH_OBEYED;
}

/* Notes the answer for the messages about the mode. */
static void note(const struct settings *settings, enum spw_torch_answer answer)
{
    struct spw_torch *torch = &spw_process.torch;
    const char *text = settings->new_decides ? settings->new_text : settings->old_text;
    bool cut = text != NULL && strlen(text) >= sizeof(torch->text);

    if (atomic_load(&torch->answer) == (int)answer) {
        return;
    }
    torch->verdict = settings->verdict;
    torch->name = settings->new_decides ? new_name : old_name;
    memcpy(torch->key, settings->key, sizeof(torch->key));
    (void)snprintf(torch->text, sizeof(torch->text), "%.*s%s",
                   (int)sizeof(torch->text) - (cut ? 4 : 1), text != NULL ? text : "",
                   cut ? "..." : "");
    atomic_store(&torch->answer, answer);
}

/* Returns a copy of `answer` that lives as long as the process. The answers of a process are few:
 * beyond the table, the last one is given. */
static char *keep(const char *answer)
{
    static _Atomic(char *) kept[8];
    enum { MOST = sizeof(kept) / sizeof(kept[0]) };
    char *copy = NULL;

    for (int i = 0; i < MOST; i++) {
        char *present = atomic_load(&kept[i]);

        if (present == NULL) {
            copy = copy != NULL ? copy : strdup(answer);
            if (copy == NULL || atomic_compare_exchange_strong(&kept[i], &present, copy)) {
                return copy;
            }
        }
        if (strcmp(present, answer) == 0) {
            free(copy);
            return present;
        }
    }
    free(copy);
    return atomic_load(&kept[MOST - 1]);
}

static char *answer_torch(const char *name)
{
    char answer[SPW_TORCH_ANSWER];
    enum spw_torch_answer chosen;
    struct settings settings;
    const char *own;

    read_settings(&settings);
    chosen = choose(&settings);
    note(&settings, chosen);
    if (chosen == SPW_TORCH_OBEYED) {
        return real()(name);
    }
    own = strcmp(name, old_name) == 0 ? settings.old_text : settings.new_text;
    spw_torch_settings_replace(own != NULL ? own : settings.in_force, answer);
    return keep(answer);
}

SPW_EXPORT char *getenv(const char *name)
{
    if (SPW_UNLIKELY(name[0] == 'P' && name[1] == 'Y') &&
        (strcmp(name, new_name) == 0 || strcmp(name, old_name) == 0)) {
        return answer_torch(name);
    }
    return real()(name);
}
