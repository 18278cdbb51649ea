#include "torch/returned.h"

#if defined(__aarch64__)
__asm__(".text\n"
        ".globl spw_torch_call_returning\n"
        ".hidden spw_torch_call_returning\n"
        ".type spw_torch_call_returning, %function\n"
        "spw_torch_call_returning:\n"
        ".cfi_startproc\n"
        "    mov x8, x0\n"
        "    mov x16, x1\n"
        "    mov x0, x2\n"
        "    mov x1, x3\n"
        "    mov x2, x4\n"
        "    mov x3, x5\n"
        "    mov x4, x6\n"
        "    mov x5, x7\n"
        "    br x16\n"
        ".cfi_endproc\n"
        ".size spw_torch_call_returning, .-spw_torch_call_returning\n");
#endif
