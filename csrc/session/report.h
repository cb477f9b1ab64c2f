/* report.h - what GRAPE6_LOG=info tells of a session: what it uses, and how full its calls were. */
#pragma once

struct session;

/* At its open; a line equal to the last one is left out. The registry and
 * the session are locked. */
void session_report_start(const struct session *s);
/* At its close or at the exit of the process that opened it: once, if there were calls. */
void session_report_calls(struct session *s);
