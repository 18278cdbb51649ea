/* Any bytes as a cubin, or else as a fat binary: refused, or read; the places that are told of a
 * kernel's parameters can be read, too. */
#include "fuzz.h"

#include "sim/driver/code/code.h"
#include "sim/driver/code/unpack.h"

static void look(struct sim_code *code, const char *name)
{
    size_t count = 0;
    const struct sim_param_place *places = sim_code_params(code, name, &count);

    for (size_t i = 0; places != NULL && i < count; i++) {
        FUZZ_REQUIRE(places[i].size > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sim_cubin cubin;
    struct sim_code *code;

    sim_unpack_start();
    for (unsigned int arch = 80; arch <= 90; arch += 10) {
        bool is_cubin = sim_cubin_open(data, size, &cubin);

        struct sim_fatbin_choice choice = sim_fatbin_choose(data, size, arch);

        code = is_cubin ? sim_code_of_cubin(&cubin)
                        : sim_code_of_fatbin(&choice, /* kept */ arch == 80);
        look(code, "_Z5scalePfi");
        look(code, "k");
        look(code, "");
        sim_code_free(code);
    }
    return 0;
}
