/* registry.h - opens, finds, locks and closes sessions by their ids. It also has what belongs to no
 * session: the error of the process, and the options of future sessions. */
#pragma once

#include "session/session.h"

/* As a backend: the one that the environment names. */
enum { SESSION_ENVIRONMENT = -1 };
/* Opens an id, if it is not open. backend: BACKEND_* or SESSION_ENVIRONMENT. 0 or an error code. */
int session_registry_open(int64_t id, int backend, int device);
int session_registry_close(int64_t id);
/* The open session of an id, locked; NULL with *code if there is none. */
struct session *session_registry_take(int64_t id, int *code);
void session_registry_release(struct session *s);
/* The same at the end of a call; returns the call's code. */
int session_registry_leave(struct session *s, int code);
/* Resets an id, if it is open: `auto` may choose again. */
void session_registry_reset(int64_t id);
/* Copies the error record of an id, or of the process, under its lock; NULL: clears it. */
void session_registry_error(int64_t id, struct error *copy);
/* Copies its text; returns its code. */
int session_registry_last_error(int64_t id, char *buffer, int length);
/* Returns the result of `call` on the locked session of an id and further arguments; or the error
 * code, if the id has no session. */
#define ON_SESSION(id, call, ...) ON_SESSION_OR((void)0, id, call, ##__VA_ARGS__)
/* The same; `missing` is done if the id has no session. */
#define ON_SESSION_OR(missing, id, call, ...)                                                      \
    __extension__({                                                                                \
        int code_of_id;                                                                            \
        struct session *session_of_id = session_registry_take(id, &code_of_id);                    \
        if (!session_of_id) missing;                                                               \
        session_of_id ? session_registry_leave(session_of_id, call(session_of_id, ##__VA_ARGS__))  \
                      : code_of_id;                                                                \
    })
/* Records an error that belongs to no session; returns its code. */
int session_registry_refuse(int code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same for a warning. */
void session_registry_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Whether any id is open. */
int session_registry_any_open(void);
/* Initial options of future sessions, whole or real, for calls while no id is open. */
struct options session_registry_initial(void);
int session_registry_set_initial(int key, int is_whole, double value);
/* Id of the session that was used last. */
int64_t session_registry_recent(void);
