#include "sim/libs/cudnn/question.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "sim/driver/core/control.h"
#include "sim/libs/common/driver.h"

/* PATIENCE_SECONDS: the longest wait for an answer. Loading the library takes 0.5 s, or some
 * seconds from a cold disk. HIGH: the lowest number of a connection's descriptor, because programs
 * may rely on getting low numbers. */
enum { PATIENCE_SECONDS = 60, HIGH = 512 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool given_up;          /* nobody answers */
static char library[PATH_MAX]; /* NVIDIA's cuDNN; "": not found yet */

/* ---- NVIDIA's library ---- */

/* Opens the loaded object that contains an address. */
static void *open_object(const void *address)
{
    Dl_info info;
    struct link_map *map = NULL;

    if (dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL) {
        return NULL;
    }
    /* The program itself has no name there. */
    return dlopen(map->l_name[0] != '\0' ? map->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
}

/* Looks for the file `name` in a list of folders, except in the one that holds `own`. */
static bool search(const Dl_serinfo *folders, const char *name, const char *own)
{
    for (unsigned int i = 0; i < folders->dls_cnt; i++) {
        char found[PATH_MAX], *real;

        if (snprintf(found, sizeof(found), "%s/%s", folders->dls_serpath[i].dls_name, name) >=
            (int)sizeof(found)) {
            continue;
        }
        real = realpath(found, NULL);
        if (real != NULL && strcmp(real, own) != 0) {
            (void)snprintf(library, sizeof(library), "%s", real);
            free(real);
            return true;
        }
        free(real);
    }
    return false;
}

/* Finds NVIDIA's cuDNN where the dynamic linker would look for it, on behalf of the object that
 * contains `caller`. */
static bool find_library(const void *caller)
{
    Dl_serinfo size, *folders = NULL;
    Dl_info own;
    void *handle = open_object(caller);
    char *real = dladdr(&lock, &own) != 0 ? realpath(own.dli_fname, NULL) : NULL;
    bool found = false;

    if (handle != NULL && real != NULL && dlinfo(handle, RTLD_DI_SERINFOSIZE, &size) == 0 &&
        (folders = malloc(size.dls_size)) != NULL) {
        *folders = size;
        found = dlinfo(handle, RTLD_DI_SERINFO, folders) == 0 &&
                search(folders, strrchr(own.dli_fname, '/') + 1, real);
    }
    free(folders);
    free(real);
    if (handle != NULL) {
        (void)dlclose(handle);
    }
    return found;
}

/* ---- the content of a question ---- */

struct content {
    unsigned char *bytes; /* SIM_CUDNN_MOST */
    size_t count;
    bool complete;
};

static void put(struct content *content, const void *from, size_t bytes)
{
    content->complete = content->complete && bytes <= SIM_CUDNN_MOST - content->count;
    if (content->complete && bytes > 0) {
        memcpy(content->bytes + content->count, from, bytes);
        content->count += bytes;
    }
}

/* The library computes the second one itself, and has no handle without a device. */
static bool is_asked(const struct sim_cudnn_attribute *attribute)
{
    return attribute->type != CUDNN_TYPE_HANDLE && attribute->type != CUDNN_TYPE_VOID_PTR &&
           attribute->name != CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT;
}

static void put_descriptor(struct content *content, const struct sim_cudnn_descriptor *descriptor)
{
    struct sim_cudnn_node node = {.kind = (int32_t)descriptor->kind};

    for (const struct sim_cudnn_attribute *a = descriptor->attributes; a != NULL; a = a->next) {
        node.count += is_asked(a);
    }
    put(content, &node, sizeof(node));
    for (const struct sim_cudnn_attribute *a = descriptor->attributes; a != NULL; a = a->next) {
        bool nested = a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR;
        size_t bytes = nested ? 0 : (size_t)a->count * sim_cudnn_descriptor_element_bytes(a->type);
        struct sim_cudnn_leaf leaf = {(int32_t)a->name, (int32_t)a->type, (int32_t)a->count,
                                      (int32_t)bytes};

        if (!is_asked(a)) {
            continue;
        }
        put(content, &leaf, sizeof(leaf));
        put(content, a->data, bytes);
        for (int64_t i = 0; i < a->count && nested && content->complete; i++) {
            const struct sim_cudnn_descriptor *child = sim_cudnn_descriptor_child(a, i);

            if (child == NULL) {
                content->complete = false;
                return;
            }
            put_descriptor(content, child);
        }
    }
}

/* An attribute of the current device; 0 if it cannot be read. */
static int attribute(CUdevice_attribute name)
{
    const struct sim_shim_driver *driver = sim_shim_driver();
    CUdevice device;
    int value = 0;

    if (sim_shim_context() == CUDA_SUCCESS && driver->cuCtxGetDevice(&device) == CUDA_SUCCESS) {
        (void)driver->cuDeviceGetAttribute(&value, name, device);
    }
    return value;
}

static size_t total_bytes(void)
{
    const struct sim_shim_driver *driver = sim_shim_driver();
    CUdevice device;
    size_t bytes = 0;

    if (driver->cuCtxGetDevice(&device) == CUDA_SUCCESS) {
        (void)driver->cuDeviceTotalMem(&bytes, device);
    }
    return bytes;
}

static void put_format(struct content *content, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put_format(struct content *content, const char *format, ...)
{
    char text[128];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    put(content, text, strlen(text));
}

/* Writes the members that cuDNN wants to know of a device. */
static void put_properties(struct content *content)
{
    static const struct {
        const char *member;
        CUdevice_attribute attribute;
    } numbers[] = {
#define ROW(member, name) {#member, CU_DEVICE_ATTRIBUTE_##name},
        ROW(multiProcessorCount, MULTIPROCESSOR_COUNT) ROW(warpSize, WARP_SIZE)
            ROW(maxSharedMemoryPerBlock, MAX_SHARED_MEMORY_PER_BLOCK)
                ROW(maxSharedMemoryPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
                    ROW(reservedSharedMemoryPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK)
                        ROW(maxSharedMemoryPerSM, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
                            ROW(maxRegistersPerSM, MAX_REGISTERS_PER_MULTIPROCESSOR)
                                ROW(maxCtasPerSM, MAX_BLOCKS_PER_MULTIPROCESSOR)
                                    ROW(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK)
                                        ROW(maxThreadsPerSM, MAX_THREADS_PER_MULTIPROCESSOR)
                                            ROW(regsPerBlock, MAX_REGISTERS_PER_BLOCK)
                                                ROW(smClockRateKHz, CLOCK_RATE)
                                                    ROW(memClockRateKHz, MEMORY_CLOCK_RATE)
                                                        ROW(l2CacheSize, L2_CACHE_SIZE) ROW(
                                                            supportCoopLaunch, COOPERATIVE_LAUNCH)
#undef ROW
    };

    put_format(content, "{\"deviceVer\":%d",
               attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 100 +
                   attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) * 10);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        put_format(content, ",\"%s\":%d", numbers[i].member, attribute(numbers[i].attribute));
    }
    put_format(content, ",\"maxBlockSize\":[%d,%d,%d]",
               attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
               attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
               attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z));
    put_format(content, ",\"maxGridSize\":[%d,%d,%d]",
               attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
               attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
               attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z));
    put_format(content,
               ",\"totalGlobalMem\":%zu,\"driverVer\":%d,\"deviceName\":\"\",\"cudaDeviceId\":0,"
               "\"pciDeviceId\":0,\"isTccDriver\":0}",
               total_bytes(), CUDA_VERSION);
    put(content, "", 1);
}

/* ---- the connection ---- */

/* Opens a socket. Returns -1 on failure. */
static int open_socket(void)
{
    const struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
    int low = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int high = low >= 0 ? fcntl(low, F_DUPFD_CLOEXEC, HIGH) : -1;

    if (high >= 0) {
        close(low);
        low = high;
    }
    if (low >= 0) {
        (void)setsockopt(low, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        (void)setsockopt(low, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    }
    return low;
}

/* Connects to the process that answers. Returns -1 on failure. */
static int open_connection(void)
{
    const char *name = getenv(SIM_CUDNN_SOCKET);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = name != NULL ? strlen(name) : 0;
    int connection, result;

    if (length == 0 || length >= sizeof(address.sun_path)) {
        return -1;
    }
    memcpy(address.sun_path + 1, name, length); /* a first 0 byte makes the name abstract */
    connection = open_socket();
    if (connection < 0) {
        return -1;
    }
    do {
        result = connect(connection, (const struct sockaddr *)&address,
                         (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length));
    } while (result != 0 && errno == EINTR);
    if (result != 0) {
        close(connection);
        connection = -1;
    }
    return connection;
}

/* Sends a question and receives the engines. False if there was no answer. */
static bool exchange(int connection, const struct content *content,
                     struct sim_cudnn_engine **ret_engines, size_t *ret_count)
{
    struct sim_cudnn_header header = {SIM_CUDNN_MAGIC, (uint32_t)content->count};
    size_t most = SIM_CUDNN_ENGINES * sizeof(**ret_engines);
    struct sim_cudnn_engine *engines;

    if (!sim_cudnn_send(connection, &header, sizeof(header)) ||
        !sim_cudnn_send(connection, content->bytes, content->count) ||
        !sim_cudnn_receive(connection, &header, sizeof(header)) ||
        header.magic != SIM_CUDNN_MAGIC || header.bytes > most ||
        header.bytes % sizeof(*engines) != 0) {
        return false;
    }
    engines = malloc(header.bytes + 1);
    if (engines == NULL || !sim_cudnn_receive(connection, engines, header.bytes)) {
        free(engines);
        return false;
    }
    *ret_engines = engines;
    *ret_count = header.bytes / sizeof(*engines);
    return true;
}

/* Each question has a connection of its own: the program may fork, close all descriptors, and
 * become another user between two questions. */
static bool ask(const struct content *content, struct sim_cudnn_engine **ret_engines,
                size_t *ret_count)
{
    int connection = open_connection();
    bool answered = connection >= 0 && exchange(connection, content, ret_engines, ret_count);

    if (connection >= 0) {
        close(connection);
    }
    return answered;
}

/* ---- asking ---- */

static __typeof__(&spillway_sim_engines) report; /* NULL: another driver */

static void find_report(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);

    if (driver != NULL) {
        *(void **)&report = dlsym(driver, "spillway_sim_engines");
    }
}

/* Reports to the driver where the engines of a graph come from. Programs ask for the fallback only
 * if they try all engines, or if the others have failed. */
static void note(const struct sim_cudnn_descriptor *heuristics, bool guessed)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct sim_shim_driver *driver = sim_shim_driver();
    int64_t mode = sim_cudnn_descriptor_integer(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, -1);
    CUdevice device;

    (void)pthread_once(&once, find_report);
    if (report != NULL && sim_shim_context() == CUDA_SUCCESS &&
        driver->cuCtxGetDevice(&device) == CUDA_SUCCESS) {
        report(device, guessed, mode == CUDNN_HEUR_MODE_FALLBACK);
    }
}

size_t sim_cudnn_question_ask(const struct sim_cudnn_descriptor *heuristics, const void *caller,
                              struct sim_cudnn_engine **ret_engines)
{
    const char *tf32 = getenv(SIM_CUDNN_TF32);
    struct content content = {.complete = true};
    size_t count = 0;

    *ret_engines = NULL;
    (void)pthread_mutex_lock(&lock);
    if (!given_up && (library[0] != '\0' || find_library(caller))) {
        content.bytes = malloc(SIM_CUDNN_MOST);
    }
    if (content.bytes != NULL) {
        put(&content, library, strlen(library) + 1);
        put(&content, tf32 != NULL ? tf32 : "", tf32 != NULL ? strlen(tf32) + 1 : 1);
        put_properties(&content);
        put_descriptor(&content, heuristics);
        given_up = content.complete && !ask(&content, ret_engines, &count);
    }
    (void)pthread_mutex_unlock(&lock);
    free(content.bytes);
    note(heuristics, count == 0);
    return count;
}
