/* The handlers: answers to the program's calls, one file for each family of driver functions. It
 * does not know how calls arrive.
 *
 *   account        accounts allocations of the real driver, and requests that are refused
 *   allocations    cuMemAlloc, cuMemAllocAsync, cuMemFree and their relatives
 *   captures       the beginning and the end of stream captures
 *   contexts       destruction of contexts and streams
 *   direct         allocation and free without a driver call, for PyTorch
 *   graphs         the end of CUDA graphs
 *   handlers       declares all handlers
 *   host_memory    page-locked and managed memory
 *   immovable      keeps memory in place if others know where it is
 *   imports        blocks of other processes that are mapped here
 *   init           the initialisation of CUDA
 *   ipc            memory that other processes map
 *   memory_pools   the sizes, trimming and access of memory pools
 *   oom            the out-of-memory report
 *   page_locked    figures of the host memory that the program page-locks
 *   peers          access by peer devices and other hardware
 *   placement      allocation in the tier that a policy rule chooses
 *   public         the functions of include/spillway.h
 *   queries        queries about memory: free bytes, attributes of an address
 *   state          the state of the folder in one object
 *   synchronize    waiting for the device
 *   take           the pool's answer to a request, for the driver's functions and for PyTorch
 *   vmm            physical memory and mappings that the program makes itself
 *
 * A handler is a function spw_serve_<symbol>. Each row of driver/functions.def has one, unless its
 * answer is DRIVER or AROUND. A handler has the type of the function that it replaces. With
 * ON_STREAM, IN_CONTEXT and OF_BLOCK it also gets a struct spw_call before the other arguments.
 * Handlers are called under a lease (device/lease.h) if CUDA is in use and the program made the
 * call. The handlers of HANDLER_ALWAYS rows are called for every call, without a lease.
 *
 * Locking: a handler is called without a lock and may take any. */
#pragma once

#include "call/call.h"
#include "driver/driver.h"

#define SPW_DECLARE_HANDLER(symbol, parameters)        __typeof__(symbol) spw_serve_##symbol;
#define SPW_DECLARE_HANDLER_ALWAYS(symbol, parameters) SPW_DECLARE_HANDLER(symbol, parameters)
#define SPW_DECLARE_DRIVER(symbol, parameters)         /* no handler */
#define SPW_DECLARE_AROUND(symbol, parameters)         /* no handler */
#define SPW_DECLARE_CALL(symbol, parameters)                                                       \
    CUresult spw_serve_##symbol(struct spw_call *call, SPW_BARE parameters);
#define SPW_DECLARE_ON_STREAM(symbol, parameters)  SPW_DECLARE_CALL(symbol, parameters)
#define SPW_DECLARE_IN_CONTEXT(symbol, parameters) SPW_DECLARE_CALL(symbol, parameters)
#define SPW_DECLARE_OF_BLOCK(symbol, parameters)   SPW_DECLARE_CALL(symbol, parameters)
#define SPW_BARE(...)                              __VA_ARGS__
#define SPW_FN(symbol, base, since, flags, answer, retry, barrier, memory, parameters)             \
    SPW_DECLARE_##answer(symbol, parameters)
#include "driver/functions.def"
#undef SPW_DECLARE_HANDLER
#undef SPW_DECLARE_HANDLER_ALWAYS
#undef SPW_DECLARE_DRIVER
#undef SPW_DECLARE_AROUND
#undef SPW_DECLARE_CALL
#undef SPW_DECLARE_ON_STREAM
#undef SPW_DECLARE_IN_CONTEXT
#undef SPW_DECLARE_OF_BLOCK
#undef SPW_BARE
