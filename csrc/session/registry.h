/* registry.h - the open sessions by their ids: opened, found, locked and closed, and what belongs
 * to no session: its error, and the options of those to come. */
#pragma once

#include "session/session.h"

/* Opens, or is content with, an id. 0 or an error code. The backend: BACKEND_*, or what the
 * environment says. */
enum { SESSION_ENVIRONMENT = -1 };
int session_registry_open(int64_t id, int backend);
int session_registry_close(int64_t id);
/* The open session of an id, locked; NULL with *code if there is none. */
struct session *session_registry_take(int64_t id, int *code);
void session_registry_release(struct session *s);
/* The same at the end of a call, whose code it gives back. */
int session_registry_leave(struct session *s, int code);
/* The caller resets an id, if it is open: `auto` may choose again. */
void session_registry_reset(int64_t id);
/* Fault record of an id, or of the process; copied under lock. */
void session_registry_error(int64_t id, struct error *copy);
void session_registry_clear_error(int64_t id);
/* What `call` gives of the session of an id, which is locked for it, and of further arguments; or
 * the code of an id that has none. */
#define ON_SESSION(id, call, ...)                                                                  \
    __extension__({                                                                                \
        int code_of_id;                                                                            \
        struct session *session_of_id = session_registry_take(id, &code_of_id);                    \
        session_of_id ? session_registry_leave(session_of_id, call(session_of_id, ##__VA_ARGS__))  \
                      : code_of_id;                                                                \
    })
/* Records an error that belongs to no session; its code. */
int session_registry_refuse(int code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same of a warning. */
void session_registry_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Whether some id is open; before that, options set the first values of sessions to come. */
int session_registry_any_open(void);
struct options session_registry_initial(void);
int session_registry_set_initial(int key, int value);
int session_registry_set_initial_double(int key, double value);
/* Id of the session that was used last. */
int64_t session_registry_recent(void);
