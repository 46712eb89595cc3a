# bash completion for regatta; made by 'regatta completion bash'
_regatta()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
	local cmd=${COMP_WORDS[1]} run= n=0 i w
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W 'run ps status logs metrics events report compare resize kill cleanup ui plan convert init explain completion master agent hosts context token sim version help --help --version' -- "$cur"))
		return
	fi
	for ((i = 2; i < COMP_CWORD; i++)); do
		w=${COMP_WORDS[i]}
		case "$cmd $w" in
		*' --') compopt -o default; return ;;
		*' --output'|*' --master'|'run --count'|'run -n'|'run --set'|'run --name'|'run --engine'|'run --repeat'|'run --parallel'|'ps --limit'|'logs --tail'|'logs --attempt'|'metrics --node'|'report --to'|'report -o'|'compare --metric'|'compare --use'|'compare --threshold'|'ui --scope'|'plan --count'|'plan -n'|'plan --set'|'plan --name'|'plan --engine'|'convert --count'|'convert -n'|'convert --set'|'convert --name'|'convert --engine'|'init --to'|'init -o'|'master --listen'|'agent --join'|'agent --pin'|'agent --token'|'agent --token-file'|'agent --name'|'agent --labels'|'agent --dir'|'hosts --forget'|'context --pin'|'context --token-file'|'context --token'|'token --scope'|'token --expires'|'token --name'|'sim --seeds'|'sim --nodes'|'sim --seed') i=$((i + 1)) ;;
		*' -'*) ;;
		*) if ((n == 0)); then run=$w; fi; n=$((n + 1)) ;;
		esac
	done
	case "$cmd $prev" in
	'run --count'|'run -n') :; return ;;
	'run --set') COMPREPLY=($(compgen -W "$(regatta words keys 2>/dev/null)" -- "$cur")); return ;;
	'run --name') :; return ;;
	'run --engine') :; return ;;
	'run --repeat') :; return ;;
	'run --parallel') :; return ;;
	'ps --limit') :; return ;;
	'logs --tail') :; return ;;
	'logs --attempt') :; return ;;
	'metrics --node') COMPREPLY=($(compgen -W "$(regatta words nodes $run 2>/dev/null)" -- "$cur")); return ;;
	'report --to'|'report -o') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	'compare --metric') :; return ;;
	'compare --use') COMPREPLY=($(compgen -W 'median mean last best' -- "$cur")); return ;;
	'compare --threshold') :; return ;;
	'ui --scope') COMPREPLY=($(compgen -W 'read submit admin' -- "$cur")); return ;;
	'plan --count'|'plan -n') :; return ;;
	'plan --set') COMPREPLY=($(compgen -W "$(regatta words keys 2>/dev/null)" -- "$cur")); return ;;
	'plan --name') :; return ;;
	'plan --engine') :; return ;;
	'convert --count'|'convert -n') :; return ;;
	'convert --set') COMPREPLY=($(compgen -W "$(regatta words keys 2>/dev/null)" -- "$cur")); return ;;
	'convert --name') :; return ;;
	'convert --engine') :; return ;;
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
	'context --pin') :; return ;;
	'context --token-file') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	'context --token') :; return ;;
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
		run) COMPREPLY=($(compgen -W '--count -n --set --name --engine --detach -d --follow -f --repeat --parallel --output --master --help -h' -- "$cur")) ;;
		ps) COMPREPLY=($(compgen -W '--all -a --limit --output --master --help -h' -- "$cur")) ;;
		status) COMPREPLY=($(compgen -W '--output --master --help -h' -- "$cur")) ;;
		logs) COMPREPLY=($(compgen -W '--follow -f --tail --attempt --merge --stdout --stderr --raw --output --master --help -h' -- "$cur")) ;;
		metrics) COMPREPLY=($(compgen -W '--node --host --output --master --help -h' -- "$cur")) ;;
		events) COMPREPLY=($(compgen -W '--follow -f --output --master --help -h' -- "$cur")) ;;
		report) COMPREPLY=($(compgen -W '--to -o --output --master --help -h' -- "$cur")) ;;
		compare) COMPREPLY=($(compgen -W '--metric --use --threshold --samples --no-test --output --master --help -h' -- "$cur")) ;;
		resize) COMPREPLY=($(compgen -W '--output --master --help -h' -- "$cur")) ;;
		kill) COMPREPLY=($(compgen -W '--now --output --master --help -h' -- "$cur")) ;;
		cleanup) COMPREPLY=($(compgen -W '--output --master --help -h' -- "$cur")) ;;
		ui) COMPREPLY=($(compgen -W '--print --scope --output --master --help -h' -- "$cur")) ;;
		plan) COMPREPLY=($(compgen -W '--count -n --set --name --engine --output --help -h' -- "$cur")) ;;
		convert) COMPREPLY=($(compgen -W '--count -n --set --name --engine --output --help -h' -- "$cur")) ;;
		init) COMPREPLY=($(compgen -W '--to -o --output --help -h' -- "$cur")) ;;
		explain) COMPREPLY=($(compgen -W '--output --help -h' -- "$cur")) ;;
		completion) COMPREPLY=($(compgen -W '--output --help -h' -- "$cur")) ;;
		master) COMPREPLY=($(compgen -W '--listen --stop --cancel --output --help -h' -- "$cur")) ;;
		agent) COMPREPLY=($(compgen -W '--join --pin --token --token-file --name --labels --dir --install --output --help -h' -- "$cur")) ;;
		hosts) COMPREPLY=($(compgen -W '--forget --output --master --help -h' -- "$cur")) ;;
		context) COMPREPLY=($(compgen -W '--pin --token-file --token --no-check --output --help -h' -- "$cur")) ;;
		token) COMPREPLY=($(compgen -W '--scope --expires --name --output --master --help -h' -- "$cur")) ;;
		sim) COMPREPLY=($(compgen -W '--seeds --nodes --seed --verbose -v --output --help -h' -- "$cur")) ;;
		version) COMPREPLY=($(compgen -W '--output --help -h' -- "$cur")) ;;
		help) COMPREPLY=($(compgen -W '--output --help -h' -- "$cur")) ;;
		esac
		return
	fi
	case "$cmd $n" in
	'run 0') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	'status 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'logs 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'logs 1') COMPREPLY=($(compgen -W "$(regatta words nodes $run 2>/dev/null)" -- "$cur")) ;;
	'metrics 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'metrics 1') : ;;
	'events 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'report 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'compare '*) COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'resize 0') COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'resize '*) : ;;
	'kill '*) COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'cleanup '*) COMPREPLY=($(compgen -W "$(regatta words runs 2>/dev/null)" -- "$cur")) ;;
	'plan 0') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	'convert 0') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	'init 0') COMPREPLY=($(compgen -W "$(regatta words strategies 2>/dev/null)" -- "$cur")) ;;
	'explain 0') COMPREPLY=($(compgen -W "$(regatta words keys 2>/dev/null)" -- "$cur")) ;;
	'completion 0') COMPREPLY=($(compgen -W 'bash zsh fish' -- "$cur")) ;;
	'context 0') COMPREPLY=($(compgen -W 'add list ls show use remove' -- "$cur")) ;;
	'context 1') COMPREPLY=($(compgen -W "$(regatta words contexts 2>/dev/null)" -- "$cur")) ;;
	'context 2') : ;;
	'token 0') COMPREPLY=($(compgen -W 'new list revoke' -- "$cur")) ;;
	'token 1') : ;;
	'help 0') COMPREPLY=($(compgen -W 'run ps status logs metrics events report compare resize kill cleanup ui plan convert init explain completion master agent hosts context token sim version help' -- "$cur")) ;;
	esac
}
complete -F _regatta regatta
