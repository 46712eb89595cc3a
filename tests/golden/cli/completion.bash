# bash completion for regatta; made by 'regatta completion bash'
_regatta()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
	local cmd=${COMP_WORDS[1]} run= n=0 i w
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W 'run rerun attach wait ps status logs metrics events report outputs export cp suite compare cost resize tag note exec kill cleanup prune ui plan convert manifests paddle init explain completion master agent hosts doctor gc iam-policy context token sim version help --help --version' -- "$cur"))
		return
	fi
	for ((i = 2; i < COMP_CWORD; i++)); do
		w=${COMP_WORDS[i]}
		case "$cmd $w" in
		*' --') compopt -o default; return ;;
		*' --output'|*' --master'|'run --count'|'run -n'|'run --set'|'run --env'|'run --env-file'|'run --tag'|'run --name'|'run --engine'|'run --kube-context'|'run --namespace'|'run --prices'|'run --repeat'|'run --parallel'|'rerun --set'|'rerun --env'|'rerun --env-file'|'rerun --tag'|'rerun --name'|'rerun --engine'|'ps --limit'|'ps --state'|'ps --name'|'ps --tag'|'ps --since'|'ps --engine'|'logs --tail'|'logs --attempt'|'logs --since'|'logs --grep'|'logs --node'|'metrics --node'|'report --to'|'report -o'|'export --to'|'export --experiment'|'suite --tag'|'suite --prices'|'compare --metric'|'compare --use'|'compare --threshold'|'prune --older-than'|'prune --max-size'|'ui --scope'|'plan --count'|'plan -n'|'plan --set'|'plan --env'|'plan --env-file'|'plan --name'|'plan --engine'|'plan --kube-context'|'plan --namespace'|'plan --prices'|'convert --count'|'convert -n'|'convert --set'|'convert --name'|'convert --engine'|'manifests --count'|'manifests -n'|'manifests --set'|'manifests --name'|'paddle --action'|'paddle --key_name'|'paddle --pem_path'|'paddle --security_group_id'|'paddle --vpc_id'|'paddle --subnet_id'|'paddle --availability_zone'|'paddle --pserver_instance_type'|'paddle --trainer_instance_type'|'paddle --pserver_image_id'|'paddle --trainer_image_id'|'paddle --pserver_command'|'paddle --trainer_command'|'paddle --docker_image'|'paddle --pserver_count'|'paddle --trainer_count'|'paddle --pserver_port'|'paddle --master_server_port'|'paddle --master_server_public_ip'|'paddle --master_docker_image'|'paddle --task_name'|'paddle --no_clean_up'|'paddle --metric_data_identifier'|'init --to'|'init -o'|'master --listen'|'agent --join'|'agent --pin'|'agent --token'|'agent --token-file'|'agent --name'|'agent --labels'|'agent --dir'|'hosts --forget'|'doctor --engine'|'doctor --kube-context'|'doctor --namespace'|'gc --engine'|'gc --region'|'gc --kube-context'|'gc --namespace'|'gc --install'|'iam-policy --engine'|'iam-policy --bucket'|'iam-policy --cloudwatch'|'context --pin'|'context --token-file'|'context --token'|'context --region'|'context --kube-context'|'context --namespace'|'token --scope'|'token --expires'|'token --name'|'sim --seeds'|'sim --nodes'|'sim --seed') i=$((i + 1)) ;;
		*' -'*) ;;
		*) if ((n == 0)); then run=$w; fi; n=$((n + 1)) ;;
		esac
	done
	case "$cmd $prev" in
	'run --count'|'run -n') :; return ;;
	'run --set') COMPREPLY=($(compgen -W "$(regatta words keys 2>/dev/null)" -- "$cur")); return ;;
	'run --env') :; return ;;
	'run --env-file') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	'run --tag') :; return ;;
	'run --name') :; return ;;
	'run --engine') :; return ;;
	'run --kube-context') :; return ;;
	'run --namespace') :; return ;;
	'run --prices') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	'run --repeat') :; return ;;
	'run --parallel') :; return ;;
	'rerun --set') COMPREPLY=($(compgen -W "$(regatta words keys 2>/dev/null)" -- "$cur")); return ;;
	'rerun --env') :; return ;;
	'rerun --env-file') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	'rerun --tag') :; return ;;
	'rerun --name') :; return ;;
	'rerun --engine') :; return ;;
	'ps --limit') :; return ;;
	'ps --state') :; return ;;
	'ps --name') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")); return ;;
	'ps --tag') :; return ;;
	'ps --since') :; return ;;
	'ps --engine') :; return ;;
	'logs --tail') :; return ;;
	'logs --attempt') :; return ;;
	'logs --since') :; return ;;
	'logs --grep') :; return ;;
	'logs --node') COMPREPLY=($(compgen -W "$(regatta words nodes $run 2>/dev/null)" -- "$cur")); return ;;
	'metrics --node') COMPREPLY=($(compgen -W "$(regatta words nodes $run 2>/dev/null)" -- "$cur")); return ;;
	'report --to'|'report -o') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	'export --to') COMPREPLY=($(compgen -W 'csv tensorboard mlflow' -- "$cur")); return ;;
	'export --experiment') :; return ;;
	'suite --tag') :; return ;;
	'suite --prices') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	'compare --metric') :; return ;;
	'compare --use') COMPREPLY=($(compgen -W 'median mean last best' -- "$cur")); return ;;
	'compare --threshold') :; return ;;
	'prune --older-than') :; return ;;
	'prune --max-size') :; return ;;
	'ui --scope') COMPREPLY=($(compgen -W 'read submit admin' -- "$cur")); return ;;
	'plan --count'|'plan -n') :; return ;;
	'plan --set') COMPREPLY=($(compgen -W "$(regatta words keys 2>/dev/null)" -- "$cur")); return ;;
	'plan --env') :; return ;;
	'plan --env-file') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	'plan --name') :; return ;;
	'plan --engine') :; return ;;
	'plan --kube-context') :; return ;;
	'plan --namespace') :; return ;;
	'plan --prices') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	'convert --count'|'convert -n') :; return ;;
	'convert --set') COMPREPLY=($(compgen -W "$(regatta words keys 2>/dev/null)" -- "$cur")); return ;;
	'convert --name') :; return ;;
	'convert --engine') :; return ;;
	'manifests --count'|'manifests -n') :; return ;;
	'manifests --set') COMPREPLY=($(compgen -W "$(regatta words keys 2>/dev/null)" -- "$cur")); return ;;
	'manifests --name') :; return ;;
	'paddle --action') COMPREPLY=($(compgen -W 'create status cleanup' -- "$cur")); return ;;
	'paddle --key_name') :; return ;;
	'paddle --pem_path') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	'paddle --security_group_id') :; return ;;
	'paddle --vpc_id') :; return ;;
	'paddle --subnet_id') :; return ;;
	'paddle --availability_zone') :; return ;;
	'paddle --pserver_instance_type') :; return ;;
	'paddle --trainer_instance_type') :; return ;;
	'paddle --pserver_image_id') :; return ;;
	'paddle --trainer_image_id') :; return ;;
	'paddle --pserver_command') :; return ;;
	'paddle --trainer_command') :; return ;;
	'paddle --docker_image') :; return ;;
	'paddle --pserver_count') :; return ;;
	'paddle --trainer_count') :; return ;;
	'paddle --pserver_port') :; return ;;
	'paddle --master_server_port') :; return ;;
	'paddle --master_server_public_ip') :; return ;;
	'paddle --master_docker_image') :; return ;;
	'paddle --task_name') :; return ;;
	'paddle --no_clean_up') :; return ;;
	'paddle --metric_data_identifier') :; return ;;
	'init --to'|'init -o') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	'master --listen') :; return ;;
	'agent --join') :; return ;;
	'agent --pin') :; return ;;
	'agent --token') :; return ;;
	'agent --token-file') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	'agent --name') :; return ;;
	'agent --labels') :; return ;;
	'agent --dir') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	'hosts --forget') :; return ;;
	'doctor --engine') :; return ;;
	'doctor --kube-context') :; return ;;
	'doctor --namespace') :; return ;;
	'gc --engine') :; return ;;
	'gc --region') :; return ;;
	'gc --kube-context') :; return ;;
	'gc --namespace') :; return ;;
	'gc --install') :; return ;;
	'iam-policy --engine') :; return ;;
	'iam-policy --bucket') :; return ;;
	'iam-policy --cloudwatch') :; return ;;
	'context --pin') :; return ;;
	'context --token-file') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	'context --token') :; return ;;
	'context --region') :; return ;;
	'context --kube-context') :; return ;;
	'context --namespace') :; return ;;
	'token --scope') COMPREPLY=($(compgen -W 'read submit admin join' -- "$cur")); return ;;
	'token --expires') :; return ;;
	'token --name') :; return ;;
	'sim --seeds') :; return ;;
	'sim --nodes') :; return ;;
	'sim --seed') :; return ;;
	*' --output') COMPREPLY=($(compgen -W 'table json' -- "$cur")); return ;;
	*' --master') COMPREPLY=($(compgen -W "$(regatta words contexts 2>/dev/null)" -- "$cur")); return ;;
	esac
	if [[ $cur == -* ]]; then
		case $cmd in
		run) COMPREPLY=($(compgen -W '--count -n --set --env --env-file --tag --name --engine --kube-context --namespace --prices --detach -d --follow -f --no-wait --repeat --parallel --dry-run --output --master --help -h' -- "$cur")) ;;
		rerun) COMPREPLY=($(compgen -W '--set --env --env-file --tag --name --engine --detach -d --follow -f --output --master --help -h' -- "$cur")) ;;
		attach) COMPREPLY=($(compgen -W '--follow -f --output --master --help -h' -- "$cur")) ;;
		wait) COMPREPLY=($(compgen -W '--job-code --output --master --help -h' -- "$cur")) ;;
		ps) COMPREPLY=($(compgen -W '--all -a --limit --state --name --tag --since --engine --watch -w --params --output --master --help -h' -- "$cur")) ;;
		status) COMPREPLY=($(compgen -W '--exit-code --output --master --help -h' -- "$cur")) ;;
		logs) COMPREPLY=($(compgen -W '--follow -f --tail --attempt --since --timestamps --grep --node --merge --stdout --stderr --raw --exit-code --output --master --help -h' -- "$cur")) ;;
		metrics) COMPREPLY=($(compgen -W '--node --host --output --master --help -h' -- "$cur")) ;;
		events) COMPREPLY=($(compgen -W '--follow -f --exit-code --output --master --help -h' -- "$cur")) ;;
		report) COMPREPLY=($(compgen -W '--to -o --output --master --help -h' -- "$cur")) ;;
		outputs) COMPREPLY=($(compgen -W '--output --master --help -h' -- "$cur")) ;;
		export) COMPREPLY=($(compgen -W '--to --experiment --output --master --help -h' -- "$cur")) ;;
		cp) COMPREPLY=($(compgen -W '--output --master --help -h' -- "$cur")) ;;
		suite) COMPREPLY=($(compgen -W '--detach -d --tag --failed --now --prices --output --master --help -h' -- "$cur")) ;;
		compare) COMPREPLY=($(compgen -W '--metric --use --threshold --samples --no-test --output --master --help -h' -- "$cur")) ;;
		cost) COMPREPLY=($(compgen -W '--output --master --help -h' -- "$cur")) ;;
		resize) COMPREPLY=($(compgen -W '--output --master --help -h' -- "$cur")) ;;
		tag) COMPREPLY=($(compgen -W '--output --master --help -h' -- "$cur")) ;;
		note) COMPREPLY=($(compgen -W '--output --master --help -h' -- "$cur")) ;;
		exec) COMPREPLY=($(compgen -W '--tty -t --output --master --help -h' -- "$cur")) ;;
		kill) COMPREPLY=($(compgen -W '--now --all --yes -y --output --master --help -h' -- "$cur")) ;;
		cleanup) COMPREPLY=($(compgen -W '--all --yes -y --output --master --help -h' -- "$cur")) ;;
		prune) COMPREPLY=($(compgen -W '--older-than --max-size --keep-tagged --dry-run --output --master --help -h' -- "$cur")) ;;
		ui) COMPREPLY=($(compgen -W '--print --scope --output --master --help -h' -- "$cur")) ;;
		plan) COMPREPLY=($(compgen -W '--count -n --set --env --env-file --name --engine --kube-context --namespace --prices --output --help -h' -- "$cur")) ;;
		convert) COMPREPLY=($(compgen -W '--count -n --set --name --engine --output --help -h' -- "$cur")) ;;
		manifests) COMPREPLY=($(compgen -W '--count -n --set --name --output --help -h' -- "$cur")) ;;
		paddle) COMPREPLY=($(compgen -W '--action --key_name --pem_path --security_group_id --vpc_id --subnet_id --availability_zone --pserver_instance_type --trainer_instance_type --pserver_image_id --trainer_image_id --pserver_command --trainer_command --docker_image --pserver_count --trainer_count --pserver_port --master_server_port --master_server_public_ip --master_docker_image --task_name --no_clean_up --metric_data_identifier --print --output --master --help -h' -- "$cur")) ;;
		init) COMPREPLY=($(compgen -W '--to -o --output --help -h' -- "$cur")) ;;
		explain) COMPREPLY=($(compgen -W '--output --help -h' -- "$cur")) ;;
		completion) COMPREPLY=($(compgen -W '--output --help -h' -- "$cur")) ;;
		master) COMPREPLY=($(compgen -W '--listen --stop --cancel --output --help -h' -- "$cur")) ;;
		agent) COMPREPLY=($(compgen -W '--join --pin --token --token-file --name --labels --dir --install --output --help -h' -- "$cur")) ;;
		hosts) COMPREPLY=($(compgen -W '--forget --output --master --help -h' -- "$cur")) ;;
		doctor) COMPREPLY=($(compgen -W '--engine --kube-context --namespace --output --help -h' -- "$cur")) ;;
		gc) COMPREPLY=($(compgen -W '--engine --region --all-regions --kube-context --namespace --install --dry-run --output --help -h' -- "$cur")) ;;
		iam-policy) COMPREPLY=($(compgen -W '--engine --bucket --cloudwatch --output --help -h' -- "$cur")) ;;
		context) COMPREPLY=($(compgen -W '--pin --token-file --token --no-check --region --kube-context --namespace --output --help -h' -- "$cur")) ;;
		token) COMPREPLY=($(compgen -W '--scope --expires --name --output --master --help -h' -- "$cur")) ;;
		sim) COMPREPLY=($(compgen -W '--seeds --nodes --seed --verbose -v --output --help -h' -- "$cur")) ;;
		version) COMPREPLY=($(compgen -W '--output --help -h' -- "$cur")) ;;
		help) COMPREPLY=($(compgen -W '--output --help -h' -- "$cur")) ;;
		esac
		return
	fi
	case "$cmd $n" in
	'run 0') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	'rerun 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'attach 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'wait '*) COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'status 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'logs 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'logs 1') COMPREPLY=($(compgen -W "$(regatta words nodes $run 2>/dev/null)" -- "$cur")) ;;
	'metrics 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'metrics 1') : ;;
	'events 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'report 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'outputs 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'export 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'export 1') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	'cp 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'cp 1') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	'suite 0') COMPREPLY=($(compgen -W 'run plan status report resume cancel list' -- "$cur")) ;;
	'suite 1') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	'compare '*) COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'cost 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'resize 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'resize '*) : ;;
	'tag 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'tag '*) : ;;
	'note 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'note 1') : ;;
	'exec 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'exec 1') COMPREPLY=($(compgen -W "$(regatta words nodes $run 2>/dev/null)" -- "$cur")) ;;
	'kill '*) COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'cleanup '*) COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'ui 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'plan 0') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	'convert 0') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	'manifests 0') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	'init 0') COMPREPLY=($(compgen -W "$(regatta words strategies 2>/dev/null)" -- "$cur")) ;;
	'explain 0') COMPREPLY=($(compgen -W "$(regatta words keys 2>/dev/null)" -- "$cur")) ;;
	'completion 0') COMPREPLY=($(compgen -W 'bash zsh fish' -- "$cur")) ;;
	'context 0') COMPREPLY=($(compgen -W 'add list ls show use remove aws kubernetes' -- "$cur")) ;;
	'context 1') COMPREPLY=($(compgen -W "$(regatta words contexts 2>/dev/null)" -- "$cur")) ;;
	'context 2') : ;;
	'token 0') COMPREPLY=($(compgen -W 'new list revoke' -- "$cur")) ;;
	'token 1') : ;;
	'help 0') COMPREPLY=($(compgen -W 'run rerun attach wait ps status logs metrics events report outputs export cp suite compare cost resize tag note exec kill cleanup prune ui plan convert manifests paddle init explain completion master agent hosts doctor gc iam-policy context token sim version help' -- "$cur")) ;;
	esac
}
complete -F _regatta regatta
