/* The handlers: one function spw_serve_<symbol> for each HANDLER and HANDLER_ALWAYS row of
 * driver/functions.def, with the type of the function that it replaces. HANDLER functions are
 * called when CUDA is in use and the program made the call, under a lease (track/lease.h);
 * HANDLER_ALWAYS functions are called for every call, without one.
 *
 * Locking: a handler is called without a lock and may take any. */
#pragma once

#include "driver/driver.h"

#define SPW_DECLARE_HANDLER(symbol)                     __typeof__(symbol) spw_serve_##symbol;
#define SPW_DECLARE_HANDLER_ALWAYS(symbol)              SPW_DECLARE_HANDLER(symbol)
#define SPW_DECLARE_DRIVER(symbol)                      /* no handler */
#define SPW_FN(symbol, base, since, flags, answer, ...) SPW_DECLARE_##answer(symbol)
#include "driver/functions.def"
#undef SPW_DECLARE_HANDLER
#undef SPW_DECLARE_HANDLER_ALWAYS
#undef SPW_DECLARE_DRIVER
