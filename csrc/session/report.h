/* report.h - what GRAPE6_LOG=info prints of a session: its settings, how full its calls were. */
#pragma once

struct session;

/* At open; a line equal to the last one is not printed. The registry and the session are locked. */
void session_report_start(const struct session *s);
/* At close or at the exit of the process that opened it: once, if there were calls. */
void session_report_calls(struct session *s);
