/* session.c - see session.h. */
#include "session/session.h"

#include <stdio.h>

_Atomic(struct session *) session_used_last;

const char *session_name(int64_t id, char name[SESSION_NAME])
{
    if (session_is_grape5(id))
        (void)snprintf(name, SESSION_NAME, "GRAPE-5 cluster %lld",
                       (long long)(id - SESSION_GRAPE5));
    else
        (void)snprintf(name, SESSION_NAME, "cluster %lld", (long long)id);
    return name;
}
