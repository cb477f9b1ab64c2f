/* embed.c - the C side of the bridge module: starts Python if none runs in the process, then cffi's
 * part. cffi compiles it together with code generated from device.h and embed.h, behind the
 * declarations of grape6_open and the other functions of Python (declare.py).
 *
 * Python is started here and not by cffi: cffi would find another one by PATH and PYTHONHOME, and
 * end the process where that is broken.
 */
#include "python/embed.h"

#include <signal.h>

static int cffi_start_python(void);

static const struct bridge functions = {grape6_open,    grape6_kernels, grape6_allocate,
                                        grape6_release, grape6_tree,    grape6_close};

/* Copies the text of the pending Python exception, and clears it. */
static int embed_failed(struct embed *how, const char *what)
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    PyObject *words = value ? PyObject_Str(value) : NULL;
    const char *utf8 = words ? PyUnicode_AsUTF8(words) : NULL;
    (void)snprintf(how->text, sizeof how->text, "%s: %s", what, utf8 ? utf8 : "no reason given");
    Py_XDECREF(words);
    Py_XDECREF(kind);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    PyErr_Clear();
    return -1;
}

static int embed_status(struct embed *how, PyStatus status)
{
    if (!PyStatus_Exception(status)) return 0;
    (void)snprintf(how->text, sizeof how->text, "Python did not start: %s",
                   status.err_msg ? status.err_msg : "no reason given");
    return -1;
}

/* Imports the module _signal, which always sets a handler of SIGINT, even in this configuration.
 * Imported now, and not later by a package, so that the host's handler can be restored. */
static int embed_signals(struct embed *how)
{
    struct sigaction own;
    if (sigaction(SIGINT, NULL, &own)) return 0;
    PyObject *module = PyImport_ImportModule("_signal");
    (void)sigaction(SIGINT, &own, NULL);
    if (!module) return embed_failed(how, "Python's signals");
    Py_DECREF(module);
    return 0;
}

/* Starts Python isolated: no environment variables, no user's folders, no locale, no signal
 * handlers, no arguments. The executable determines the environment. */
static int embed_initialize(struct embed *how)
{
    PyPreConfig early;
    PyConfig config;
    PyPreConfig_InitIsolatedConfig(&early);
    early.utf8_mode = 1;
    if (embed_status(how, Py_PreInitialize(&early))) return -1;
    PyConfig_InitIsolatedConfig(&config);
    config.install_signal_handlers = 0;
    config.buffered_stdio = 0; /* nothing is flushed when the host exits */
    PyStatus status = PyConfig_SetBytesString(&config, &config.executable, how->executable);
    if (!PyStatus_Exception(status)) status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (embed_status(how, status) || embed_signals(how)) return -1;
    PyObject *error = PySys_GetObject("stderr"); /* stdout belongs to the host */
    if (error && (PySys_SetObject("stdout", error) || PySys_SetObject("__stdout__", error)))
        return embed_failed(how, "Python's output");
    PyObject *path = PySys_GetObject("path");
    PyObject *site = how->site ? PyUnicode_DecodeFSDefault(how->site) : NULL;
    const int known = site && path ? PySequence_Contains(path, site) : 1;
    const int added = known ? 0 : PyList_Append(path, site);
    Py_XDECREF(site);
    return known < 0 || added ? embed_failed(how, "sys.path") : 0;
}

/* Imports cffi here first: cffi prints a long message if its own import fails. Until Python 3.12
 * cffi's lock is the version tag of capsules, which Python gives them when an attribute of one is
 * looked up: cffi would then wait for ever, so the tag is taken away. */
static int embed_import(struct embed *how)
{
#if PY_VERSION_HEX < 0x030C0000
    PyType_Modified(&PyCapsule_Type);
#endif
    PyObject *module = PyImport_ImportModule("_cffi_backend");
    if (!module) return embed_failed(how, "cffi cannot be imported");
    Py_DECREF(module);
    return 0;
}

__attribute__((visibility("default"))) int grape6_bridge_start(struct embed *how,
                                                               const struct bridge **bridge)
{
    int failed;
    if (how->build != EMBED_BUILD) {
        (void)snprintf(how->text, sizeof how->text,
                       "libgrape6.so and its bridge are of different builds: build both again");
        return -1;
    }
    if (Py_IsInitialized()) {
        const PyGILState_STATE state = PyGILState_Ensure();
        failed = embed_import(how);
        PyGILState_Release(state);
    } else {
        failed = embed_initialize(how);
        if (!failed) failed = embed_import(how);
        if (Py_IsInitialized()) (void)PyEval_SaveThread();
    }
    if (failed || cffi_start_python() < 0) return 0;
    const int64_t result = grape6_prepare(how);
    if (result > 0) *bridge = &functions;
    return (int)result;
}
