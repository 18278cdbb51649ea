/* The exported dlsym.
 *
 * glibc looks at the return address to find out who asks: RTLD_NEXT and RTLD_DEFAULT depend on it.
 * So what is not ours reaches the real function by a jump, with the caller's return address in
 * place; which function to jump to is decided from handle and name alone. */
#include "driver/dl.h"
#include "driver/driver.h"
#include "hook/entry.h"
#include "hook/hook.h"
#include "hook/resolve.h"
#include "hook/runtime.h"

#include <dlfcn.h>
#include <stddef.h>

void *spw_dlsym_route(void *handle, const char *name);

/* clang-format off */
__asm__(
    ".text\n"
    ".globl dlsym\n"
    ".type dlsym, %function\n"
    "dlsym:\n"
    ".cfi_startproc\n"
#if defined(__x86_64__)
    "    push %rdi\n"
    "    .cfi_adjust_cfa_offset 8\n"
    "    push %rsi\n"
    "    .cfi_adjust_cfa_offset 8\n"
    "    sub $8, %rsp\n"
    "    .cfi_adjust_cfa_offset 8\n"
    "    call spw_dlsym_route\n"
    "    add $8, %rsp\n"
    "    .cfi_adjust_cfa_offset -8\n"
    "    pop %rsi\n"
    "    .cfi_adjust_cfa_offset -8\n"
    "    pop %rdi\n"
    "    .cfi_adjust_cfa_offset -8\n"
    "    jmp *%rax\n"
#elif defined(__aarch64__)
    "    stp x29, x30, [sp, #-32]!\n"
    "    .cfi_adjust_cfa_offset 32\n"
    "    .cfi_rel_offset x29, 0\n"
    "    .cfi_rel_offset x30, 8\n"
    "    stp x0, x1, [sp, #16]\n"
    "    bl spw_dlsym_route\n"
    "    mov x16, x0\n"
    "    ldp x0, x1, [sp, #16]\n"
    "    ldp x29, x30, [sp], #32\n"
    "    .cfi_adjust_cfa_offset -32\n"
    "    .cfi_restore x29\n"
    "    .cfi_restore x30\n"
    "    br x16\n"
#else
#error "dlsym needs a jump in this architecture's assembly"
#endif
    ".cfi_endproc\n"
    ".size dlsym, .-dlsym\n");
/* clang-format on */

/* Whether a name can be of the driver or the runtime: cuMemAlloc, cudaMalloc. */
static bool is_cuda_name(const char *name)
{
    if (name == NULL || name[0] != 'c' || name[1] != 'u') {
        return false;
    }
    return (name[2] >= 'A' && name[2] <= 'Z') || (name[2] == 'd' && name[3] == 'a');
}

/* What comes behind us under a name, for a caller that found our own entry, which stands in front
 * of all libraries. NULL, with the message for dlerror, where there is no driver or runtime. */
static void *behind_us(const char *name, const void *caller)
{
    void *found = spw_dl_symbol(RTLD_NEXT, name);

    if (found == NULL) {
        found = spw_dl_symbol_for(caller, name);
    }
    return found != NULL ? found : spw_dl_symbol(RTLD_NEXT, name);
}

/* Entered by the jump above, so that the return address is the program's. */
static void *substituting_dlsym(void *handle, const char *name)
{
    const void *caller = __builtin_return_address(0);
    void *found = spw_dl_symbol(handle, name);
    enum spw_fn fn;

    if (found != NULL && spw_entry_find(found) != SPW_FN_COUNT) {
        void *next = behind_us(name, caller);

        return next == NULL || spw_hook_off() ? next : found;
    }
    if (found == NULL || spw_hook_off()) {
        return found;
    }
    if (name[2] == 'd') {
        fn = spw_driver_row(name);
        return fn == SPW_FN_COUNT ? found : spw_runtime_substitute(fn, found);
    }
    return spw_resolve(found, name);
}

void *spw_dlsym_route(void *handle, const char *name)
{
    /* A name out of the list asked of the default scope goes straight through too: only the real
     * function, jumped to, searches the caller's own scope. */
    if (SPW_LIKELY(!is_cuda_name(name)) || handle == RTLD_NEXT || spw_driver_inside() ||
        (handle == RTLD_DEFAULT && spw_driver_row(name) == SPW_FN_COUNT)) {
        return spw_dl_symbol_address();
    }
    return (void *)(uintptr_t)substituting_dlsym;
}
