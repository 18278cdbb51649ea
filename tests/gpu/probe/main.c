/* usage: probe [--tiny] SECTION [ARGUMENT]     asks the driver of this machine
 *        probe --list                          prints the sections */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe.h"
#include "sections.h"

static const struct {
    const char *name;
    void (*run)(const char *argument);
} sections[] = {
    {"alive", section_alive},
    {"facts", section_facts},
    {"host-node", section_host_node},
    {"crossing", section_crossing},
    {"in-use", section_in_use},
    {"record-event", section_record_event},
    {"capture", section_capture},
    {"move", section_move},
    {"primitives", section_primitives},
    {"ranges", section_ranges},
    {"beside-kernel", section_beside_kernel},
    {"beside-copy", section_beside_copy},
    {"read-only", section_read_only},
    {"tiers", section_tiers},
    {"link", section_link},
    {"instructions", section_instructions},
    {"fill-card", section_fill_card},
    {"host-chunks", section_host_chunks},
    {"calls", section_calls},
    {"params", section_params},
    {"unmap-then-copy", section_unmap_then_copy},
    {"launch-beside", section_launch_beside},
    {"fault", section_fault},
    {"in-place", section_in_place},
    {"poll", section_poll},
    {"both-ways", section_both_ways},
    {"host-pages", section_host_pages},
    {"managed", section_managed},
    {"launch-cost", section_launch_cost},
    {"curves", section_curves},
};

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--tiny") == 0) {
        probe.tiny = true;
        argv++;
        argc--;
    }
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]) && argc > 1; i++) {
        if (strcmp(argv[1], "--list") == 0) {
            puts(sections[i].name);
        } else if (strcmp(argv[1], sections[i].name) == 0) {
            probe_open();
            sections[i].run(argv[2]);
            MUST(cuCtxSynchronize());
            /* The rest of the process's time is its exit. */
            printf("clock\t%.6f\n", probe_now() / 1e6);
            return 0;
        }
    }
    if (argc > 1 && strcmp(argv[1], "--list") == 0) {
        return 0;
    }
    fprintf(stderr, "usage: probe [--tiny] SECTION [ARGUMENT]; --list prints the sections\n");
    return 2;
}
