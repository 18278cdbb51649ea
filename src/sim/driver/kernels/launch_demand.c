#include "sim/driver/kernels/launch_demand.h"

#include <stdlib.h>
#include <string.h>

#include "sim/driver/memory/content.h"
#include "sim/driver/memory/program_block.h"

/* Bytes that a thread is assumed to use behind an address inside a block. */
#define BYTES_A_THREAD 16

/* Elements that a block of PyTorch's multi_tensor_apply_kernel handles. */
#define CHUNK_ELEMENTS 65536

/* The greatest width of attention heads in the libraries. */
#define HEAD_MOST 512

/* ---- traits ---- */

/* Reads `count` whole numbers of a mangled name: "Li64ELi128E". */
static bool read_numbers(const char *text, size_t count, int *ret_numbers)
{
    for (size_t i = 0; i < count; i++) {
        char *end;

        if (strncmp(text, "Li", 2) != 0) {
            return false;
        }
        ret_numbers[i] = (int)strtol(text + 2, &end, 10);
        if (end == text + 2 || *end != 'E') {
            return false;
        }
        text = end + 1;
    }
    return true;
}

/* Kernels of FlashAttention 2: the width of a head and the rows of its two tiles are template
 * arguments, and whether it is causal. */
static bool read_flash(const char *name, struct sim_kernel_traits *traits)
{
    bool forward = strstr(name, "flash_fwd_kernelI") != NULL;
    const char *found = strstr(name, "kernel_traitsI");
    const char *flags = strstr(name, "_EELb");
    int numbers[3];

    if ((!forward && strstr(name, "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernelI") == NULL) ||
        found == NULL || !read_numbers(found + strlen("kernel_traitsI"), 3, numbers)) {
        return false;
    }
    traits->shape = forward ? SIM_SHAPE_FLASH : SIM_SHAPE_FLASH_BACK;
    traits->width = numbers[0];
    traits->rows = numbers[forward ? 1 : 2];
    traits->causal = flags != NULL && strlen(flags) > 9 && flags[9] == '1';
    return true;
}

/* Kernels of the memory-efficient attention: fmha_cutlassF_f16_aligned_64x64_rf_sm80. */
static bool read_efficient(const char *name, struct sim_kernel_traits *traits)
{
    const char *found = strstr(name, "fmha_cutlass"), *tile;

    if (found == NULL) {
        return false;
    }
    tile = strstr(found, "aligned_");
    traits->shape =
        found[strlen("fmha_cutlass")] == 'B' ? SIM_SHAPE_EFFICIENT_BACK : SIM_SHAPE_EFFICIENT;
    traits->rows = tile != NULL ? (int)strtol(tile + strlen("aligned_"), NULL, 10) : 0;
    traits->type = strstr(found, "_f32_") != NULL ? SPW_GPU_TF32 : SPW_GPU_BITS16;
    return true;
}

/* Kernels of PyTorch's foreach functions and fused optimizers: the number of lists. */
static bool read_lists(const char *name, struct sim_kernel_traits *traits)
{
    static const char metadata[] = "ListMetadataI", fused[] = "FusedOptimizer";
    const char *found = strstr(name, metadata);
    int count;

    found = found == NULL ? NULL : strstr(found, "Li"); /* behind a type, if there is one */
    if (strstr(name, "multi_tensor_apply_kernel") == NULL || found == NULL ||
        !read_numbers(found, 1, &count)) {
        return false;
    }
    traits->shape = SIM_SHAPE_LISTS;
    traits->work = SIM_WORK_LISTS;
    traits->rows = count;
    traits->passes = strstr(name, fused) != NULL ? 1.75F : 1 + 0.5F / (float)count;
    return true;
}

/* Kinds of work by a part of a kernel's name; the first that fits counts. */
static const struct {
    const char *part;
    enum sim_work work;
    enum sim_shape shape;
} kinds[] = {
    {"vectorized_elementwise_kernel", SIM_WORK_ELEMENTS, SIM_SHAPE_COUNTED},
    {"unrolled_elementwise_kernel", SIM_WORK_CASTS, SIM_SHAPE_COUNTED},
    {"elementwise_kernel", SIM_WORK_STRIDED, SIM_SHAPE_COUNTED},
    {"reduce_kernel", SIM_WORK_REDUCTION, SIM_SHAPE_NONE},
    {"oftmax", SIM_WORK_ROWS, SIM_SHAPE_NONE},
    {"oftMax", SIM_WORK_ROWS, SIM_SHAPE_NONE},
    {"norm", SIM_WORK_ROWS, SIM_SHAPE_NONE},
    {"ndexSelect", SIM_WORK_OTHER, SIM_SHAPE_SPARSE},
    {"gather", SIM_WORK_OTHER, SIM_SHAPE_SPARSE},
    {"embedding", SIM_WORK_OTHER, SIM_SHAPE_SPARSE},
    {"nll_loss", SIM_WORK_OTHER, SIM_SHAPE_SPARSE},
    {"index", SIM_WORK_OTHER, SIM_SHAPE_SPARSE},
};

struct sim_kernel_traits sim_launch_traits(const char *name)
{
    struct sim_kernel_traits traits = {
        .work = SIM_WORK_OTHER, .type = SPW_GPU_BITS16, .passes = 1, .element_bytes = 4};

    if (strstr(name, "BFloat16") != NULL || strstr(name, "c104Half") != NULL) {
        traits.element_bytes = 2;
    }
    if (read_flash(name, &traits) || read_efficient(name, &traits) || read_lists(name, &traits)) {
        return traits;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strstr(name, kinds[i].part) != NULL) {
            traits.work = kinds[i].work;
            traits.shape = kinds[i].shape;
            break;
        }
    }
    return traits;
}

/* ---- attention ---- */

static struct sim_demand attention(const struct sim_kernel_traits *traits, double pairs,
                                   double width, bool back)
{
    return (struct sim_demand){
        .work = SIM_WORK_ATTENTION,
        .type = traits->type,
        .operations = (float)(pairs * width * (back ? 10 : 4) * (traits->causal ? 0.5 : 1)),
    };
}

/* The grid of FlashAttention is (tiles, batch, heads). Assumes that there are as many keys as
 * queries. */
static struct sim_demand flash_demand(const struct sim_kernel_traits *traits,
                                      const CUDA_KERNEL_NODE_PARAMS *params)
{
    double length = (double)params->gridDimX * traits->rows;

    return attention(traits, length * length * params->gridDimY * params->gridDimZ, traits->width,
                     traits->shape == SIM_SHAPE_FLASH_BACK);
}

/* Finds, among the arguments, the widths of the heads, equal for keys and values, and behind them
 * the numbers of queries and keys and, in a backward pass, of heads. */
static bool find_lengths(const struct sim_kernel_info *info, const unsigned char *args,
                         const CUDA_KERNEL_NODE_PARAMS *params, int32_t *ret_words)
{
    const struct sim_kernel_traits *traits = &info->traits;

    for (size_t at = 0; at + 5 * sizeof(int32_t) <= info->param_bytes; at += sizeof(int32_t)) {
        int32_t words[5];
        bool fits;

        memcpy(words, args + at, sizeof(words));
        if (words[0] <= 0 || words[0] > HEAD_MOST || words[1] != words[0] || words[2] <= 0 ||
            words[3] <= 0) {
            continue;
        }
        fits = traits->shape == SIM_SHAPE_EFFICIENT_BACK
                   ? words[4] == (int32_t)params->gridDimY
                   : traits->rows > 0 && ((uint32_t)words[2] + (uint32_t)traits->rows - 1) /
                                                 (uint32_t)traits->rows ==
                                             params->gridDimX;
        if (fits) {
            memcpy(ret_words, words, sizeof(words));
            return true;
        }
    }
    return false;
}

static bool efficient_demand(const struct sim_kernel_info *info, const unsigned char *args,
                             const CUDA_KERNEL_NODE_PARAMS *params, struct sim_demand *ret_demand)
{
    int32_t words[5];

    if (!find_lengths(info, args, params, words)) {
        return false;
    }
    *ret_demand =
        attention(&info->traits, (double)words[2] * words[3] * params->gridDimY * params->gridDimZ,
                  words[0], info->traits.shape == SIM_SHAPE_EFFICIENT_BACK);
    return true;
}

/* ---- memory ---- */

/* Limits of the bytes behind one address. */
struct limits {
    double most;
    double inside; /* of an address inside a block, which may be a view of a tensor, or a tensor in
                    * a segment of PyTorch's own cache */
};

static struct limits limits_of(const struct sim_kernel_info *info,
                               const CUDA_KERNEL_NODE_PARAMS *params, const unsigned char *args)
{
    const struct sim_kernel_traits *traits = &info->traits;
    double blocks = (double)params->gridDimX * params->gridDimY * params->gridDimZ;
    double threads =
        blocks * params->blockDimX * params->blockDimY * params->blockDimZ * BYTES_A_THREAD;
    struct limits limits = {1e30, threads};
    uint32_t count;

    if (traits->shape == SIM_SHAPE_COUNTED && info->param_count > 0 && info->params[0].size == 4) {
        memcpy(&count, args + info->params[0].offset, sizeof(count));
        limits = (struct limits){8.0 * count, (double)traits->element_bytes * count};
    } else if (traits->shape == SIM_SHAPE_LISTS) {
        limits = (struct limits){blocks * CHUNK_ELEMENTS * 4,
                                 blocks * CHUNK_ELEMENTS * traits->element_bytes};
    } else if (traits->shape == SIM_SHAPE_SPARSE) {
        limits.most = threads;
    }
    return limits;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* The bytes of the blocks behind the addresses among the arguments. */
static double blocks_demand(const struct sim_kernel_info *info, const unsigned char *args,
                            const struct limits *limits)
{
    double bytes = 0;

    for (size_t i = 0; i < info->param_count; i++) {
        const struct sim_param *param = &info->params[i];

        for (size_t at = -param->offset % 8; at + 8 <= param->size; at += 8) {
            CUdeviceptr address = sim_read_u64(args + param->offset + at);
            size_t rest = sim_mem_is_device(address) ? sim_program_block_rest(address) : 0;
            bool inside = rest > 0 && rest < sim_program_block_bytes(address);

            bytes +=
                least((double)rest, inside ? least(limits->inside, limits->most) : limits->most);
        }
    }
    return bytes;
}

struct sim_demand sim_launch_demand(const struct sim_kernel_info *info,
                                    const CUDA_KERNEL_NODE_PARAMS *params,
                                    const unsigned char *args, int device)
{
    const struct sim_kernel_traits *traits = &info->traits;
    struct sim_demand demand = {.work = traits->work, .guessed = 1};
    struct limits limits;
    uint64_t bytes;
    bool gaps = false;

    if (traits->shape == SIM_SHAPE_FLASH || traits->shape == SIM_SHAPE_FLASH_BACK) {
        return flash_demand(traits, params);
    }
    if ((traits->shape == SIM_SHAPE_EFFICIENT || traits->shape == SIM_SHAPE_EFFICIENT_BACK) &&
        efficient_demand(info, args, params, &demand)) {
        return demand;
    }
    if (info->computation != NULL) {
        const struct sim_call call = {.arguments = args,
                                      .params = info->params,
                                      .param_count = info->param_count,
                                      .device = device};

        bytes = sim_computation_bytes(info->computation, &call, &gaps);
        if (bytes > 0) {
            demand.work = traits->work == SIM_WORK_STRIDED && !gaps ? SIM_WORK_RUNS : traits->work;
            return (struct sim_demand){.work = demand.work, .bytes = (float)bytes};
        }
    }
    limits = limits_of(info, params, args);
    demand.bytes = (float)(blocks_demand(info, args, &limits) * traits->passes);
    if (traits->shape == SIM_SHAPE_LISTS) {
        demand.bytes =
            (float)least((double)demand.bytes, limits.most * traits->rows * traits->passes);
    }
    return demand;
}
