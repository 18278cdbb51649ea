#include "sim/driver/core/say.h"

#include <stdarg.h>
#include <unistd.h>

#include "system/fd.h"

void sim_say(const char *format, ...)
{
    char line[1024] = SIM_SAY_PREFIX;
    va_list args;

    va_start(args, format);
    (void)spw_fd_write_line(STDERR_FILENO, line, sizeof(line), format, args);
    va_end(args);
}
