/* Calls of C++ functions that return an object in memory, in both directions.
 *
 * The C form of such a function gets the object's address as its first argument, and returns it.
 * The ABI of C++ on x86-64 has the same form. On aarch64, the address is in the register x8, which
 * no argument of C uses, and other registers hold the arguments.
 *
 *   SPW_TORCH_CALL(function, code, ret, ...)  calls the C++ function `code`, whose C form has the
 *                                             type of `function`
 *   SPW_TORCH_RETURNS(function)               is needed once, after the definition of `function`
 *   SPW_TORCH_ENTRY(function)                 the address to which C++ calls `function`
 *
 * No frames are added, so exceptions and return addresses pass. A C++ function has at most six
 * words of arguments, and `function` at most five without its first argument. */
#pragma once

#include <stdbool.h>

/* The type of any function; cast it before the call. */
typedef void spw_torch_code(void);

#if defined(__aarch64__)

static const bool spw_torch_returns_are_known = true;

/* Calls `code` with the arguments that follow it, and with `ret` in x8. */
void spw_torch_call_returning(void *ret, spw_torch_code *code, ...);

#    define SPW_TORCH_CALL(function, code, ret, ...)                                               \
        spw_torch_call_returning(ret, (spw_torch_code *)(code), __VA_ARGS__)
#    define SPW_TORCH_ENTRY(function) spw_torch_entry_##function
#    define SPW_TORCH_RETURNS(function)                                                            \
        static __typeof__(function) function __attribute__((used));                                \
        spw_torch_code SPW_TORCH_ENTRY(function);                                                  \
        __asm__(".text\n"                                                                          \
                ".globl spw_torch_entry_" #function "\n"                                           \
                ".hidden spw_torch_entry_" #function "\n"                                          \
                ".type spw_torch_entry_" #function ", %function\n"                                 \
                "spw_torch_entry_" #function ":\n"                                                 \
                ".cfi_startproc\n"                                                                 \
                "    mov x5, x4\n"                                                                 \
                "    mov x4, x3\n"                                                                 \
                "    mov x3, x2\n"                                                                 \
                "    mov x2, x1\n"                                                                 \
                "    mov x1, x0\n"                                                                 \
                "    mov x0, x8\n"                                                                 \
                "    b " #function "\n"                                                            \
                ".cfi_endproc\n"                                                                   \
                ".size spw_torch_entry_" #function ", .-spw_torch_entry_" #function "\n");

#else

#    if defined(__x86_64__)
static const bool spw_torch_returns_are_known = true;
#    else
static const bool spw_torch_returns_are_known = false;
#    endif

#    define SPW_TORCH_CALL(function, code, ret, ...)                                               \
        ((void)((__typeof__(function) *)(code))(ret, __VA_ARGS__))
#    define SPW_TORCH_ENTRY(function) (spw_torch_code *)(function)
#    define SPW_TORCH_RETURNS(function)

#endif
