#include "sim/libs/cudnn/question.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "sim/driver/core/control.h"
#include "sim/libs/common/driver.h"

/* PATIENCE_SECONDS: the longest wait for an answer. Loading the library takes 0.5 s, or some
 * seconds from a cold disk. HIGH: the lowest number of the connection's descriptor. */
enum { PATIENCE_SECONDS = 60, HIGH = 512 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int connection = -1;
static struct stat opened;                       /* the connection's socket */
static pid_t connected;                          /* the process that opened the connection */
static __typeof__(&spillway_sim_engines) report; /* NULL: another driver */
static bool given_up;                            /* nobody answers */
static char library[PATH_MAX];                   /* NVIDIA's cuDNN; "": not looked for yet */

/* ---- NVIDIA's library ---- */

/* Copies the name of the object that contains an address. */
static bool name_of(const void *address, char name[PATH_MAX])
{
    Dl_info info;

    return dladdr(address, &info) != 0 && info.dli_fname != NULL &&
           snprintf(name, PATH_MAX, "%s", info.dli_fname) < PATH_MAX;
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

/* Finds NVIDIA's cuDNN where the dynamic linker would look for it, on behalf of the library that
 * contains `caller`. */
static bool find_library(const void *caller)
{
    char name[PATH_MAX], own[PATH_MAX], real[PATH_MAX];
    Dl_serinfo size, *folders = NULL;
    void *handle = name_of(caller, name) ? dlopen(name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    bool found = false;

    if (handle != NULL && name_of(&lock, own) && realpath(own, real) != NULL &&
        dlinfo(handle, RTLD_DI_SERINFOSIZE, &size) == 0 &&
        (folders = malloc(size.dls_size)) != NULL) {
        *folders = size;
        found = dlinfo(handle, RTLD_DI_SERINFO, folders) == 0 &&
                search(folders, strrchr(own, '/') + 1, real);
    }
    free(folders);
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

/* True unless the program has closed the descriptor. Its number may be another file's then. */
static bool is_open(void)
{
    struct stat status;

    return connection >= 0 && fstat(connection, &status) == 0 && status.st_dev == opened.st_dev &&
           status.st_ino == opened.st_ino;
}

/* Opens a socket with a high number, because programs may rely on getting low numbers. */
static bool open_socket(void)
{
    const struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
    int low = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    connection = low >= 0 ? fcntl(low, F_DUPFD_CLOEXEC, HIGH) : -1;
    if (connection < 0) {
        connection = low;
    } else {
        close(low);
    }
    return connection >= 0 && fstat(connection, &opened) == 0 &&
           setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0 &&
           setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0;
}

static void disconnect(void)
{
    if (is_open()) {
        close(connection);
    }
    connection = -1;
}

/* Connects this process, unless it is connected. A process that was forked has its parent's
 * connection, and opens one of its own. */
static bool is_connected(void)
{
    const char *name = getenv(SIM_CUDNN_SOCKET);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = name != NULL ? strlen(name) : 0;

    if (is_open() && connected == getpid()) {
        return true;
    }
    disconnect();
    if (length == 0 || length >= sizeof(address.sun_path)) {
        return false;
    }
    memcpy(address.sun_path + 1, name, length); /* a first 0 byte makes the name abstract */
    connected = getpid();
    return open_socket() &&
           connect(connection, (const struct sockaddr *)&address,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) == 0;
}

static bool send_all(const void *from, size_t bytes)
{
    return send(connection, from, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

static bool receive(void *to, size_t bytes)
{
    return recv(connection, to, bytes, MSG_WAITALL) == (ssize_t)bytes;
}

/* Sends a question and receives the engines. False if the connection is of no more use. */
static bool exchange(const struct content *content, struct sim_cudnn_engine **ret_engines,
                     size_t *ret_count)
{
    struct sim_cudnn_header header = {SIM_CUDNN_MAGIC, (uint32_t)content->count};
    size_t most = SIM_CUDNN_ENGINES * sizeof(**ret_engines);
    struct sim_cudnn_engine *engines;

    if (!send_all(&header, sizeof(header)) || !send_all(content->bytes, content->count) ||
        !receive(&header, sizeof(header)) || header.magic != SIM_CUDNN_MAGIC ||
        header.bytes > most || header.bytes % sizeof(*engines) != 0) {
        return false;
    }
    engines = malloc(header.bytes + 1);
    if (engines == NULL || (header.bytes > 0 && !receive(engines, header.bytes))) {
        free(engines);
        return false;
    }
    *ret_engines = engines;
    *ret_count = header.bytes / sizeof(*engines);
    return true;
}

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
    struct content content = {.complete = true};
    size_t count = 0;

    *ret_engines = NULL;
    (void)pthread_mutex_lock(&lock);
    if (!given_up && library[0] == '\0') {
        given_up = !find_library(caller);
    }
    content.bytes = given_up ? NULL : malloc(SIM_CUDNN_MOST);
    if (content.bytes != NULL) {
        put(&content, library, strlen(library) + 1);
        put_properties(&content);
        put_descriptor(&content, heuristics);
    }
    if (content.bytes != NULL && content.complete) {
        given_up = !is_connected() || !exchange(&content, ret_engines, &count);
        if (given_up) {
            disconnect();
        }
    }
    (void)pthread_mutex_unlock(&lock);
    free(content.bytes);
    note(heuristics, count == 0);
    return count;
}
