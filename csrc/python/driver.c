/* driver.c - see driver.h. */
#include "python/driver.h"

#include <dlfcn.h>
#include <stddef.h>
#include <unistd.h>

#include "core/error.h"
#include "util/threads.h"

/* Starts the driver and checks whether it sees a device. */
static void *look(void *start)
{
    struct driver_start *d = start;
    int (*init)(unsigned), (*count)(int *), (*say)(int, const char **);
    int devices = 0;
    *(void **)&init = dlsym(d->library, "cuInit");
    *(void **)&count = dlsym(d->library, "cuDeviceGetCount");
    *(void **)&say = dlsym(d->library, "cuGetErrorString");
    if (!init || !count || !say) {
        d->words = "libcuda.so.1 is no NVIDIA driver";
        return NULL;
    }
    int error = init(0);
    if (!error) error = count(&devices);
    if (error) {
        d->words = "the NVIDIA driver says: ";
        if (say(error, &d->more) || !d->more) d->more = "failed";
    } else if (devices <= 0) {
        d->words = "the NVIDIA driver sees no device";
    }
    return NULL;
}

int python_driver_begin(struct driver_start *d)
{
    int (*version)(int *); /* may be called before cuInit */
    *(void **)&version = dlsym(d->library, "cuDriverGetVersion");
    if (version && version(&d->cuda)) d->cuda = 0;
    d->cuda /= 1000;
    /* Device files: of the kernel module, or of Windows (WSL). */
    const int is_likely = !access("/dev/nvidiactl", F_OK) || !access("/dev/dxg", F_OK);
    d->meanwhile = is_likely && !threads_start(&d->thread, DRIVER_STACK, look, d);
    if (!d->meanwhile) (void)look(d);
    return d->meanwhile ? 0 : python_driver_end(d);
}

int python_driver_end(struct driver_start *d)
{
    if (d->meanwhile) (void)pthread_join(d->thread, NULL);
    d->meanwhile = 0;
    return d->words ? G6X_E_NO_DEVICE : 0;
}
