#pragma once
/* commands - the function of each row of the table; one file per command. */
struct call;

int command_run(const struct call *c);
int command_plan(const struct call *c);
int command_ps(const struct call *c);
int command_status(const struct call *c);
int command_logs(const struct call *c);
int command_metrics(const struct call *c);
int command_events(const struct call *c);
int command_report(const struct call *c);
int command_compare(const struct call *c);
int command_kill(const struct call *c);
int command_cleanup(const struct call *c);
int command_init(const struct call *c);
int command_explain(const struct call *c);
int command_completion(const struct call *c);
int command_sim(const struct call *c);
int command_master(const struct call *c);
int command_ui(const struct call *c);
int command_token(const struct call *c);
int command_agent(const struct call *c);
int command_version(const struct call *c);
int command_help(const struct call *c);
int command_words(const struct call *c);
