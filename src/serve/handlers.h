/* The handlers: one function spw_serve_<symbol> for each row of driver/functions.def whose answer
 * is a handler. It has the type of the function that it replaces; with ON_STREAM, IN_CONTEXT and
 * OF_BLOCK it gets the call before its arguments. Handlers are called under a lease
 * (device/lease.h) when CUDA is in use and the program made the call. HANDLER_ALWAYS functions are
 * called for every call, without a lease.
 *
 * Locking: a handler is called without a lock and may take any. */
#pragma once

#include "call/call.h"
#include "driver/driver.h"

#define SPW_DECLARE_HANDLER(symbol, parameters)        __typeof__(symbol) spw_serve_##symbol;
#define SPW_DECLARE_HANDLER_ALWAYS(symbol, parameters) SPW_DECLARE_HANDLER(symbol, parameters)
#define SPW_DECLARE_DRIVER(symbol, parameters)         /* no handler */
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
#undef SPW_DECLARE_CALL
#undef SPW_DECLARE_ON_STREAM
#undef SPW_DECLARE_IN_CONTEXT
#undef SPW_DECLARE_OF_BLOCK
#undef SPW_BARE
