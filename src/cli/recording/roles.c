/* The names are taken from PyTorch 2.x: torch/nn/modules/module.py, torch/optim/,
 * torch/csrc/autograd, aten/src/ATen/cuda. If another version of PyTorch uses other names, roles
 * are less exact, and more memory is of unknown purpose. */
#include "cli/recording/roles.h"

#include "common/path.h"

#include <stddef.h>
#include <string.h>

enum { NEAR = 4 };

/* ---- text ---- */

static bool is(const char *text, const char *word)
{
    return strcmp(text, word) == 0;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* Returns true if the text passes the test with any word of the list. */
static bool any(bool (*test)(const char *text, const char *word), const char *text,
                const char *const *list)
{
    while (*list != NULL && !test(text, *list)) {
        list++;
    }
    return *list != NULL;
}

/* ---- native frames ---- */

static bool is_library_of_scratch(const char *library)
{
    static const char *const libraries[] = {"libcublas",   "libcudnn",   "libcusolver",
                                            "libcusparse", "libcufft",   "libnccl",
                                            "libcurand",   "libnvshmem", NULL};

    return any(begins, spw_path_name(library), libraries);
}

/* Returns the name of the innermost function that has a name, or "" if no function has one. */
static const char *innermost(const struct spw_callsite_facts *site)
{
    for (size_t i = 0; i < site->native_count; i++) {
        if (site->native[i].symbol != NULL) {
            return site->native[i].symbol;
        }
    }
    return "";
}

/* Returns true if a library, or PyTorch for a library, allocates scratch memory without a tensor. A
 * handle keeps such memory during its whole life. A convolution keeps it during one call. */
static bool is_workspace(const struct spw_callsite_facts *site)
{
    static const char *const makers[] = {"at::cuda::getCurrentCUDABlas",
                                         "at::cuda::getCUDABlas",
                                         "at::cuda::getCurrentCUDASolver",
                                         "at::cuda::getCurrentCUDASparse",
                                         "at::native::getCudnn",
                                         "at::native::raw_cudnn_",
                                         NULL};

    return (site->native_count > 0 && site->native[0].library != NULL &&
            is_library_of_scratch(site->native[0].library)) ||
           any(begins, innermost(site), makers);
}

static bool has_native(const struct spw_callsite_facts *site, const char *prefix)
{
    for (size_t i = 0; i < site->native_count; i++) {
        if (site->native[i].symbol != NULL && begins(site->native[i].symbol, prefix)) {
            return true;
        }
    }
    return false;
}

/* Returns true if the operator that Python called creates a tensor, or copies one to a device. */
static bool makes_input(const struct spw_callsite_facts *site)
{
    static const char *const makers[] = {"to_device::",
                                         "to_dtype_layout::",
                                         "_to_copy::",
                                         "empty_memory_format::",
                                         "empty_strided::",
                                         "zeros::",
                                         "ones::",
                                         "full::",
                                         "rand::",
                                         "randn::",
                                         "randint::",
                                         "randint_low::",
                                         "randperm::",
                                         "arange::",
                                         "arange_start::",
                                         "linspace::",
                                         "eye::",
                                         "tensor::",
                                         NULL};
    static const char operators[] = "at::_ops::";

    for (size_t i = site->native_count; i > 0; i--) {
        const char *symbol = site->native[i - 1].symbol;

        if (symbol != NULL && begins(symbol, operators)) {
            return any(begins, symbol + sizeof(operators) - 1, makers);
        }
    }
    return false;
}

/* ---- Python frames ---- */

static const char *file_of(const struct spw_callsite_facts *site, size_t i)
{
    return i < site->python_count && site->python[i].file != NULL ? site->python[i].file : "";
}

static const char *function_of(const struct spw_callsite_facts *site, size_t i)
{
    return i < site->python_count && site->python[i].function != NULL ? site->python[i].function
                                                                      : "";
}

static bool is_optimizer_file(const char *file)
{
    static const char *const files[] = {"/torch/optim/",
                                        "/bitsandbytes/optim/",
                                        "/apex/optimizers/",
                                        "/torchao/optim/",
                                        "/deepspeed/ops/",
                                        "/transformers/optimization.py",
                                        NULL};
    static const char *const others[] = {"/swa_utils.py", "/lr_scheduler.py", NULL};

    return any(has, file, files) && !any(has, file, others);
}

/* The role of a frame of torch.nn.Module, by its function. */
static enum spw_cli_role role_in_module(const char *function)
{
    static const char *const calls[] = {"_call_impl", "_wrapped_call_impl", NULL};
    static const char *const moves[] = {"_apply",          "convert",
                                        "to_empty",        "__init__",
                                        "load_state_dict", "_load_from_state_dict",
                                        "register_buffer", NULL};

    return any(is, function, calls)   ? SPW_CLI_ROLE_FORWARD
           : any(is, function, moves) ? SPW_CLI_ROLE_SETUP
                                      : SPW_CLI_ROLE_NONE;
}

/* `depth` counts frames from the innermost frame. Only a constructor near the innermost frame
 * counts, because a constructor far outside may run the whole program. */
static bool is_setup(const char *file, const char *function, size_t depth)
{
    static const char *const files[] = {"/torch/nn/parameter.py",
                                        "/torch/nn/init.py",
                                        "/torch/serialization.py",
                                        "/torch/_utils.py",
                                        "/safetensors/",
                                        "/transformers/modeling_utils.py",
                                        "/transformers/core_model_loading.py",
                                        "/accelerate/utils/modeling.py",
                                        NULL};
    static const char *const functions[] = {"__init__", "reset_parameters", "_infer_parameters",
                                            "initialize_parameters", NULL};

    return any(has, file, files) || (depth < NEAR && any(is, function, functions));
}

static bool makes_state(const char *function)
{
    static const char *const functions[] = {"_init_group",
                                            "_init_state",
                                            "init_state",
                                            "load_state_dict",
                                            "_process_value_according_to_param_policy",
                                            NULL};

    return any(is, function, functions);
}

/* Returns the role that a frame shows; NONE: no role. */
static enum spw_cli_role role_of_frame(const char *file, const char *function, size_t depth)
{
    if (has(file, "/torch/nn/modules/module.py")) {
        return role_in_module(function);
    }
    if (is_optimizer_file(file)) {
        return makes_state(function) ? SPW_CLI_ROLE_STATE : SPW_CLI_ROLE_OPTIMIZER;
    }
    if (has(file, "/torch/distributed/fsdp/") || has(file, "/torch/distributed/_composable/")) {
        return SPW_CLI_ROLE_SHARD;
    }
    if (has(file, "/torch/distributed/")) {
        return SPW_CLI_ROLE_COMMUNICATION;
    }
    return is_setup(file, function, depth) ? SPW_CLI_ROLE_SETUP : SPW_CLI_ROLE_NONE;
}

/* Returns true if the frame inside an optimizer's step is the program's closure. A closure is not
 * part of the optimizer. If the program defines its own optimizer, optimizer.py calls the step of
 * this optimizer, and the step is part of the optimizer. */
static bool is_closure(const struct spw_callsite_facts *site, size_t optimizer)
{
    static const char *const wrappers[] = {"/torch/optim/optimizer.py",
                                           "/torch/optim/lr_scheduler.py", NULL};

    return optimizer > 0 && !any(has, file_of(site, optimizer), wrappers) &&
           !has(file_of(site, optimizer - 1), "/torch/");
}

/* Returns the role of the innermost frame that shows a role. */
static enum spw_cli_role role_of_python(const struct spw_callsite_facts *site)
{
    for (size_t i = 0; i < site->python_count; i++) {
        enum spw_cli_role role = role_of_frame(file_of(site, i), function_of(site, i), i);

        if (role == SPW_CLI_ROLE_OPTIMIZER && is_closure(site, i)) {
            return SPW_CLI_ROLE_OTHER;
        }
        /* The function that makes the state may call helpers in the optimizers' files. */
        for (size_t j = i + 1; role == SPW_CLI_ROLE_OPTIMIZER && j < site->python_count &&
                               is_optimizer_file(file_of(site, j));
             j++) {
            role = makes_state(function_of(site, j)) ? SPW_CLI_ROLE_STATE : role;
        }
        if (role != SPW_CLI_ROLE_NONE) {
            return role;
        }
    }
    return SPW_CLI_ROLE_NONE;
}

/* ---- sites ---- */

bool spw_cli_role_is_autograd(const struct spw_callsite_facts *site)
{
    return site->thread != NULL && begins(site->thread, "pt_autograd");
}

enum spw_cli_role spw_cli_role_of(const struct spw_callsite_facts *site)
{
    enum spw_cli_role role;

    if (is_workspace(site)) {
        return SPW_CLI_ROLE_WORKSPACE;
    }
    if (has_native(site, "c10d::")) {
        return SPW_CLI_ROLE_COMMUNICATION;
    }
    if (spw_cli_role_is_autograd(site) || site->node != NULL ||
        has_native(site, "torch::autograd::Engine::")) {
        return SPW_CLI_ROLE_BACKWARD;
    }
    role = role_of_python(site);
    if (role == SPW_CLI_ROLE_NONE && site->python_count > 0) {
        role = makes_input(site) ? SPW_CLI_ROLE_INPUT : SPW_CLI_ROLE_OTHER;
    }
    return role;
}
