/* What other files of this layer need of contexts (serve_context.c). */
#pragma once

/* In a child after fork: no other thread is retaining or releasing a primary context. */
void spw_serve_context_reset(void);
