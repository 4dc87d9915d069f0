# Starts pronto serve, with the front of `cargo xtask git-suite --served` before it, in place of a web
# server. Functions of tests that have nothing to do with the server are appended when this is installed.

test_set_port LIB_HTTPD_PORT

HTTPD_ROOT_PATH="$PWD"/httpd
HTTPD_DOCUMENT_ROOT_PATH=$HTTPD_ROOT_PATH/www
HTTPD_PROTO=http
HTTPD_DEST=127.0.0.1:$LIB_HTTPD_PORT
HTTPD_URL=$HTTPD_PROTO://$HTTPD_DEST
HTTPD_URL_USER=$HTTPD_PROTO://user%40host@$HTTPD_DEST
HTTPD_URL_USER_PASS=$HTTPD_PROTO://user%40host:pass%40host@$HTTPD_DEST
served_pids=

# Starts the command $2... as $1, and sets served_at to the address that it prints.
served_start () {
	served_fifo="$HTTPD_ROOT_PATH/$1.out"
	shift
	mkfifo "$served_fifo" &&
	{ "$@" >"$served_fifo" 2>>"$HTTPD_ROOT_PATH"/error.log & } &&
	served_pids="$! $served_pids" &&
	served_line= &&
	read -r served_line <"$served_fifo" &&
	served_at=${served_line#serving at http://} &&
	served_at=${served_at%/} &&
	test "$served_at" != "$served_line"
}

# Starts pronto serve as $1, with the variables $2... and those that a web server passes on.
served_start_git () {
	served_name=$1
	shift
	served_start "$served_name" env -i PATH="$PATH" \
		${GIT_CONFIG_NOSYSTEM+GIT_CONFIG_NOSYSTEM="$GIT_CONFIG_NOSYSTEM"} \
		${GIT_TEST_SIDEBAND_ALL+GIT_TEST_SIDEBAND_ALL="$GIT_TEST_SIDEBAND_ALL"} \
		${GIT_TRACE+GIT_TRACE="$GIT_TRACE"} \
		${GNUPGHOME+GNUPGHOME="$GNUPGHOME"} \
		${LANG+LANG="$LANG"} ${LC_ALL+LC_ALL="$LC_ALL"} "$@" \
		"$TEST_DIRECTORY"/suite-server serve --config "$HTTPD_ROOT_PATH"/pronto-server.toml
}

# A token of a user: the password that the tests use.
served_user () {
	printf '[[user]]\nname = "%s"\n[[user.token]]\nsha256 = "%s"\n' "$1" \
		"$(printf %s "$2" | sha256sum | cut -d " " -f 1)"
}

# A role: the glob of repositories, the user, the role.
served_grant () {
	printf '[[grant]]\nrepository = "%s"\nusers = ["%s"]\nrole = "%s"\n' "$@"
}

# Repositories have a name for each way to them; who may do what depends on the name.
served_prepare () {
	mkdir -p "$HTTPD_DOCUMENT_ROOT_PATH" &&
	for way in auth auth-push half-auth-complete
	do
		mkdir "$HTTPD_ROOT_PATH/$way" &&
		ln -s ../www "$HTTPD_ROOT_PATH/$way/smart" || return 1
	done &&
	for way in smart smart_custom_env
	do
		ln -s www "$HTTPD_ROOT_PATH/$way" || return 1
	done &&
	served_user user@host pass@host >"$HTTPD_ROOT_PATH"/pronto-users.toml &&
	{
		printf '[http]\nlisten = ["127.0.0.1:0"]\n' &&
		served_grant "smart/**" anonymous write &&
		served_grant "smart_custom_env/**" anonymous write &&
		served_grant "auth/smart/**" user@host write &&
		for way in auth-push half-auth-complete
		do
			served_grant "$way/smart/**" anonymous read &&
			served_grant "$way/smart/**" user@host write || return 1
		done
	} >"$HTTPD_ROOT_PATH"/pronto-server.toml &&
	>"$HTTPD_ROOT_PATH"/access.log
}

start_httpd () {
	test_atexit stop_httpd
	served_prepare &&
	served_start_git main &&
	served_main=$served_at &&
	served_start_git custom \
		GIT_COMMITTER_NAME="Custom User" GIT_COMMITTER_EMAIL=custom@example.com &&
	served_custom=$served_at &&
	served_start front "$TEST_DIRECTORY"/suite-front git-suite-front "$HTTPD_DEST" \
		"$HTTPD_ROOT_PATH" "$served_main" "$served_custom" &&
	return
	cat "$HTTPD_ROOT_PATH"/error.log >&2
	error "pronto serve does not start"
}

stop_httpd () {
	for pid in $served_pids
	do
		kill "$pid"
		wait "$pid"
	done
	served_pids=
}

enable_cgipassauth () {
	test_set_prereq CGIPASSAUTH
}

strip_access_log () {
	cat "$HTTPD_ROOT_PATH"/access.log
}

# Compares the access log with the file $1, in any order.
check_access_log () {
	sort "$1" >"$1".sorted &&
	strip_access_log | sort >access.log.sorted &&
	test_cmp "$1".sorted access.log.sorted
}

