/* What an allocation is part of, told from its call site alone: PyTorch's own functions on the
 * stack and the thread that runs. Pure; no locking. */
#pragma once

#include <stdbool.h>

#include "callsite/text.h"

enum spw_cli_role {
    SPW_CLI_ROLE_NONE,      /* nothing on the stack tells */
    SPW_CLI_ROLE_SETUP,     /* a module is made, moved or loaded */
    SPW_CLI_ROLE_INPUT,     /* outside of modules, a tensor is copied to the device or made */
    SPW_CLI_ROLE_FORWARD,   /* a module is called */
    SPW_CLI_ROLE_OTHER,     /* other Python code */
    SPW_CLI_ROLE_BACKWARD,  /* the autograd engine runs */
    SPW_CLI_ROLE_OPTIMIZER, /* an optimizer steps */
    SPW_CLI_ROLE_STATE,     /* an optimizer makes or loads its state */
    SPW_CLI_ROLE_SHARD,     /* fully sharded data parallel, outside of the modules that it wraps */
    SPW_CLI_ROLE_WORKSPACE, /* a library or its handle takes scratch memory */
    SPW_CLI_ROLE_COMMUNICATION, /* buffers of torch.distributed */
};

/* The role of a site that is described with its native frames (callsite/facts.h). */
enum spw_cli_role spw_cli_role_of(const struct spw_callsite_facts *site);

/* The thread is one of the autograd engine. */
bool spw_cli_role_is_autograd(const struct spw_callsite_facts *site);
