/* The exported dlsym and dlvsym.
 *
 * glibc takes the caller from the return address: RTLD_NEXT and RTLD_DEFAULT depend on it. So a
 * look-up that does not concern spillway is a jump (a tail call) to the real function, which leaves
 * the return address in place. Handle and name alone decide where to jump.
 *
 * A sanitizer's runtime calls these functions before it has started, so this file is compiled
 * without a sanitizer, and calls nothing that a sanitizer replaces unless a name may be in the
 * list. No locks. */
#include "companion/companion.h"
#include "driver/dl.h"
#include "driver/driver.h"
#include "intercept/entry.h"
#include "intercept/library.h"
#include "intercept/resolve.h"
#include "process/process.h"

#include <dlfcn.h>
#include <stddef.h>

/* The function that a call of dlsym, or of dlvsym, jumps to. Called by the assembly below. */
void *spw_intercept_dlsym_route(void *handle, const char *name);
void *spw_intercept_dlvsym_route(void *handle, const char *name);

/* glibc has two versions of these functions: the default one, and this one. */
#if defined(__x86_64__)
#    define SPW_OLD_VERSION "GLIBC_2.2.5"
#else
#    define SPW_OLD_VERSION "GLIBC_2.17"
#endif

/* Defines the function `name`, in both versions: calls `route` with its own arguments, restores
 * them and jumps to the address that `route` returned. */
/* clang-format off */
#define SPW_VERSION(name, prefix, version)                                                         \
    ".globl " prefix name "\n"                                                                     \
    ".type " prefix name ", %function\n"                                                           \
    ".set " prefix name ", spw_" name "\n"                                                         \
    ".symver " prefix name ", " name version ", remove\n"
#define SPW_FUNCTION_BEGIN(name)                                                                   \
    ".text\n"                                                                                      \
    ".type spw_" name ", %function\n"                                                              \
    "spw_" name ":\n"                                                                              \
    ".cfi_startproc\n"
#define SPW_FUNCTION_END(name)                                                                     \
    ".cfi_endproc\n"                                                                               \
    ".size spw_" name ", .-spw_" name "\n"                                                         \
    SPW_VERSION(name, "spw_new_", "@@GLIBC_2.34")                                                  \
    SPW_VERSION(name, "spw_old_", "@" SPW_OLD_VERSION)
#if defined(__x86_64__)
#define SPW_JUMP(name, route)                                                                      \
    __asm__(SPW_FUNCTION_BEGIN(name)                                                               \
            "    push %rdi\n"                                                                      \
            "    .cfi_adjust_cfa_offset 8\n"                                                       \
            "    push %rsi\n"                                                                      \
            "    .cfi_adjust_cfa_offset 8\n"                                                       \
            "    push %rdx\n"                                                                      \
            "    .cfi_adjust_cfa_offset 8\n"                                                       \
            "    call " route "\n"                                                                 \
            "    pop %rdx\n"                                                                       \
            "    .cfi_adjust_cfa_offset -8\n"                                                      \
            "    pop %rsi\n"                                                                       \
            "    .cfi_adjust_cfa_offset -8\n"                                                      \
            "    pop %rdi\n"                                                                       \
            "    .cfi_adjust_cfa_offset -8\n"                                                      \
            "    jmp *%rax\n"                                                                      \
            SPW_FUNCTION_END(name))
#elif defined(__aarch64__)
#define SPW_JUMP(name, route)                                                                      \
    __asm__(SPW_FUNCTION_BEGIN(name)                                                               \
            "    stp x29, x30, [sp, #-48]!\n"                                                      \
            "    .cfi_adjust_cfa_offset 48\n"                                                      \
            "    .cfi_rel_offset x29, 0\n"                                                         \
            "    .cfi_rel_offset x30, 8\n"                                                         \
            "    stp x0, x1, [sp, #16]\n"                                                          \
            "    str x2, [sp, #32]\n"                                                              \
            "    bl " route "\n"                                                                   \
            "    mov x16, x0\n"                                                                    \
            "    ldr x2, [sp, #32]\n"                                                              \
            "    ldp x0, x1, [sp, #16]\n"                                                          \
            "    ldp x29, x30, [sp], #48\n"                                                        \
            "    .cfi_adjust_cfa_offset -48\n"                                                     \
            "    .cfi_restore x29\n"                                                               \
            "    .cfi_restore x30\n"                                                               \
            "    br x16\n"                                                                         \
            SPW_FUNCTION_END(name))
#else
#error "dlsym needs a jump in this architecture's assembly"
#endif

SPW_JUMP("dlsym", "spw_intercept_dlsym_route");
SPW_JUMP("dlvsym", "spw_intercept_dlvsym_route");
#undef SPW_JUMP
#undef SPW_FUNCTION_BEGIN
#undef SPW_VERSION
#undef SPW_FUNCTION_END
/* clang-format on */

/* False for names that cannot be in the list, by the first letters. Names in the list begin like
 * cuMemAlloc, cudaMalloc, ncclCommRegister, ibv_reg_mr or gdr_pin_buffer. */
static bool may_be_listed(const char *name)
{
    switch (name == NULL ? '\0' : name[0]) {
    case 'c':
        return name[1] == 'u' &&
               ((name[2] >= 'A' && name[2] <= 'Z') || (name[2] == 'd' && name[3] == 'a'));
    case 'n':
        return name[1] == 'c' && name[2] == 'c' && name[3] == 'l';
    case 'i':
        return name[1] == 'b' && name[2] == 'v' && name[3] == '_';
    case 'g':
        return name[1] == 'd' && name[2] == 'r' && name[3] == '_';
    default:
        return false;
    }
}

/* True for names of NVIDIA's driver and its management library, by the first letters. */
static bool is_nvidia(const char *name)
{
    switch (name == NULL ? '\0' : name[0]) {
    case 'c':
        return name[1] == 'u';
    case 'n':
        return name[1] == 'v' && name[2] == 'm' && name[3] == 'l';
    default:
        return false;
    }
}

/* The real function `name`, for a caller whose look-up found our entry, which precedes all
 * libraries. NULL if there is none; then dlerror has the message. */
static void *behind_us(const char *name, const void *caller)
{
    void *found = spw_driver_dl_symbol_next(name);

    if (found == NULL) {
        found = spw_driver_dl_symbol_for(caller, name);
    }
    return found != NULL ? found : spw_driver_dl_symbol(RTLD_NEXT, name);
}

/* The function that the caller gets for the real function at `found`. */
static void *substitute(void *found, const char *name)
{
    enum spw_fn fn = spw_driver_row(name);

    return fn != SPW_FN_COUNT && spw_intercept_library_has(fn)
               ? spw_intercept_library_substitute(fn, found)
               : spw_intercept_resolve(found, name);
}

/* Asks the dlsym of an interposer behind us, which the program would call without us. Returns
 * `found` if that dlsym has no answer. */
static void *by_hook(void *handle, const char *name, void *found)
{
    void *(*hook)(void *, const char *) =
        (void *(*)(void *, const char *))(uintptr_t)spw_driver_dl_hook();
    void *answer = hook != NULL && is_nvidia(name) ? hook(handle, name) : NULL;

    return answer != NULL ? answer : found;
}

/* dlsym for names that may be in the list. Entered by the jump above, so the return address is the
 * program's. */
static void *substituting_dlsym(void *handle, const char *name)
{
    const void *caller = __builtin_return_address(0);
    void *found = spw_driver_dl_symbol(handle, name);
    void *replaced;

    if (found != NULL && spw_intercept_entry_find(found) != SPW_FN_COUNT) {
        void *next = behind_us(name, caller);

        return next == NULL || spw_process_off() || spw_driver_dl_is_behind(caller) ? next : found;
    }
    replaced = found == NULL || spw_process_off() ? found : substitute(found, name);
    /* An interposer behind us gets the real function. (Interposers are known once the driver is
     * loaded.) */
    if (spw_driver_dl_is_behind(caller)) {
        return found;
    }
    return replaced == found && found != NULL ? by_hook(handle, name, found) : replaced;
}

/* dlvsym for names that may be in the list. Our entries have no versions; they replace the current
 * version of a function only. */
static void *substituting_dlvsym(void *handle, const char *name, const char *version)
{
    const void *caller = __builtin_return_address(0);
    void *current = spw_driver_dl_symbol(handle, name);
    void *found;

    if (current != NULL && spw_intercept_entry_find(current) != SPW_FN_COUNT) {
        current = behind_us(name, caller);
    }
    /* This look-up is the last one, so that dlerror has its error. */
    found = spw_driver_dl_symbol_version(handle, name, version);
    return found == NULL || found != current || spw_process_off() ? found : substitute(found, name);
}

/* True for look-ups that do not concern spillway. */
static bool passes(void *handle, const char *name)
{
    return SPW_LIKELY(!may_be_listed(name)) || handle == RTLD_NEXT || spw_driver_inside();
}

/* A look-up in the default scope also goes to the real function, if its name is not in the list.
 * The real function finds the caller's scope by the return address of the caller. */
void *spw_intercept_dlsym_route(void *handle, const char *name)
{
    void *hook = NULL;

    if (SPW_UNLIKELY(name != NULL && spw_companion_is_cue(name))) {
        spw_companion_enter();
    }
    if (!passes(handle, name) && (handle != RTLD_DEFAULT || spw_driver_row(name) != SPW_FN_COUNT)) {
        return (void *)(uintptr_t)substituting_dlsym;
    }
    if (is_nvidia(name) && handle != RTLD_NEXT && !spw_driver_inside()) {
        hook = spw_driver_dl_hook();
    }
    return hook != NULL ? hook : spw_driver_dl_symbol_address();
}

/* In the default scope every name goes to the real function, since our entries have no versions. */
void *spw_intercept_dlvsym_route(void *handle, const char *name)
{
    return passes(handle, name) || handle == RTLD_DEFAULT ? spw_driver_dl_symbol_version_address()
                                                          : (void *)(uintptr_t)substituting_dlvsym;
}
