/* Prototypes of the handlers. A handler answers one function of functions.def in place of the
 * driver and has that function's type. It is called when spillway serves the call
 * (spw_track_serves).
 *
 * Locking: a handler is called without a lock and may take any. */
#pragma once

#include "driver/driver.h"

#define SPW_DECLARE(symbol)                 __typeof__(symbol) spw_serve_##symbol;
#define SPW_HANDLER_START                   SPW_DECLARE
#define SPW_HANDLER_SERVE                   SPW_DECLARE
#define SPW_HANDLER_RESOLVE                 SPW_DECLARE
#define SPW_HANDLER_FORWARD(symbol)         /* no handler */
#define SPW_HANDLER_SUBMIT(symbol)          /* no handler */
#define SPW_HANDLER_SUBMIT_PARTS(symbol)    /* no handler */
#define SPW_HANDLER_LAUNCH(symbol)          /* no handler */
#define SPW_HANDLER_LAUNCH_PLAIN(symbol)    /* no handler */
#define SPW_HANDLER_TOUCH(symbol)           /* no handler */
#define SPW_HANDLER_COPY(symbol)            /* no handler */
#define SPW_HANDLER_COPY_PEER(symbol)       /* no handler */
#define SPW_HANDLER_COPY_ROWS(symbol)       /* no handler */
#define SPW_HANDLER_COPY_PARTS(symbol)      /* no handler */
#define SPW_HANDLER_COPY_ROWS_PARTS(symbol) /* no handler */
/* The rows. */
#define SPW_FN(kind, symbol, base, since, flags, stream, params, args) SPW_HANDLER_##kind(symbol)
#define SPW_RUNTIME(kind, symbol, params, args)
#define SPW_REGISTER(...)
#include "driver/functions.def"
#undef SPW_FN
#undef SPW_RUNTIME
#undef SPW_REGISTER
#undef SPW_DECLARE
#undef SPW_HANDLER_START
#undef SPW_HANDLER_SERVE
#undef SPW_HANDLER_RESOLVE
#undef SPW_HANDLER_FORWARD
#undef SPW_HANDLER_SUBMIT
#undef SPW_HANDLER_SUBMIT_PARTS
#undef SPW_HANDLER_LAUNCH
#undef SPW_HANDLER_LAUNCH_PLAIN
#undef SPW_HANDLER_TOUCH
#undef SPW_HANDLER_COPY
#undef SPW_HANDLER_COPY_PEER
#undef SPW_HANDLER_COPY_ROWS
#undef SPW_HANDLER_COPY_PARTS
#undef SPW_HANDLER_COPY_ROWS_PARTS
