/* Modules, libraries, functions and launches. */
#include "work.h"

#include <elf.h>
#include <unistd.h>

#include "sim/driver/core/control.h"

static const char ptx[] = ".version 9.0\n"
                          ".target sm_90\n"
                          ".address_size 64\n"
                          "// .global .align 4 .u32 not_there;\n"
                          ".global .align 4 .u32 counter;\n"
                          ".visible .global .align 8 .f64 table[10][3] = {0d0, 0d1};\n"
                          ".extern .global .align 4 .u32 elsewhere;\n"
                          ".const .align 4 .b8 constants[256];\n"
                          ".func (.param .b32 r) helper(.param .b64 p) { .local .b8 l[64]; ret; }\n"
                          ".visible .entry scale(\n"
                          "    .param .u64 .ptr .global .align 16 scale_param_0,\n"
                          "    .param .align 8 .b8 scale_param_1[24],\n"
                          "    .param .u8 scale_param_2,\n"
                          "    .param .f32 scale_param_3,\n"
                          "    .param .u64 scale_param_4\n"
                          ")\n"
                          ".maxntid 128, 2, 1\n"
                          "{\n"
                          "    .local .align 16 .b8 __local_depot0[1024];\n"
                          "    .shared .align 4 .b8 tile[2048];\n"
                          "    { .reg .b32 %r<3>; ld.global.u32 %r1, [counter]; }\n"
                          "    ret;\n"
                          "}\n"
                          ".entry nothing() { ret; }\n";

/* How many times 1 KiB of local memory is held at once: 132 multiprocessors of 2,048 threads. */
#define LOCAL_BYTES ((size_t)132 * 2048 * 1024)

static CUmodule load(const void *image)
{
    CUmodule module = NULL;

    OK(cuModuleLoadData(&module, image));
    return module;
}

static CUfunction function_of(CUmodule module, const char *name)
{
    CUfunction function = NULL;

    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

static int attribute(CUfunction function, CUfunction_attribute attribute)
{
    int value = -1;

    OK(cuFuncGetAttribute(&value, attribute, function));
    return value;
}

static void test_any_image_and_name(void **state)
{
    const struct work *work = *state;
    CUmodule module = NULL;
    CUfunction function;
    const char *name;

    FAILS(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuModuleLoad(&module, "/does/not/exist"), CUDA_ERROR_FILE_NOT_FOUND);
    module = load("");
    function = function_of(module, "whatever");
    assert_ptr_equal(function, function_of(module, "whatever"));
    OK(cuFuncGetName(&name, function));
    assert_string_equal(name, "whatever");
    OK(launch(function, NULL, NULL)); /* parameters that are not known are not touched */
    OK(launch(work->other, NULL, (void **)0x10));
    OK(cuCtxSynchronize());
    FAILS(cuModuleGetFunction(&function, module, ""), CUDA_ERROR_NOT_FOUND);
    OK(cuModuleUnload(module));
    FAILS(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
    FAILS(launch(function, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
}

static void test_builtin_kernels(void **state)
{
    const struct work *work = *state;
    CUstream stream = new_stream(0);
    CUdeviceptr a = new_words(10000), b = new_words(10000), bad = new_words(2);

    OK(launch_fill(work, stream, a, 10000, 3));
    OK(launch_add(work, stream, a, 5000, 4));
    OK(launch_copy(work, stream, b, a, 10000));
    OK(launch_check(work, stream, b, 5000, 7, bad));
    assert_int_equal(word_at(bad, stream), 0);
    OK(launch_check(work, stream, b, 10000, 7, bad));
    assert_int_equal(word_at(bad, stream), 5000);
    OK(launch_check(work, stream, b, 10000, 7, bad)); /* adds */
    assert_int_equal(word_at(bad, stream), 10000);
}

/* Kernels reach only device, page-locked and managed memory. */
static void test_wild_pointer(void **state)
{
    const struct work *work = *state;
    CUdeviceptr words = new_words(4);

    OK(launch_fill(work, NULL, 0x10, 0, 1)); /* nothing is used of it */
    OK(cuCtxSynchronize());
    OK(launch_fill(work, NULL, 0x10, 4, 1));
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    FAILS(launch_fill(work, NULL, words, 4, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void test_pageable_pointer(void **state)
{
    const struct work *work = *state;
    static uint32_t pageable[4];

    OK(launch_fill(work, NULL, device_address(pageable), 4, 1));
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(pageable[0], 0);
}

static void test_profiler(void **state)
{
    CUresult (*start)(void) = NULL;
    CUresult (*stop)(void) = NULL;
    CUdriverProcAddressQueryResult status;

    OK(cuGetProcAddress("cuProfilerStart", (void **)&start, 13000, 0, &status));
    OK(cuGetProcAddress("cuProfilerStop", (void **)&stop, 13000, 0, &status));
    OK(start());
    OK(stop());
}

static void test_parameter_buffer(void **state)
{
    const struct work *work = *state;
    CUdeviceptr words = new_words(4);
    struct {
        CUdeviceptr p;
        size_t n_words;
        uint32_t value;
    } buffer = {words, 4, 6};
    size_t size = sizeof(buffer);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    void *params[] = {&buffer.p, &buffer.n_words, &buffer.value};

    OK(cuLaunchKernel(work->fill, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    assert_int_equal(word_at(words + 12, NULL), 6);
    FAILS(cuLaunchKernel(work->fill, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra),
          CUDA_ERROR_INVALID_VALUE);
    FAILS(cuLaunchKernel(work->fill, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
          CUDA_ERROR_INVALID_VALUE);
}

static void test_dimensions(void **state)
{
    const struct work *work = *state;
    CUfunction f = work->other;

    FAILS(cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuLaunchKernel(f, 1, 1, 1, 1025, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuLaunchKernel(f, 1, 1, 1, 512, 4, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 50000, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 50000, NULL, NULL, NULL));
    FAILS(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 300000),
          CUDA_ERROR_INVALID_VALUE);
    FAILS(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NUM_REGS, 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuLaunchKernel((CUfunction)0x40, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
          CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuLaunchCooperativeKernel(f, 100000, 1, 1, 1024, 1, 1, 0, NULL, NULL),
          CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    OK(cuLaunchCooperativeKernel(f, 132, 1, 1, 1024, 1, 1, 0, NULL, NULL));
}

static void test_bad_address_is_sticky(void **state)
{
    const struct work *work = *state;
    CUdeviceptr words = new_words(4);

    OK(launch_fill(work, NULL, words, 4, 1));
    OK(cuCtxSynchronize());
    OK(launch_fill(work, NULL, words, 1 << 30, 1)); /* the launch itself does not fail */
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    FAILS(launch_fill(work, NULL, words, 4, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* Memory that a launch names is checked when it is submitted, long before it runs. */
static void test_bad_address_behind_other_work(void **state)
{
    const struct work *work = *state;
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr words = new_words(4);
    uint32_t *flag = new_flag();

    OK(launch_spin(work, stream, device_address(flag)));
    OK(launch_fill(work, stream, words, 4, 1));
    FAILS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    OK(launch_fill(work, stream, words, 1 << 30, 1));
    FAILS(cuStreamQuery(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void test_launch_attributes(void **state)
{
    const struct work *work = *state;
    CUevent event = new_event(CU_EVENT_DISABLE_TIMING);
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    uint32_t *flag = new_flag();
    CUdeviceptr address = device_address(flag);
    void *params[] = {&address};
    CUlaunchAttribute attributes[2] = {
        {.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
         .value.launchCompletionEvent.event = event},
        {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {2, 1, 1}},
    };
    CUlaunchConfig config = {.gridDimX = 4,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 32,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = stream,
                             .attrs = attributes,
                             .numAttrs = 2};

    OK(cuLaunchKernelEx(&config, work->spin, params, NULL));
    FAILS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    *flag = 1;
    OK(cuEventSynchronize(event));
    config.gridDimX = 3;
    FAILS(cuLaunchKernelEx(&config, work->spin, params, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void test_ptx_declarations(void **state)
{
    static const struct {
        size_t offset, size;
    } expected[] = {{0, 8}, {8, 24}, {32, 1}, {36, 4}, {40, 8}};
    CUmodule module = load(ptx);
    CUfunction scale = function_of(module, "scale");
    CUfunction functions[4];
    CUdeviceptr address;
    unsigned int count = 0;
    size_t offset, size;

    OK(cuModuleGetFunctionCount(&count, module));
    assert_int_equal(count, 2);
    OK(cuModuleEnumerateFunctions(functions, 4, module));
    assert_ptr_equal(functions[0], scale);

    for (size_t i = 0; i < 5; i++) {
        OK(cuFuncGetParamInfo(scale, i, &offset, &size));
        assert_int_equal(offset, expected[i].offset);
        assert_int_equal(size, expected[i].size);
    }
    FAILS(cuFuncGetParamInfo(scale, 5, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuFuncGetParamInfo(function_of(module, "unknown"), 0, &offset, &size),
          CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(attribute(scale, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), 1024);
    assert_int_equal(attribute(scale, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 2048);
    assert_int_equal(attribute(scale, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 256);

    OK(cuModuleGetGlobal(&address, &size, module, "table"));
    assert_int_equal(size, 240);
    OK(cuMemsetD8(address, 1, size));
    OK(cuModuleGetGlobal(NULL, &size, module, "constants"));
    assert_int_equal(size, 256);
    FAILS(cuModuleGetGlobal(&address, &size, module, "not_there"), CUDA_ERROR_NOT_FOUND);
    FAILS(cuModuleGetGlobal(&address, &size, module, "elsewhere"), CUDA_ERROR_NOT_FOUND);
}

/* Arguments of kernels with a known layout are checked; a word inside a structure is not. */
static void test_known_arguments_are_checked(void **state)
{
    CUfunction scale = function_of(load(ptx), "scale");
    CUdeviceptr words = new_words(4), hole = reserve(2 * MIB);
    CUdeviceptr structure[3] = {hole, hole, hole}, scalar = 5;
    unsigned char small = 1;
    float factor = 2;
    void *params[] = {&words, structure, &small, &factor, &scalar};
    unsigned long long before, checked_before = 0, checked = 0;

    before = spillway_sim_launches(&checked_before);
    OK(launch(scale, NULL, params));
    OK(cuCtxSynchronize());
    assert_int_equal(spillway_sim_launches(&checked), before + 1);
    assert_int_equal(checked, checked_before + 1);
    OK(launch(function_of(load(""), "opaque"), NULL, params));
    assert_int_equal(spillway_sim_launches(&checked), before + 2);
    assert_int_equal(checked, checked_before + 1);

    scalar = hole;
    OK(launch(scale, NULL, params));
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* The least a cubin can be: one kernel, one variable. */
struct cubin {
    Elf64_Ehdr head;
    Elf64_Shdr sections[6];
    Elf64_Sym symbols[3];
    char section_names[64];
    char names[32];
    char code[300];
};

enum { SECTION_NAMES = 1, NAMES, SYMBOLS, TEXT, DATA };

static Elf64_Shdr section(unsigned int name, unsigned int type, size_t offset, size_t size)
{
    return (Elf64_Shdr){.sh_name = name, .sh_type = type, .sh_offset = offset, .sh_size = size};
}

static struct cubin make_cubin(void)
{
    struct cubin cubin = {
        .head = {.e_ident = ELFMAG,
                 .e_shoff = offsetof(struct cubin, sections),
                 .e_shentsize = sizeof(Elf64_Shdr),
                 .e_shnum = 6,
                 .e_shstrndx = SECTION_NAMES},
        .symbols = {{0},
                    {.st_name = 1,
                     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                     .st_shndx = TEXT},
                    {.st_name = 8,
                     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
                     .st_shndx = DATA,
                     .st_size = 1000}},
        .section_names = "\0.text.kernel\0.nv.global",
        .names = "\0kernel\0variable",
    };

    cubin.head.e_ident[EI_CLASS] = ELFCLASS64;
    cubin.sections[SECTION_NAMES] =
        section(0, SHT_STRTAB, offsetof(struct cubin, section_names), sizeof(cubin.section_names));
    cubin.sections[NAMES] =
        section(0, SHT_STRTAB, offsetof(struct cubin, names), sizeof(cubin.names));
    cubin.sections[SYMBOLS] =
        section(0, SHT_SYMTAB, offsetof(struct cubin, symbols), sizeof(cubin.symbols));
    cubin.sections[SYMBOLS].sh_link = NAMES;
    cubin.sections[TEXT] =
        section(1, SHT_PROGBITS, offsetof(struct cubin, code), sizeof(cubin.code));
    cubin.sections[TEXT].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    cubin.sections[DATA] = section(14, SHT_NOBITS, 0, 1000);
    return cubin;
}

static void test_binary_images(void **state)
{
    struct cubin cubin = make_cubin();
    static struct {
        uint32_t magic;
        uint16_t version, head_bytes;
        uint64_t payload_bytes;
        char payload[3 << 20];
    } fatbin = {0xba55ed50, 1, 16, 3 << 20, {0}};
    struct {
        uint32_t magic, version;
        const void *data;
        void *file;
    } wrapper = {0x466243b1, 1, &fatbin, NULL};
    CUmodule module = load(&cubin);
    CUfunction function;
    CUdeviceptr address;
    unsigned int count = 0;
    size_t size = 0, before;

    OK(cuModuleGetFunctionCount(&count, module));
    assert_int_equal(count, 1);
    OK(cuModuleEnumerateFunctions(&function, 1, module));
    assert_ptr_equal(function, function_of(module, "kernel"));
    OK(cuModuleGetGlobal(&address, &size, module, "variable"));
    assert_int_equal(size, 1000);
    OK(cuMemsetD8(address, 1, size));
    FAILS(cuModuleGetGlobal(&address, &size, module, "other"), CUDA_ERROR_NOT_FOUND);
    cubin.head.e_shentsize = 1;
    FAILS(cuModuleLoadData(&module, &cubin), CUDA_ERROR_INVALID_IMAGE);

    before = free_bytes();
    OK(cuModuleLoadFatBinary(&module, &fatbin));
    assert_int_equal(before - free_bytes(), 3 << 20);
    OK(cuModuleUnload(module));
    OK(cuModuleLoadData(&module, &wrapper));
    assert_int_equal(before - free_bytes(), 3 << 20);
    OK(cuModuleGetGlobal(&address, &size, module, "any"));
    assert_int_equal(size, 64 << 10);
}

/* Modules and local memory take device memory, and give it back. */
static void test_memory_is_charged(void **state)
{
    CUdeviceptr words = new_words(4);
    size_t at_start = free_bytes(), loaded;
    CUmodule module = load(ptx);
    CUfunction scale = function_of(module, "scale");
    CUdeviceptr structure[3] = {0}, scalar = 0;
    unsigned char small = 1;
    float factor = 2;
    void *params[] = {&words, structure, &small, &factor, &scalar};

    loaded = free_bytes();
    assert_true(at_start - loaded >= 64 << 10); /* code, and a granule for variables */
    OK(launch(scale, NULL, params));
    assert_true(loaded - free_bytes() >= LOCAL_BYTES);
    assert_true(loaded - free_bytes() < LOCAL_BYTES + 2 * MIB);
    OK(launch(scale, NULL, params)); /* only once */
    assert_true(loaded - free_bytes() < LOCAL_BYTES + 2 * MIB);
    OK(cuCtxSynchronize());
    OK(cuModuleUnload(module));
    assert_int_equal(at_start - free_bytes(), (LOCAL_BYTES + 2 * MIB - 1) / (2 * MIB) * 2 * MIB);
}

static void test_no_room(void **state)
{
    CUdeviceptr words, all;
    CUdeviceptr structure[3] = {0}, scalar = 0;
    unsigned char small = 1;
    float factor = 2;
    void *params[] = {&words, structure, &small, &factor, &scalar};
    CUmodule module = load(ptx), second;
    CUfunction scale = function_of(module, "scale");
    CUresult result = CUDA_SUCCESS;
    int loads = 0;

    words = new_words(4);
    OK(cuMemAlloc(&all, free_bytes() / (2 * MIB) * (2 * MIB)));
    assert_true(free_bytes() < 2 * MIB);
    while (result == CUDA_SUCCESS) {
        result = cuModuleLoadData(&second, ptx);
        assert_true(++loads < 40); /* each takes at least 64 KiB */
    }
    assert_int_equal(result, CUDA_ERROR_OUT_OF_MEMORY);
    FAILS(launch(scale, NULL, params), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFree(all));
    OK(cuModuleLoadData(&second, ptx));
    OK(launch(scale, NULL, params));
}

static void test_libraries(void **state)
{
    CUdeviceptr words = new_words(4);
    CUlibrary library = NULL, owner;
    CUkernel fill = NULL;
    CUfunction function;
    CUmodule module;
    size_t n_words = 4, at_start = free_bytes(), offset, size;
    uint32_t value = 12;
    const char *name;
    void *params[] = {&words, &n_words, &value};
    int shared;

    OK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&fill, library, "spw_fill"));
    assert_int_equal(free_bytes(), at_start); /* nothing is loaded into the context yet */
    OK(cuKernelGetName(&name, fill));
    assert_string_equal(name, "spw_fill");
    OK(cuKernelGetLibrary(&owner, fill));
    assert_ptr_equal(owner, library);
    OK(cuKernelGetParamInfo(fill, 2, &offset, &size));
    assert_int_equal(offset, 16);
    assert_int_equal(size, 4);

    OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 99000, fill, 0));
    OK(launch((CUfunction)fill, NULL, params)); /* a kernel may stand for its function */
    assert_int_equal(word_at(words, NULL), 12);
    assert_true(free_bytes() < at_start);
    OK(cuKernelGetFunction(&function, fill));
    OK(cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    assert_int_equal(shared, 99000);
    OK(cuLibraryGetModule(&module, library));
    FAILS(cuModuleUnload(module), CUDA_ERROR_NOT_PERMITTED);
    OK(cuLibraryGetGlobal(NULL, &size, library, "counter"));
    assert_int_equal(size, 4);

    OK(cuLibraryUnload(library));
    assert_int_equal(free_bytes(), at_start);
    FAILS(launch((CUfunction)fill, NULL, params), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuLibraryGetKernel(&fill, library, "x"), CUDA_ERROR_INVALID_HANDLE);
}

/* Memory of the host and of every device, which is the library's own. */
static void test_managed_variables(void **state)
{
    const struct work *work = *state;
    CUlibrary library = NULL;
    CUdeviceptr counter = 0, again = 0;
    size_t size = 0;

    OK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetManaged(&counter, &size, library, "counter"));
    assert_int_equal(size, 4);
    OK(cuLibraryGetManaged(&again, NULL, library, "counter"));
    assert_int_equal(again, counter);
    OK(launch_fill(work, NULL, counter, 1, 5));
    OK(cuCtxSynchronize());
    assert_int_equal(*(const uint32_t *)(uintptr_t)counter, 5);
    FAILS(cuMemFree(counter), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuLibraryGetManaged(&again, NULL, library, "not_there"), CUDA_ERROR_NOT_FOUND);
    FAILS(cuLibraryGetManaged(NULL, NULL, library, "counter"), CUDA_ERROR_INVALID_VALUE);
    OK(cuLibraryUnload(library));
    FAILS(cuMemAdvise(counter, 4, CU_MEM_ADVISE_SET_READ_MOSTLY,
                      (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE}),
          CUDA_ERROR_INVALID_VALUE);
}

static void test_link(void **state)
{
    CUlinkState link;
    void *image;
    size_t size = 0;

    OK(cuLinkCreate(0, NULL, NULL, &link));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)ptx, sizeof(ptx), "a", 0, NULL, NULL));
    OK(cuLinkAddData(link, CU_JIT_INPUT_CUBIN, "\x7f\x45LF\0\0", 6, "b", 0, NULL, NULL));
    OK(cuLinkComplete(link, &image, &size));
    assert_true(size > sizeof(ptx));
    OK(cuModuleGetGlobal(NULL, &size, load(image), "table"));
    assert_int_equal(size, 240);
    OK(cuLinkDestroy(link));
    FAILS(cuLinkDestroy(link), CUDA_ERROR_INVALID_HANDLE);
}

static size_t shared_for(int block_size)
{
    return (size_t)block_size * 100;
}

static void test_occupancy(void **state)
{
    const struct work *work = *state;
    int blocks = 0, grid = 0, block = 0;
    size_t shared = 0;

    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, work->other, 1024, 0));
    assert_int_equal(blocks, 2);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, work->other, 32, 0));
    assert_int_equal(blocks, 32);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, work->other, 32, 100000));
    assert_int_equal(blocks, 2);
    FAILS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, work->other, 0, 0),
          CUDA_ERROR_INVALID_VALUE);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, work->other, NULL, 0, 0));
    assert_int_equal(block, 1024);
    assert_int_equal(grid, 2 * 132);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, work->other, shared_for, 0, 512));
    assert_true(block <= 512 && block > 0);
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&shared, work->other, 2, 128));
    assert_int_equal(shared, 233472 / 2 - 1024);
}

static void add_by_map(const struct work *work, CUtensorMap *map, size_t words, uint32_t value)
{
    void *params[] = {map, &words, &value};

    OK(launch(function_of(work->module, "spw_add_by_map"), NULL, params));
}

/* An address that a kernel finds in memory: what it names is used, what it finds is checked when it
 * runs. */
static void test_add_through(void **state)
{
    const struct work *work = *state;
    CUdeviceptr table = new_words(2), target = new_words(1000);
    size_t words = 1000;
    uint32_t value = 7;
    void *params[] = {&table, &words, &value};
    CUfunction kernel = function_of(work->module, "spw_add_through_anything");

    OK(cuMemcpyHtoD(table, &target, sizeof(target)));
    OK(launch(kernel, NULL, params));
    assert_int_equal(word_at(target, NULL), 7);
    OK(cuMemsetD8(table, 0, sizeof(target)));
    OK(launch(kernel, NULL, params));
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void test_tensor_map(void **state)
{
    const struct work *work = *state;
    CUtensorMap map;
    cuuint64_t dims[2] = {64, 64}, strides[1] = {128};
    cuuint32_t box[2] = {32, 32}, steps[2] = {1, 1};
    void *address = (void *)(uintptr_t)new_words(4096);

    OK(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, address, dims, strides, box,
                              steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                              CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    for (size_t i = 0; i < sizeof(map.opaque) / sizeof(map.opaque[0]); i++) {
        assert_int_not_equal(map.opaque[i], (uintptr_t)address);
    }
    add_by_map(work, &map, 64 * 64 / 2, 3);
    assert_int_equal(word_at((CUdeviceptr)(uintptr_t)address, NULL), 3);
    OK(cuTensorMapReplaceAddress(&map, (char *)address + 4096));
    add_by_map(work, &map, 1, 5);
    assert_int_equal(word_at((CUdeviceptr)(uintptr_t)address + 4096, NULL), 8);
    FAILS(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 6, address, dims, strides,
                                 box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                 CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
          CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORK_TEST(test_any_image_and_name),
        WORK_TEST(test_builtin_kernels),
        WORK_TEST(test_wild_pointer),
        WORK_TEST(test_pageable_pointer),
        WORK_TEST(test_profiler),
        WORK_TEST(test_parameter_buffer),
        WORK_TEST(test_dimensions),
        WORK_TEST(test_bad_address_is_sticky),
        WORK_TEST(test_bad_address_behind_other_work),
        WORK_TEST(test_launch_attributes),
        WORK_TEST(test_ptx_declarations),
        WORK_TEST(test_known_arguments_are_checked),
        WORK_TEST(test_binary_images),
        WORK_TEST(test_memory_is_charged),
        WORK_TEST(test_no_room),
        WORK_TEST(test_libraries),
        WORK_TEST(test_managed_variables),
        WORK_TEST(test_link),
        WORK_TEST(test_occupancy),
        WORK_TEST(test_add_through),
        WORK_TEST(test_tensor_map),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
