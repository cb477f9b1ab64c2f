/* bridge.c - starts Python in the process, if a device needs it; see core/device.h.
 *
 * Python runs without the host's floating-point traps. If it was started here, each call runs on a
 * new thread: the host's thread may have a small stack, and its signal handlers must not run inside
 * Python. Nothing is ever shut down, since the host may be exiting.
 */
#include <dlfcn.h>
#include <fenv.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "python/embed.h"
#include "core/error.h"
#include "python/find_python.h"
#include "python/gil.h"
#include "core/options.h"
#include "util/threads.h"

enum { STACK = 16 << 20 }; /* of threads that call Python or the driver */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* Id of the process that entered the driver or Python; a forked child must not. */
static _Atomic int process;
static _Atomic int tried;
static int code; /* result of the start, for later callers */
static char text[DEVICE_TEXT];
static _Atomic int embedded; /* Python was started here, not by the host */
static const struct bridge *python;
static struct interpreter found;
static _Thread_local int depth; /* of calls into Python */

static const char FORKED[] = "a forked child cannot use the device";
static const char FAILED[] = "Python failed; stderr may say why";

/* A call into Python, which may be made on another thread. */
struct request {
    int64_t (*call)(const struct request *);
    int mode, count;
    int is_close; /* which Python has done if it has ended */
    struct device *device;
    const char *const *names;
    void **functions;
    uint64_t bytes, *address; /* bytes: or the address to release */
    struct tree_request *tree;
    void *library;
    int64_t result;
};

static int refuse(int why, const char *words, const char *more)
{
    error_copy(words, text, sizeof text);
    const size_t n = strlen(text);
    if (more) error_copy(more, text + n, (int)(sizeof text - n));
    return why;
}

/* ---- the driver ---- */

struct driver_start {
    void *library;     /* libcuda.so.1 */
    int cuda;          /* the major version of CUDA that the driver supports */
    const char *words; /* why there is no device; NULL if there is one */
    const char *more;  /* details, or NULL */
    int meanwhile;     /* the thread is still to be joined */
    pthread_t thread;
};

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

/* Waits for the end of the start; 0 or G6X_E_NO_DEVICE as below. */
static int end_driver(struct driver_start *d)
{
    if (d->meanwhile) (void)pthread_join(d->thread, NULL);
    d->meanwhile = 0;
    return d->words ? G6X_E_NO_DEVICE : 0;
}

/* Starts the driver, which takes 0.2 s. If the system has device files, the start goes on in a
 * thread, so that Python can be started meanwhile. 0, or G6X_E_NO_DEVICE with `words`. */
static int begin_driver(struct driver_start *d)
{
    int (*version)(int *); /* may be called before cuInit */
    *(void **)&version = dlsym(d->library, "cuDriverGetVersion");
    if (version && version(&d->cuda)) d->cuda = 0;
    d->cuda /= 1000;
    /* Device files: of the kernel module, or of Windows (WSL). */
    const int is_likely = !access("/dev/nvidiactl", F_OK) || !access("/dev/dxg", F_OK);
    d->meanwhile = is_likely && !threads_start(&d->thread, STACK, look, d);
    if (!d->meanwhile) (void)look(d);
    return d->meanwhile ? 0 : end_driver(d);
}

/* ---- the start ---- */

static int load(const char *loaded, embed_starter **starter)
{
    const int keep = RTLD_NOW | RTLD_NODELETE;
    if (!loaded && !dlopen(found.libpython, keep | RTLD_GLOBAL))
        return refuse(G6X_E_PYTHON, "libpython cannot be loaded: ", dlerror());
    void *module = dlopen(found.bridge, keep | RTLD_LOCAL);
    if (!module) return refuse(G6X_E_PYTHON, "the bridge cannot be loaded: ", dlerror());
    *(void **)starter = dlsym(module, EMBED_STARTER);
    return *starter ? 0 : refuse(G6X_E_PYTHON, "the bridge is none of grape6py: ", found.bridge);
}

static int start_python(int cuda)
{
    char site[PLACE], version[VERSION];
    const char *loaded = python_gil_version(version);
    embed_starter *starter = NULL;
    const struct process_options *options = options_process();
    const int why = python_gil_python_runs()
                        ? python_find_python_bridge(&found, loaded)
                        : python_find_python(&found, options->python, loaded, cuda);
    if (why) return refuse(why, found.reason, NULL);
    const int failed = load(loaded, &starter);
    if (failed) return failed;
    error_copy(found.package, site, PLACE);
    python_find_python_up(site, 1);
    const char *name = strrchr(site, '/');
    const int shared = name && strstr(name, "-packages");
    struct embed how = {.build = EMBED_BUILD,
                        .executable = found.executable,
                        .package = found.package,
                        .site = shared ? site : NULL,
                        .devices = options->devices};
    const int result = starter(&how, &python);
    if (result > 0 && python) return 0;
    python = NULL;
    return refuse(result < 0 ? result : G6X_E_PYTHON, how.text[0] ? how.text : FAILED, NULL);
}

/* Starts Python while the driver starts. An error of the driver takes precedence. */
static int64_t try_to_start(const struct request *e)
{
    struct driver_start driver = {.library = e->library};
    int why = begin_driver(&driver);
    if (!why) {
        const int of_python = start_python(driver.cuda);
        why = end_driver(&driver);
        if (!why) return of_python;
    }
    python = NULL;
    return refuse(why, driver.words, driver.more);
}

/* ---- calls ---- */

static void *perform(void *argument)
{
    struct request *e = argument;
    (void)fesetenv(FE_DFL_ENV);
    depth++;
    e->result = e->call(e);
    depth--;
    return NULL;
}

/* Runs a request: on a new thread with its own stack and all signals blocked if it is to be `apart`
 * and one can be created, or here. */
static void run(struct request *e, int apart)
{
    fenv_t host;
    pthread_t thread;
    (void)fegetenv(&host);
    if (apart && !threads_start(&thread, STACK, perform, e))
        (void)pthread_join(thread, NULL);
    else
        (void)perform(e);
    (void)fesetenv(&host);
}

static int64_t enter(struct request *e)
{
    e->device->text[0] = 0;
    if (atomic_load(&process) != (int)getpid()) {
        error_copy(FORKED, e->device->text, DEVICE_TEXT);
        return G6X_E_FORK;
    }
    if (!python_gil_python_runs()) { /* the host's Python has ended before the host */
        error_copy("Python has ended", e->device->text, DEVICE_TEXT);
        return e->is_close ? 1 : G6X_E_PYTHON;
    }
    run(e, embedded);
    if (e->result) return e->result;
    error_copy(FAILED, e->device->text, DEVICE_TEXT);
    return G6X_E_PYTHON;
}

/* Defines a function of struct bridge: it has Python make a call, with what it puts into `e`. */
#define GUARDED(name, call, parameters, ...)                                                       \
    static int64_t call_##name(const struct request *e) { return python->call; }                   \
    static int64_t name parameters                                                                 \
    {                                                                                              \
        return enter(&(struct request){call_##name, .device = device, __VA_ARGS__});               \
    }
GUARDED(open_device, open(e->count, e->device), (int32_t choice, struct device *device),
        .count = choice)
GUARDED(kernels, kernels(e->device, e->mode, e->count, e->names, e->functions),
        (struct device * device, int32_t mode, int32_t count, const char *const *names,
         void **functions),
        .mode = mode, .count = count, .names = names, .functions = functions)
GUARDED(allocate, allocate(e->device, e->count, e->bytes, e->address),
        (struct device * device, int32_t kind, uint64_t bytes, uint64_t *address), .count = kind,
        .bytes = bytes, .address = address)
GUARDED(release, release(e->device, e->bytes), (struct device * device, uint64_t address),
        .bytes = address)
GUARDED(tree, tree(e->device, e->tree), (struct device * device, struct tree_request *request),
        .tree = request)
GUARDED(close_device, close(e->device, e->count), (struct device * device, int32_t lost),
        .count = lost, .is_close = 1)

static int has_interpreter(struct dl_phdr_info *loaded, size_t size, void *data)
{
    (void)size, (void)data;
    for (int k = 0; k < loaded->dlpi_phnum; k++)
        if (loaded->dlpi_phdr[k].p_type == PT_INTERP) return 1;
    return 0;
}

/* Why the driver is not even looked for, or NULL. A static program that loads one crashes. */
static const char *no_driver_because(void)
{
    if (options_is_privileged())
        return "a set-uid program uses no GPU: Python and CuPy would read files of the user's";
    return dl_iterate_phdr(has_interpreter, NULL)
               ? NULL
               : "a program linked with -static uses no GPU, which needs the dynamic linker";
}

/* Starts Python once and keeps the result. If the host is Python, it may call with the GIL held
 * (from an extension that does not release it), so the GIL is released before `mutex` is locked. */
static void start_once(void)
{
    /* a Python that another thread is just starting here is not the host's */
    const int hosted = python_gil_python_runs() && !atomic_load(&embedded);
    if (!hosted) atomic_store(&embedded, 1);
    void *state = hosted ? python_gil_release() : NULL;
    (void)pthread_mutex_lock(&mutex);
    if (!tried) {
        const char *why_not = no_driver_because();
        struct request start = {.call = try_to_start};
        if (why_not) {
            start.result = refuse(G6X_E_NO_DEVICE, why_not, NULL);
        } else if ((start.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL))) {
            atomic_store(&process, (int)getpid());
            run(&start, !hosted);
        } else {
            start.result =
                refuse(G6X_E_NO_DEVICE,
                       "no NVIDIA driver (libcuda.so.1) here; backend auto goes without", NULL);
        }
        code = (int)start.result;
        atomic_store(&tried, 1);
    }
    (void)pthread_mutex_unlock(&mutex);
    python_gil_acquire(state);
}

int python_bridge_may_find_gpu(void)
{
    static _Atomic int seen; /* 1: no, 2: yes */
    if (atomic_load(&tried)) return !code;
    if (no_driver_because()) return 0;
    if (!atomic_load(&seen)) {
        void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
        atomic_store(&seen, driver ? 2 : 1);
    }
    return atomic_load(&seen) == 2;
}

void python_bridge_after_fork(void) { (void)pthread_mutex_init(&mutex, NULL); }

int python_bridge_runs(void) { return depth > 0; }

static const struct bridge guarded = {open_device, kernels, allocate, release, tree, close_device};

const struct bridge *python_bridge_start(int requested, struct error *err)
{
    const int entered = atomic_load(&process), fine = !entered || entered == (int)getpid();
    if (fine && !atomic_load(&tried)) start_once();
    const int failed = atomic_load(&tried) && code;
    if (fine && !failed) return &guarded;
    const int why = failed ? code : G6X_E_FORK;
    const char *words = failed ? text : FORKED;
    if (requested) {
        (void)error_set(err, why, "%s", words);
    } else { /* not an error, and not printed: the session continues without a device */
        err->code = why;
        error_copy(words, err->text, ERROR_TEXT);
    }
    return NULL;
}
