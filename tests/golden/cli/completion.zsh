#compdef regatta
# zsh completion for regatta; made by 'regatta completion zsh'
_regatta()
{
	local -a names
	names=(
		'run:run a job file, or a command, and watch it'
		'ps:list the active runs'
		'status:show one run\: phase, nodes, metrics, verdict'
		'logs:print the output of a run'\''s nodes'
		'metrics:print first, last, best and mean of a run'\''s metrics'
		'events:print what happened in a run, in order'
		'report:write report.html, metrics.csv and summary.json of a run'
		'compare:compare the metrics of runs with those of the first'
		'resize:change how many nodes of a role a run has'
		'kill:cancel runs'
		'cleanup:cancel runs if needed and remove all their files'
		'ui:open the dashboard in a browser'
		'plan:show what a run would use\: resources, nodes, environment, limits'
		'convert:print a job file in the native form, also one of another system'
		'init:write a commented job file to start from'
		'explain:explain a key of the job file, or list them all'
		'completion:print the completion script for bash, zsh or fish'
		'master:run the master in the foreground, or stop it'
		'agent:let this machine join a master as a host'
		'hosts:list the hosts that have joined the master, or forget one'
		'context:name other masters and choose the one to talk to'
		'token:make, list or revoke tokens for callers over HTTP'
		'sim:simulate runs on a faulty cloud and check every invariant'
		'version:print the version'
		'help:show help for a command'
	)
	if ((CURRENT == 2)); then
		_describe command names
		return
	fi
	local dashes=${words[(i)--]}
	if ((dashes < CURRENT)); then
		shift $dashes words
		((CURRENT -= dashes))
		_normal
		return
	fi
	shift words
	((CURRENT--))
	case $words[1] in
	run)
		_arguments -S \
			''{-n,--count}'[number of nodes\: the job'\''s count]:N: ' \
			'*--set[change a key of the job, e.g. roles.trainer.count=8; may be repeated]:KEY=VALUE:{compadd -- $(regatta words keys 2>/dev/null)}' \
			'--name[the job'\''s name; the run is called NAME-xxxx]:NAME: ' \
			'--engine[where the nodes are\: local (default) or hosts; the job'\''s engine]:ENGINE: ' \
			''{-d,--detach}'[print the run'\''s id and return; the run goes on]' \
			''{-f,--follow}'[print the job'\''s output while it runs, as '\''node | line'\'']' \
			'--repeat[run the job N times, each a run of its own]:N: ' \
			'--parallel[with --repeat\: K runs at a time (default 1)]:K: ' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			'::FILE:_files'
		;;
	ps)
		_arguments -S \
			''{-a,--all}'[ended runs too]' \
			'--limit[at most N runs (default 50; 0\: all)]:N: ' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]'
		;;
	status)
		_arguments -S \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			'::RUN:{compadd -- $(regatta words runs 2>/dev/null)}'
		;;
	logs)
		_arguments -S \
			''{-f,--follow}'[go on until the node has ended]' \
			'--tail[only the last N lines]:N: ' \
			'--attempt[only this attempt of a node that was started again]:N: ' \
			'--merge[all nodes, each line as '\''node | line'\'']' \
			'--stdout[standard output only]' \
			'--stderr[standard error only]' \
			'--raw[raw bytes even on a terminal (control characters are escaped otherwise)]' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			'::RUN:{compadd -- $(regatta words runs 2>/dev/null)}' \
			'::NODE:{compadd -- $(regatta words nodes $line[1] 2>/dev/null)}'
		;;
	metrics)
		_arguments -S \
			'--node[only the metrics of this node]:NODE:{compadd -- $(regatta words nodes $line[1] 2>/dev/null)}' \
			'--host[samples of the nodes too\: cpu, memory, network, disk]' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			'::RUN:{compadd -- $(regatta words runs 2>/dev/null)}' \
			'::NAME: '
		;;
	events)
		_arguments -S \
			''{-f,--follow}'[go on until the run has ended]' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			'::RUN:{compadd -- $(regatta words runs 2>/dev/null)}'
		;;
	report)
		_arguments -S \
			''{-o,--to}'[write to DIR instead of the run'\''s directory]:DIR:_files' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			'::RUN:{compadd -- $(regatta words runs 2>/dev/null)}'
		;;
	compare)
		_arguments -S \
			'*--metric[this metric only; may be repeated]:NAME: ' \
			'--use[what a run gives for a metric\: median (default) or mean of its samples after the warm-up, last or best]:FIGURE:(median mean last best)' \
			'--threshold[a change up to PCT percent does not matter (default 5)]:PCT: ' \
			'--samples[test the samples of the runs as if they were independent]' \
			'--no-test[where the runs are too few to test, let the threshold decide]' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			'*:RUNS:{compadd -- $(regatta words runs 2>/dev/null)}'
		;;
	resize)
		_arguments -S \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			':RUN:{compadd -- $(regatta words runs 2>/dev/null)}' \
			'*:ROLE=N: '
		;;
	kill)
		_arguments -S \
			'--now[SIGKILL at once, without the grace period]' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			'*:RUN:{compadd -- $(regatta words runs 2>/dev/null)}'
		;;
	cleanup)
		_arguments -S \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			'*:RUN:{compadd -- $(regatta words runs 2>/dev/null)}'
		;;
	ui)
		_arguments -S \
			'--print[only print the link; open no browser]' \
			'--scope[what the browser may do\: read, submit or admin (default)]:SCOPE:(read submit admin)' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]'
		;;
	plan)
		_arguments -S \
			''{-n,--count}'[number of nodes\: the job'\''s count]:N: ' \
			'*--set[change a key of the job, e.g. roles.trainer.count=8; may be repeated]:KEY=VALUE:{compadd -- $(regatta words keys 2>/dev/null)}' \
			'--name[the job'\''s name; the run is called NAME-xxxx]:NAME: ' \
			'--engine[where the nodes are\: local (default) or hosts; the job'\''s engine]:ENGINE: ' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			''{-h,--help}'[show this help]' \
			'::FILE:_files'
		;;
	convert)
		_arguments -S \
			''{-n,--count}'[number of nodes\: the job'\''s count]:N: ' \
			'*--set[change a key of the job, e.g. roles.trainer.count=8; may be repeated]:KEY=VALUE:{compadd -- $(regatta words keys 2>/dev/null)}' \
			'--name[the job'\''s name; the run is called NAME-xxxx]:NAME: ' \
			'--engine[where the nodes are\: local (default) or hosts; the job'\''s engine]:ENGINE: ' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			''{-h,--help}'[show this help]' \
			'::FILE:_files'
		;;
	init)
		_arguments -S \
			''{-o,--to}'[write to this file (default job.toml; '\''-'\'' is standard output)]:FILE:_files' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			''{-h,--help}'[show this help]' \
			'::STRATEGY:{compadd -- $(regatta words strategies 2>/dev/null)}'
		;;
	explain)
		_arguments -S \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			''{-h,--help}'[show this help]' \
			'::KEY:{compadd -- $(regatta words keys 2>/dev/null)}'
		;;
	completion)
		_arguments -S \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			''{-h,--help}'[show this help]' \
			':SHELL:(bash zsh fish)'
		;;
	master)
		_arguments -S \
			'--listen[serve HTTPS for hosts and other clients at ADDR\:PORT; on 127.0.0.1 also plain HTTP (default\: plain HTTP on the next free port of 127.0.0.1 from 5436 on)]:ADDR\:PORT: ' \
			'--stop[stop the running master; its runs go on, and the next master takes them over]' \
			'--cancel[with --stop\: cancel the active runs first]' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			''{-h,--help}'[show this help]'
		;;
	agent)
		_arguments -S \
			'--join[the master\: https\://HOST\:PORT]:URL: ' \
			'--pin[the pin of the master'\''s key, as it prints it]:PIN: ' \
			'--token[the token for hosts; other users of this machine may see it]:TOKEN: ' \
			'--token-file[read the token from FILE ('\''-'\'' is standard input)]:FILE:_files' \
			'--name[the host'\''s name (default\: that of the machine)]:NAME: ' \
			'*--labels[what jobs may ask for, e.g. gpu=a100,room=2]:K=V,...: ' \
			'--dir[directory of the host'\''s nodes (default\: $REGATTA_HOME/joined/NAME)]:DIR:_files' \
			'--install[install and start a systemd unit instead\: of the machine for root, else of the user]' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			''{-h,--help}'[show this help]'
		;;
	hosts)
		_arguments -S \
			'--forget[remove a host that is gone from the list]:NAME: ' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]'
		;;
	context)
		_arguments -S \
			'--pin[with add\: the pin of the master'\''s key, as it prints it; without a pin, its certificate must be of a CA]:PIN: ' \
			'--token-file[with add\: read the token from FILE ('\''-'\'' is standard input)]:FILE:_files' \
			'--token[with add\: the token itself; other users of this machine may see it]:TOKEN: ' \
			'--no-check[with add\: do not ask the master]' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			''{-h,--help}'[show this help]' \
			':ACTION:(add list ls show use remove)' \
			'::NAME:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			'::URL: '
		;;
	token)
		_arguments -S \
			'--scope[with new\: what the token allows\: read, submit (read and submit runs), admin, or join (only as a host)]:SCOPE:(read submit admin join)' \
			'--expires[with new\: how long the token is valid, e.g. 7d]:TIME: ' \
			'--name[with new\: a name that says what the token is for]:NAME: ' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			':ACTION:(new list revoke)' \
			'::ID: '
		;;
	sim)
		_arguments -S \
			'--seeds[runs to simulate (default 100)]:N: ' \
			'--nodes[nodes of each run (default 3)]:M: ' \
			'--seed[the first seed (default 1)]:S: ' \
			'*'{-v,--verbose}'[a line for each seed; -vv\: its whole history]' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			''{-h,--help}'[show this help]'
		;;
	version)
		_arguments -S \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			''{-h,--help}'[show this help]'
		;;
	help)
		_arguments -S \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			''{-h,--help}'[show this help]' \
			'::COMMAND:(run ps status logs metrics events report compare resize kill cleanup ui plan convert init explain completion master agent hosts context token sim version help)'
		;;
	esac
}
if [ "$funcstack[1]" = _regatta ]; then
	_regatta "$@"
else
	compdef _regatta regatta
fi
