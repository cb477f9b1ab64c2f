/* Compiled together with the bridge of csrc: what a backend does with it, for the tests. */
#include "bridge_calls.h"

#include <stdio.h>
#include <string.h>

static int use_memory(const struct bridge *b, struct device *d, int kind)
{
    char out[64] = "not zero", in[64] = "something";
    uint64_t address = 0;
    const struct driver *driver = &d->driver;
    int64_t code = b->allocate(d, kind, sizeof out, &address);
    if (code <= 0) return (int)code;
    int bad = !address || driver->copy_out(out, address, sizeof out, d->stream[0]);
    for (size_t k = 0; k < sizeof out; k++) bad |= out[k] != 0;
    bad |= driver->copy_in(address, in, sizeof in, d->stream[0]);
    bad |= driver->copy_out(out, address, sizeof out, d->stream[0]);
    while (driver->query(d->stream[0]) == DRIVER_NOT_READY) continue;
    bad |= memcmp(in, out, sizeof in) != 0;
    code = b->release(d, address);
    return code <= 0 ? (int)code : bad ? 90 : 0;
}

static int use_device(const struct bridge *b, struct device *d)
{
    static const char *const names[] = {"probe"};
    void *functions[1] = {NULL};
    for (int mode = 0; mode < 3; mode++) {
        const int64_t code = b->kernels(d, mode, 1, names, functions);
        if (code <= 0) return (int)code;
        if (!functions[0]) return 91;
    }
    const int code = use_memory(b, d, MEMORY_DEVICE);
    return code ? code : use_memory(b, d, MEMORY_PINNED);
}

int bridge_calls(int wanted, char *text)
{
    struct error fault = {0};
    struct device device = {0};
    const struct bridge *b = python_bridge_start(wanted, &fault);
    (void)snprintf(text, ERROR_TEXT, "%s", fault.text);
    if (!b) return fault.code;
    int64_t code = b->open(3, &device);
    (void)snprintf(text, ERROR_TEXT, "%s", device.text);
    if (code <= 0) return (int)code;
    if (code != device.cookie || !device.context || !device.stream[0] || !device.name[0]) return 92;
    const int used = use_device(b, &device);
    (void)snprintf(text, ERROR_TEXT, "%s", device.text);
    code = b->close(&device, 0);
    if (used || code > 0) return used;
    (void)snprintf(text, ERROR_TEXT, "%s", device.text);
    return (int)code;
}

int bridge_calls_(void)
{
    char text[ERROR_TEXT];
    const int code = bridge_calls(1, text);
    if (code) (void)fprintf(stderr, "%d: %s\n", code, text);
    return code;
}
