# Starts pronto serve for git:// in place of a daemon of git. Functions of tests that have nothing to do
# with the server are appended when this is installed.

test_set_port LIB_GIT_DAEMON_PORT

GIT_DAEMON_PID=
GIT_DAEMON_DOCUMENT_ROOT_PATH="$PWD"/repo
GIT_DAEMON_HOST_PORT=127.0.0.1:$LIB_GIT_DAEMON_PORT
GIT_DAEMON_URL=git://$GIT_DAEMON_HOST_PORT
served_daemon_handler=

test_lazy_prereq FAKENC 'perl -MIO::Socket::INET -e 0'

# Writes the configuration for the options $@ of a daemon.
served_daemon_config () {
	export_ok=true push=marked
	for option in "$@"
	do
		case "$option" in
		--export-all)
			export_ok=false
			;;
		--enable=receive-pack)
			push=always
			;;
		esac
	done
	cat <<-EOT
	root = "repo"
	require_export_ok = $export_ok
	[http]
	listen = []
	[daemon]
	listen = ["$GIT_DAEMON_HOST_PORT"]
	push = "$push"
	[[grant]]
	repository = "**"
	users = ["anonymous"]
	role = "write"
	EOT
}

start_git_daemon () {
	mkdir -p "$GIT_DAEMON_DOCUMENT_ROOT_PATH"
	if test -z "$served_daemon_handler"
	then
		served_daemon_handler=t
		test_atexit stop_git_daemon
	fi
	rm -f served-daemon.out
	served_daemon_config "$@" >served-daemon.toml &&
	mkfifo served-daemon.out &&
	{
		"$TEST_DIRECTORY"/suite-server serve --config served-daemon.toml \
			>served-daemon.out 2>>served-daemon.log &
	} &&
	GIT_DAEMON_PID=$! &&
	served_line= &&
	read -r served_line <served-daemon.out &&
	test "$served_line" = "serving at $GIT_DAEMON_URL/" &&
	return
	cat served-daemon.log >&2
	error "pronto serve does not start"
}

stop_git_daemon () {
	if test -n "$GIT_DAEMON_PID"
	then
		kill "$GIT_DAEMON_PID"
		wait "$GIT_DAEMON_PID"
		GIT_DAEMON_PID=
	fi
}

