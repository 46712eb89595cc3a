#compdef regatta
# zsh completion for regatta; made by 'regatta completion zsh'
_regatta()
{
	local -a names
	names=(
		'run:run a job file, or a command, and watch it'
		'rerun:run a run again, from its record'
		'attach:watch a run that was started before, as '\''regatta run'\'' does'
		'wait:wait until runs have ended, and print how'
		'ps:list the active runs'
		'status:show one run\: phase, nodes, metrics, verdict'
		'logs:print the output of a run'\''s nodes'
		'metrics:print first, last, best and mean of a run'\''s metrics'
		'events:print what happened in a run, in order'
		'report:write report.html, metrics.csv and summary.json of a run'
		'outputs:list the files that a run has kept, with size and SHA-256'
		'export:export the metrics of a run for other programs'
		'cp:copy files that a run has kept to this machine'
		'suite:run a set of jobs with one report\: a matrix of values, repeats, experiments'
		'compare:compare the metrics of runs or suites with those of the first'
		'cost:what a run has cost, by role, with the share of time in which its machines were idle'
		'resize:change how many nodes of a role a run has'
		'tag:put tags on a run, or take them off'
		'note:write a note on a run'
		'exec:run a command on a node of a run, beside its job'
		'kill:cancel runs'
		'cleanup:cancel runs if needed and remove all their files'
		'prune:remove ended runs that are old, or for which there is no room'
		'ui:open the dashboard in a browser'
		'plan:show what a run would use\: resources, nodes, environment, limits, inputs'
		'convert:print a job file in the native form, also one of another system'
		'manifests:print the objects of Kubernetes that a job is, for kubectl apply'
		'paddle:the flags of Paddle'\''s AWS benchmark tool\: parameter servers and trainers on EC2'
		'init:write a commented job file to start from'
		'explain:explain a key of the job file, or list them all'
		'completion:print the completion script for bash, zsh or fish'
		'master:run the master in the foreground, or stop it'
		'agent:let this machine join a master as a host'
		'hosts:list the hosts that have joined the master, or forget one'
		'doctor:check whether a run could start, and say what to do if not'
		'gc:remove what runs have left behind in a cloud or cluster'
		'iam-policy:print the permissions that an engine needs, as a policy document'
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
			'*--env[a variable of every node, over those of the job file; may be repeated]:NAME=VALUE: ' \
			'*--env-file[variables from a file of NAME=VALUE lines; --env wins over it]:FILE:_files' \
			'*--tag[a word on the run, to find it by; may be repeated]:TAG: ' \
			'--name[the job'\''s name; the run is called NAME-xxxx]:NAME: ' \
			'--engine[where the nodes are\: local (default), hosts, aws.ec2, kubernetes; the job'\''s engine]:ENGINE: ' \
			'--kube-context[context of the kubeconfig, for engine kubernetes]:NAME: ' \
			'--namespace[namespace of the cluster, for engine kubernetes]:NAME: ' \
			'--prices[prices of machines, CSV with the columns type and usd_per_hour, in place of those in the program]:FILE:_files' \
			''{-d,--detach}'[print the run'\''s id and return; the run goes on]' \
			''{-f,--follow}'[print the job'\''s output while it runs, as '\''node | line'\'']' \
			'--no-wait[refuse at once (exit code 5) what would have to wait in the queue\: see `resources`]' \
			'--repeat[run the job N times, each a run of its own]:N: ' \
			'--parallel[with --repeat\: K runs at a time (default 1)]:K: ' \
			'--dry-run[run nothing\: print what '\''regatta plan'\'' prints]' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			'::FILE:_files'
		;;
	rerun)
		_arguments -S \
			'*--set[change a key of the job, e.g. roles.trainer.count=8; may be repeated]:KEY=VALUE:{compadd -- $(regatta words keys 2>/dev/null)}' \
			'*--env[a variable of every node, over those of the job file; may be repeated]:NAME=VALUE: ' \
			'*--env-file[variables from a file of NAME=VALUE lines; --env wins over it]:FILE:_files' \
			'*--tag[a word on the run, to find it by; may be repeated]:TAG: ' \
			'--name[the job'\''s name; the run is called NAME-xxxx]:NAME: ' \
			'--engine[where the nodes are\: local (default), hosts, aws.ec2, kubernetes; the job'\''s engine]:ENGINE: ' \
			''{-d,--detach}'[print the run'\''s id and return; the run goes on]' \
			''{-f,--follow}'[print the job'\''s output while it runs, as '\''node | line'\'']' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			':RUN:{compadd -- $(regatta words runs 2>/dev/null)}'
		;;
	attach)
		_arguments -S \
			''{-f,--follow}'[print the job'\''s output while it runs, as '\''node | line'\'']' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			'::RUN:{compadd -- $(regatta words runs 2>/dev/null)}'
		;;
	wait)
		_arguments -S \
			'--job-code[end with the exit code of the job where it failed\: that of the node, 128 + N after signal N]' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			'*:RUN:{compadd -- $(regatta words runs 2>/dev/null)}'
		;;
	ps)
		_arguments -S \
			''{-a,--all}'[ended runs too]' \
			'--limit[at most N runs (default 50; 0\: all)]:N: ' \
			'*--state[only runs in this state\: active, ended, running, succeeded, failed, cancelled and so on; may be repeated]:STATE: ' \
			'--name[only runs whose name or id is like this, e.g. '\''resnet-*'\'']:GLOB:{compadd -- $(regatta words runs 2>/dev/null)}' \
			'*--tag[only runs with this tag; with all, if repeated]:TAG: ' \
			'--since[only runs that were started in this time, e.g. 2d or 90m]:AGE: ' \
			'--engine[only runs of this engine, e.g. local or '\''aws.*'\'']:GLOB: ' \
			''{-w,--watch}'[show the list again when it changes, until Ctrl-C]' \
			'--params[with a column of the runs'\'' parameters]' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]'
		;;
	status)
		_arguments -S \
			'--exit-code[end with the run'\''s exit code; 8 if it has none yet]' \
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
			'--since[only what came in the last e.g. 5m, or since a time such as 2026-01-31T12\:00\:00Z]:TIME: ' \
			'--timestamps[each line with the time at which the master got it, in UTC]' \
			'--grep[only lines that have this regular expression (PCRE), of those that --tail leaves]:RE: ' \
			'--node[only nodes with such names, e.g. '\''trainer-*'\'']:GLOB:{compadd -- $(regatta words nodes $line[1] 2>/dev/null)}' \
			'--merge[all nodes, each line as '\''node | line'\'']' \
			'--stdout[standard output only]' \
			'--stderr[standard error only]' \
			'--raw[raw bytes even on a terminal (control characters are escaped otherwise)]' \
			'--exit-code[end with the run'\''s exit code; 8 if it has none yet; with -f its end is waited for]' \
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
			'--exit-code[end with the run'\''s exit code; 8 if it has none yet; with -f its end is waited for]' \
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
	outputs)
		_arguments -S \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			'::RUN:{compadd -- $(regatta words runs 2>/dev/null)}'
		;;
	export)
		_arguments -S \
			'--to[csv or tensorboard\: into a directory; mlflow\: to a server]:WHERE:(csv tensorboard mlflow)' \
			'--experiment[of MLflow; without it, that of the job]:NAME: ' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			':RUN:{compadd -- $(regatta words runs 2>/dev/null)}' \
			'::DIR|URL:_files'
		;;
	cp)
		_arguments -S \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			':RUN:PATH:{compadd -- $(regatta words runs 2>/dev/null)}' \
			':DEST:_files'
		;;
	suite)
		_arguments -S \
			''{-d,--detach}'[with run and resume\: print the suite'\''s id and return; the suite goes on]' \
			'*--tag[with run\: a word on each of its runs; may be repeated]:TAG: ' \
			'--failed[with resume\: start again what has failed, too]' \
			'--now[with cancel\: kill the active runs at once]' \
			'--prices[prices of machines, CSV with the columns type and usd_per_hour, in place of those in the program]:FILE:_files' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			':ACTION:(run plan status report resume cancel list)' \
			'::FILE|SUITE:_files'
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
	cost)
		_arguments -S \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			'::RUN:{compadd -- $(regatta words runs 2>/dev/null)}'
		;;
	resize)
		_arguments -S \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			':RUN:{compadd -- $(regatta words runs 2>/dev/null)}' \
			'*:ROLE=N: '
		;;
	tag)
		_arguments -S \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			':RUN:{compadd -- $(regatta words runs 2>/dev/null)}' \
			'*:+TAG|-TAG: '
		;;
	note)
		_arguments -S \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			':RUN:{compadd -- $(regatta words runs 2>/dev/null)}' \
			':TEXT: '
		;;
	exec)
		_arguments -S \
			''{-t,--tty}'[give the command a terminal]' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			':RUN:{compadd -- $(regatta words runs 2>/dev/null)}' \
			':NODE:{compadd -- $(regatta words nodes $line[1] 2>/dev/null)}'
		;;
	kill)
		_arguments -S \
			'--now[SIGKILL at once, without the grace period]' \
			'--all[all active runs, after a question]' \
			''{-y,--yes}'[do not ask]' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			'*:RUN:{compadd -- $(regatta words runs 2>/dev/null)}'
		;;
	cleanup)
		_arguments -S \
			'--all[all runs, active ones too, after a question]' \
			''{-y,--yes}'[do not ask]' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			'*:RUN:{compadd -- $(regatta words runs 2>/dev/null)}'
		;;
	prune)
		_arguments -S \
			'--older-than[runs that ended longer ago, e.g. 30d]:DURATION: ' \
			'--max-size[the newest runs stay up to SIZE in all, e.g. 10G]:SIZE: ' \
			'--keep-tagged[runs with a tag stay]' \
			'--dry-run[remove nothing, only list]' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]'
		;;
	ui)
		_arguments -S \
			'--print[only print the link; open no browser]' \
			'--scope[what the browser may do\: read, submit or admin (default)]:SCOPE:(read submit admin)' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]' \
			'::RUN:{compadd -- $(regatta words runs 2>/dev/null)}'
		;;
	plan)
		_arguments -S \
			''{-n,--count}'[number of nodes\: the job'\''s count]:N: ' \
			'*--set[change a key of the job, e.g. roles.trainer.count=8; may be repeated]:KEY=VALUE:{compadd -- $(regatta words keys 2>/dev/null)}' \
			'*--env[a variable of every node, over those of the job file; may be repeated]:NAME=VALUE: ' \
			'*--env-file[variables from a file of NAME=VALUE lines; --env wins over it]:FILE:_files' \
			'--name[the job'\''s name; the run is called NAME-xxxx]:NAME: ' \
			'--engine[where the nodes are\: local (default), hosts, aws.ec2, kubernetes; the job'\''s engine]:ENGINE: ' \
			'--kube-context[context of the kubeconfig, for engine kubernetes]:NAME: ' \
			'--namespace[namespace of the cluster, for engine kubernetes]:NAME: ' \
			'--prices[prices of machines, CSV with the columns type and usd_per_hour, in place of those in the program]:FILE:_files' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			''{-h,--help}'[show this help]' \
			'::FILE:_files'
		;;
	convert)
		_arguments -S \
			''{-n,--count}'[number of nodes\: the job'\''s count]:N: ' \
			'*--set[change a key of the job, e.g. roles.trainer.count=8; may be repeated]:KEY=VALUE:{compadd -- $(regatta words keys 2>/dev/null)}' \
			'--name[the job'\''s name; the run is called NAME-xxxx]:NAME: ' \
			'--engine[where the nodes are\: local (default), hosts, aws.ec2, kubernetes; the job'\''s engine]:ENGINE: ' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			''{-h,--help}'[show this help]' \
			'::FILE:_files'
		;;
	manifests)
		_arguments -S \
			''{-n,--count}'[number of nodes\: the job'\''s count]:N: ' \
			'*--set[change a key of the job, e.g. roles.trainer.count=8; may be repeated]:KEY=VALUE:{compadd -- $(regatta words keys 2>/dev/null)}' \
			'--name[the job'\''s name; the run is called NAME-xxxx]:NAME: ' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			''{-h,--help}'[show this help]' \
			'::FILE:_files'
		;;
	paddle)
		_arguments -S \
			'--action[create (default), status or cleanup]:ACTION:(create status cleanup)' \
			'--key_name[key pair of the machines; nothing here needs one]:NAME: ' \
			'--pem_path[accepted, without an effect\: nothing here logs in]:FILE:_files' \
			'--security_group_id[security group of all machines, besides the run'\''s own]:ID: ' \
			'--vpc_id[VPC (default\: that of the subnet, or the default VPC)]:ID: ' \
			'--subnet_id[subnet of the nodes (default\: one is made)]:ID: ' \
			'--availability_zone[zone of the nodes, e.g. us-east-2a]:ZONE: ' \
			'--pserver_instance_type[machine type of parameter servers (c5.2xlarge)]:TYPE: ' \
			'--trainer_instance_type[machine type of trainers (p2.8xlarge)]:TYPE: ' \
			'--pserver_image_id[container image, or machine image (ami-...)]:IMAGE: ' \
			'--trainer_image_id[container image, or machine image (ami-...)]:IMAGE: ' \
			'--pserver_command[python,vgg.py,batch_size\:128 runs '\''python vgg.py --batch_size 128 --device CPU'\'']:WORDS: ' \
			'--trainer_command[the same for trainers, with --device GPU]:WORDS: ' \
			'--docker_image[the training image]:IMAGE: ' \
			'--pserver_count[parameter servers (1)]:N: ' \
			'--trainer_count[trainers (1)]:N: ' \
			'--pserver_port[port of the parameter servers (5436)]:PORT: ' \
			'--master_server_port[port of the master (5436)]:PORT: ' \
			'--master_server_public_ip[the master, for status and cleanup]:IP: ' \
			'--master_docker_image[accepted, without an effect\: the master needs no container]:IMAGE: ' \
			'--task_name[name of the task\: run, tags and TASK_NAME]:NAME: ' \
			'--no_clean_up[accepted, without an effect\: machines are always removed]:BOOL: ' \
			'--metric_data_identifier[what a line of metrics starts with ("**metrics_data\: ")]:TEXT: ' \
			'--print[print the native job file and create nothing]' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			'--master[the master to talk to\: the name of a context, a URL, or '\''local'\'' for your own]:MASTER:{compadd -- $(regatta words contexts 2>/dev/null)}' \
			''{-h,--help}'[show this help]'
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
	doctor)
		_arguments -S \
			'--engine[the engine (default local)]:ENGINE: ' \
			'--kube-context[context of the kubeconfig, for engine kubernetes]:NAME: ' \
			'--namespace[namespace of the cluster, for engine kubernetes]:NAME: ' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			''{-h,--help}'[show this help]'
		;;
	gc)
		_arguments -S \
			'--engine[the engine (default aws.ec2)]:ENGINE: ' \
			'--region[the region, or namespace of a cluster, to look at (default\: that of the environment)]:REGION: ' \
			'--all-regions[all regions of the account, or namespaces of the cluster]' \
			'--kube-context[context of the kubeconfig, for engine kubernetes]:NAME: ' \
			'--namespace[namespace of the cluster, for engine kubernetes]:NAME: ' \
			'--install[everything of this install, also of runs that may be alive elsewhere]:ID: ' \
			'--dry-run[remove nothing, only list]' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			''{-h,--help}'[show this help]'
		;;
	iam-policy)
		_arguments -S \
			'--engine[the engine (default aws.ec2)]:ENGINE: ' \
			'--bucket[the bucket that the jobs name in \[aws\]; without it, buckets that Regatta makes\: regatta-*]:NAME: ' \
			'--cloudwatch[the namespace that the jobs name in \[aws\]; without it, no permission to send metrics]:NAMESPACE: ' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			''{-h,--help}'[show this help]'
		;;
	context)
		_arguments -S \
			'--pin[with add\: the pin of the master'\''s key, as it prints it; without a pin, its certificate must be of a CA]:PIN: ' \
			'--token-file[with add\: read the token from FILE ('\''-'\'' is standard input)]:FILE:_files' \
			'--token[with add\: the token itself; other users of this machine may see it]:TOKEN: ' \
			'--no-check[with add\: do not ask the master]' \
			'--region[with aws\: the region to look at (default\: that of the environment)]:REGION: ' \
			'--kube-context[context of the kubeconfig, for engine kubernetes]:NAME: ' \
			'--namespace[namespace of the cluster, for engine kubernetes]:NAME: ' \
			'--output[table for people (default), json for scripts]:FORMAT:(table json)' \
			''{-h,--help}'[show this help]' \
			':ACTION:(add list ls show use remove aws kubernetes)' \
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
			'::COMMAND:(run rerun attach wait ps status logs metrics events report outputs export cp suite compare cost resize tag note exec kill cleanup prune ui plan convert manifests paddle init explain completion master agent hosts doctor gc iam-policy context token sim version help)'
		;;
	esac
}
if [ "$funcstack[1]" = _regatta ]; then
	_regatta "$@"
else
	compdef _regatta regatta
fi
