/* driver.h - starts the NVIDIA driver, on a separate thread where that saves time. */
#pragma once

#include <pthread.h>

enum { DRIVER_STACK = 16 << 20 }; /* of threads that call Python or the driver */

struct driver_start {
    void *library;     /* libcuda.so.1 */
    int cuda;          /* the major version of CUDA that the driver supports */
    const char *words; /* why there is no device; NULL if there is one */
    const char *more;  /* details, or NULL */
    int meanwhile;     /* the thread is still to be joined */
    pthread_t thread;
};

/* Starts the driver, which takes 0.2 s. If the system has device files, the start goes on in a
 * thread, so that Python can be started meanwhile. 0, or G6X_E_NO_DEVICE with `words`. */
int python_driver_begin(struct driver_start *d);
/* Waits for the end of the start; 0 or G6X_E_NO_DEVICE as above. */
int python_driver_end(struct driver_start *d);
