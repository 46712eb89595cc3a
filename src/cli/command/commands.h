#pragma once
/* commands - the function of each row of the table; one file per command. */
struct cli_call;

int command_run(const struct cli_call *c);
int command_convert(const struct cli_call *c);
int command_plan(const struct cli_call *c);
int command_ps(const struct cli_call *c);
int command_status(const struct cli_call *c);
int command_logs(const struct cli_call *c);
int command_metrics(const struct cli_call *c);
int command_events(const struct cli_call *c);
int command_report(const struct cli_call *c);
int command_compare(const struct cli_call *c);
int command_resize(const struct cli_call *c);
int command_kill(const struct cli_call *c);
int command_cleanup(const struct cli_call *c);
int command_init(const struct cli_call *c);
int command_explain(const struct cli_call *c);
int command_completion(const struct cli_call *c);
int command_sim(const struct cli_call *c);
int command_master(const struct cli_call *c);
int command_ui(const struct cli_call *c);
int command_context(const struct cli_call *c);
int command_token(const struct cli_call *c);
int command_agent(const struct cli_call *c);
int command_hosts(const struct cli_call *c);
int command_node_agent(const struct cli_call *c);
int command_version(const struct cli_call *c);
int command_help(const struct cli_call *c);
int command_words(const struct cli_call *c);
