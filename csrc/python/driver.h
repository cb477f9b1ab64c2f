/* driver.h - the NVIDIA driver is started, on a thread of its own where that saves time. */
#pragma once

#include <pthread.h>

struct driver_start {
    void *library;     /* libcuda.so.1 */
    int cuda;          /* the major version of CUDA that the driver is good for */
    const char *words; /* why there is no device, and more of that or NULL; NULL if there is one */
    const char *more;
    int meanwhile; /* it goes on in the thread */
    pthread_t thread;
};

/* Starts the driver, which takes a fifth of a second. Where the system shows files of a device it
 * only begins, so that Python can be started meanwhile. 0, or G6X_E_NO_DEVICE with the words. */
int python_driver_begin(struct driver_start *d);
/* Waits for that; 0 or G6X_E_NO_DEVICE as above. */
int python_driver_end(struct driver_start *d);
/* A thread with all signals blocked, which are the host's, and with enough stack; 0 if it runs. */
int python_driver_thread(pthread_t *thread, void *(*run)(void *), void *argument);
